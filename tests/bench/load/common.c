/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void load_fail_text(const char *text)
{
	fprintf(stderr, "benchload: %s\n", text);
	exit(1);
}

void load_fail(const char *what)
{
	fprintf(stderr, "benchload: %s: %s\n", what, strerror(errno));
	exit(1);
}

void *load_alloc(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		load_fail("memory");
	return memory;
}

int load_connect(const struct load_options *options, enum load_service service)
{
	struct sockaddr_in to = options->to;
	struct timeval patience = {.tv_sec = 10};
	int fd, on = 1, err;

	to.sin_port = htons((uint16_t)(ntohs(to.sin_port) + service));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (options->receive_buffer)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &options->receive_buffer,
			   sizeof(options->receive_buffer));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		err = errno;
		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

void load_send_all(int fd, const void *data, size_t n)
{
	const char *at = data;

	while (n > 0) {
		ssize_t done = send(fd, at, n, MSG_NOSIGNAL);

		if (done < 0)
			load_fail("send");
		at += done;
		n -= (size_t)done;
	}
}

void load_receive_all(int fd, void *data, size_t n)
{
	char *at = data;

	while (n > 0) {
		ssize_t done = recv(fd, at, n, 0);

		if (done < 0)
			load_fail("recv");
		if (done == 0)
			load_fail_text("the connection ended early");
		at += done;
		n -= (size_t)done;
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void load_print_times(uint64_t *values_ns, size_t count)
{
	if (count == 0)
		load_fail_text("nothing was measured");
	qsort(values_ns, count, sizeof(*values_ns), compare);
	printf("{\"count\": %zu, \"p50_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.3f}\n", count,
	       (double)values_ns[count / 2] / 1e3, (double)values_ns[count * 99 / 100] / 1e3,
	       (double)values_ns[count - 1] / 1e3);
}
