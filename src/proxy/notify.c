/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int pep_notify(const char *format, ...)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	char text[512];
	size_t length;
	va_list args;
	int fd, n, err = 0;

	if (!path)
		return 0;
	length = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || length >= sizeof(sa.sun_path))
		return -EINVAL;
	memcpy(sa.sun_path, path, length);
	if (path[0] == '@')
		sa.sun_path[0] = '\0';

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -EINVAL;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&sa,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		err = -errno;
	close(fd);
	return err;
}

uint64_t pep_notify_watchdog_us(void)
{
	const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	char *end;
	unsigned long long us;

	if (!period || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	us = strtoull(period, &end, 10);
	return *end ? 0 : us;
}
