/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int sysctl_open(const char *name, int flags)
{
	char path[256] = "/proc/sys/";
	size_t used = strlen(path);
	int fd;

	if (used + strlen(name) >= sizeof(path))
		return -ENAMETOOLONG;
	for (; *name; name++)
		path[used++] = (char)(*name == '.' ? '/' : *name == '/' ? '.' : *name);
	path[used] = '\0';
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int rules_sysctl_read(const char *name, char *value, size_t size)
{
	int fd = sysctl_open(name, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, value, size - 1);
	if (n < 0) {
		int err = -errno;

		(void)close(fd);
		return err;
	}
	(void)close(fd);
	while (n > 0 && strchr("\n\t ", value[n - 1]))
		n--;
	value[n] = '\0';
	return 0;
}

int rules_sysctl_write(const char *name, const char *value)
{
	int fd = sysctl_open(name, O_WRONLY);
	size_t len = strlen(value);
	int err = 0;

	if (fd < 0)
		return fd;
	if (write(fd, value, len) != (ssize_t)len)
		err = errno ? -errno : -EIO;
	(void)close(fd);
	return err;
}
