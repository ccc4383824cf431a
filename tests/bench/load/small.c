/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients of few bytes: echo, time to the first byte, idle flows. */
#include "load.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int load_echo(const struct load_options *options)
{
	uint64_t *times = load_alloc(options->count, sizeof(*times));
	uint8_t *message = load_alloc(options->bytes, 1);
	int fd = load_connect(options, LOAD_ECHO);

	if (fd < 0)
		load_fail("connect");
	for (unsigned int i = 0; i < options->count + 50; i++) {
		uint64_t began = pep_clock_mono_ns();

		load_send_all(fd, message, options->bytes);
		load_receive_all(fd, message, options->bytes);
		if (i >= 50) /* the first ones find cold caches */
			times[i - 50] = pep_clock_mono_ns() - began;
	}
	load_print_times(times, options->count);
	return 0;
}

int load_first_byte(const struct load_options *options)
{
	uint64_t *times = load_alloc(options->count, sizeof(*times));

	for (unsigned int i = 0; i < options->count; i++) {
		uint64_t began = pep_clock_mono_ns();
		char text[3];
		int fd = load_connect(options, LOAD_ANSWER);

		if (fd < 0)
			load_fail("connect");
		load_send_all(fd, "?", 1);
		load_receive_all(fd, text, 1);
		times[i] = pep_clock_mono_ns() - began;
		load_receive_all(fd, text + 1, 2);
		close(fd);
	}
	load_print_times(times, options->count);
	return 0;
}

/* Opens flows, proves each with an echoed byte, says so, and holds them until its input ends. */
int load_idle(const struct load_options *options)
{
	int *fds = load_alloc(options->count, sizeof(*fds));
	unsigned int good = 0, failed = 0;
	uint64_t began = pep_clock_mono_ns();
	struct rlimit limit;
	char byte = 'x';

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (unsigned int i = 0; i < options->count; i++) {
		fds[i] = load_connect(options, LOAD_ECHO);
		failed += fds[i] < 0;
	}
	for (unsigned int i = 0; i < options->count; i++)
		if (fds[i] >= 0)
			(void)send(fds[i], &byte, 1, MSG_NOSIGNAL);
	for (unsigned int i = 0; i < options->count; i++)
		if (fds[i] >= 0)
			good += recv(fds[i], &byte, 1, 0) == 1;
	printf("{\"count\": %u, \"echoed\": %u, \"failed\": %u, \"seconds\": %.3f}\n",
	       options->count, good, failed, (double)(pep_clock_mono_ns() - began) / 1e9);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
