/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mon/listen.h"

#include "base/listen_address.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 128

/* A socket file that nobody listens on was left by a monitor that was killed. */
static void remove_stale(const struct sockaddr_un *address)
{
	struct stat st;
	int fd;

	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	    errno == ECONNREFUSED)
		(void)unlink(address->sun_path);
	close(fd);
}

int pep_listen_open(const char *text)
{
	static const int on = 1;
	struct pep_listen_address address;
	int fd, err;

	err = pep_listen_address_parse(text, &address);
	if (err)
		return err;
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (address.any.sa_family == AF_UNIX)
		remove_stale(&address.local);
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		goto fail;
	if (address.any.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		goto fail;
	if (bind(fd, &address.any, address.size) < 0 || listen(fd, BACKLOG) < 0)
		goto fail;
	if (address.any.sa_family == AF_UNIX && chmod(address.local.sun_path, 0660) < 0)
		goto fail;
	return fd;

fail:
	err = -errno;
	close(fd);
	return err;
}

int pep_listen_inherited(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	long n;

	if (!pid || !fds || strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	n = strtol(fds, NULL, 10);
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return n > 0 && n <= 8 ? (int)n : 0;
}
