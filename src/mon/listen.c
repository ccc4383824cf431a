/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses are numbers: no name is ever looked up. */
#include "mon/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un unix_path;
};

static int parse(const char *text, union address *ret, socklen_t *ret_length)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	size_t length;
	unsigned long port;
	char *end;

	memset(ret, 0, sizeof(*ret));
	if (strncmp(text, "unix:", 5) == 0) {
		if (text[5] != '/' || strlen(text + 5) >= sizeof(ret->unix_path.sun_path))
			return -EINVAL;
		ret->unix_path.sun_family = AF_UNIX;
		strcpy(ret->unix_path.sun_path, text + 5);
		*ret_length = sizeof(ret->unix_path);
		return 0;
	}
	if (!colon || colon[1] < '0' || colon[1] > '9')
		return -EINVAL;
	port = strtoul(colon + 1, &end, 10);
	length = (size_t)(colon - text);
	if (*end || port > 65535 || length >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = '\0';
	if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)port);
		*ret_length = sizeof(ret->v4);
		return 0;
	}
	if (length < 3 || host[0] != '[' || host[length - 1] != ']')
		return -EINVAL;
	host[length - 1] = '\0';
	if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) != 1)
		return -EINVAL;
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons((uint16_t)port);
	*ret_length = sizeof(ret->v6);
	return 0;
}

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
	union address address;
	socklen_t length;
	int fd, err;

	err = parse(text, &address, &length);
	if (err)
		return err;
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (address.any.sa_family == AF_UNIX)
		remove_stale(&address.unix_path);
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		goto fail;
	if (address.any.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		goto fail;
	if (bind(fd, &address.any, length) < 0 || listen(fd, BACKLOG) < 0)
		goto fail;
	if (address.any.sa_family == AF_UNIX && chmod(address.unix_path.sun_path, 0660) < 0)
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
