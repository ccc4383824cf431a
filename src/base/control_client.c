/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One deadline covers connect, send and receive, so that a stuck daemon never blocks a caller. */
#include "base/control_client.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void)
{
	return (long)(pep_clock_mono_ns() / 1000000u);
}

int pep_control_path(const char *run_dir, char *path, size_t size)
{
	int len = snprintf(path, size, "%s/" PEP_CONTROL_SOCKET, run_dir);
	struct sockaddr_un address;

	if (len < 0 || (size_t)len >= size || (size_t)len >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	return 0;
}

static int wait_for(int fd, short events, long deadline_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n;

	do {
		long left = deadline_ms - now_ms();

		n = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}

/* A Unix socket connects at once or, with a full backlog, says EAGAIN. */
static int connect_to(const char *path, long deadline_ms, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
	int fd, err = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		err = -errno;
		if (err != -EAGAIN && err != -EINTR)
			break;
		err = -ETIMEDOUT;
		if (now_ms() >= deadline_ms)
			break;
		(void)nanosleep(&pause, NULL);
		err = 0;
	}
	if (err) {
		(void)close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

static int send_all(int fd, const char *data, size_t size, long deadline_ms)
{
	while (size > 0) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
		int err;

		if (n > 0) {
			data += n;
			size -= (size_t)n;
			continue;
		}
		/* The daemon may have answered and closed already: its answer is what matters. */
		if (n < 0 && errno == EPIPE)
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		err = wait_for(fd, POLLOUT, deadline_ms);
		if (err)
			return err;
	}
	return 0;
}

/* Reads up to the first newline. */
static int receive_line(int fd, long deadline_ms, char **ret)
{
	size_t used = 0, room = 0;
	char *text = NULL;
	int err;

	for (;;) {
		ssize_t n;

		if (used + 1024 > room) {
			char *grown = room < PEP_CONTROL_REPLY_MAX ? realloc(text, 2 * room + 4096)
								   : NULL;

			err = room < PEP_CONTROL_REPLY_MAX ? -ENOMEM : -EPROTO;
			if (!grown)
				break;
			text = grown;
			room = 2 * room + 4096;
		}
		n = recv(fd, text + used, room - used - 1, 0);
		if (n > 0) {
			char *end = memchr(text + used, '\n', (size_t)n);

			used += (size_t)n;
			if (end) {
				*end = '\0';
				*ret = text;
				return 0;
			}
			continue;
		}
		err = n == 0 || errno == ECONNRESET ? -EPROTO : -errno;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			err = wait_for(fd, POLLIN, deadline_ms);
		if (err)
			break;
	}
	free(text);
	return err;
}

static int parse_reply(const char *text, json_t **ret)
{
	json_t *reply = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_boolean(json_object_get(reply, "ok"))) {
		json_decref(reply);
		return -EPROTO;
	}
	*ret = reply;
	return 0;
}

int pep_control_call(const char *path, const char *request, unsigned int timeout_ms, json_t **ret)
{
	long deadline_ms = now_ms() + (long)timeout_ms;
	char line[PEP_CONTROL_REQUEST_MAX + 1];
	char *text;
	int len = snprintf(line, sizeof(line), "%s\n", request);
	int fd = -1, err;

	if (len < 0 || (size_t)len >= sizeof(line) || strchr(request, '\n'))
		return -EINVAL;
	err = connect_to(path, deadline_ms, &fd);
	if (err)
		return err;
	err = send_all(fd, line, (size_t)len, deadline_ms);
	if (!err)
		err = receive_line(fd, deadline_ms, &text);
	(void)close(fd);
	if (err)
		return err;
	err = parse_reply(text, ret);
	free(text);
	return err;
}
