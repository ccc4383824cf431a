/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients of streams: many at full speed, and one read slowly. */
#include "load.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES 131072

static uint8_t chunk[CHUNK_BYTES];

/* Moves what one event allows. Returns bytes; ends the program when the flow broke. */
static uint64_t turn(int fd, int upload)
{
	uint64_t moved = 0;

	for (int i = 0; i < 8; i++) {
		ssize_t n = upload ? send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL | MSG_DONTWAIT)
				   : recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			load_fail(n ? "a flow broke" : "a flow ended early");
		moved += (uint64_t)n;
	}
	return moved;
}

/* Moves what can be moved in so many seconds. Returns the bytes; *ret_ns gets the time it took. */
static uint64_t move(const struct load_options *options, int epoll_fd, double seconds,
		     uint64_t *ret_ns)
{
	uint64_t began = pep_clock_mono_ns(), now = began, limit_ns = (uint64_t)(seconds * 1e9);
	struct epoll_event events[256];
	uint64_t bytes = 0;

	while (now - began < limit_ns) {
		int n = epoll_wait(epoll_fd, events, 256, 100);

		for (int i = 0; i < n; i++)
			bytes += turn(events[i].data.fd, options->upload);
		now = pep_clock_mono_ns();
	}
	*ret_ns = now - began;
	return bytes;
}

static void open_flows(const struct load_options *options, int epoll_fd)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (unsigned int i = 0; i < options->count; i++) {
		struct epoll_event event = {.events = options->upload ? EPOLLOUT : EPOLLIN};

		event.data.fd = load_connect(options, options->upload ? LOAD_SINK : LOAD_SOURCE);
		if (event.data.fd < 0)
			load_fail("connect");
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event) < 0)
			load_fail("epoll_ctl");
	}
}

int load_bulk(const struct load_options *options)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	uint64_t began = pep_clock_mono_ns(), bytes, ns;
	double opening;

	open_flows(options, epoll_fd);
	opening = (double)(pep_clock_mono_ns() - began) / 1e9;
	if (options->warm_up > 0) {
		(void)move(options, epoll_fd, options->warm_up, &ns);
		printf("{\"warm\": true}\n");
		fflush(stdout);
	}
	bytes = move(options, epoll_fd, options->seconds, &ns);
	printf("{\"flows\": %u, \"bytes\": %llu, \"seconds\": %.4f, \"bps\": %.0f, "
	       "\"opening_seconds\": %.3f}\n",
	       options->count, (unsigned long long)bytes, (double)ns / 1e9,
	       (double)bytes * 8e9 / (double)ns, opening);
	/* The result before the end, which takes as long as closing the flows. */
	fflush(stdout);
	return 0;
}

static void sleep_us(long us)
{
	struct timespec ts = {.tv_nsec = us * 1000};

	nanosleep(&ts, NULL);
}

/* Reads stamped records at a fixed rate and says, once a second, how old what it reads is. */
int load_age(const struct load_options *options)
{
	int fd = load_connect(options, LOAD_STAMPS);
	uint64_t began = pep_clock_mono_ns(), now = began, received = 0, sent_ns = 0;
	double next_s = 1;

	if (fd < 0)
		load_fail("connect");
	printf("{\"ages_s\": [");
	while ((double)(now - began) / 1e9 < options->seconds) {
		double elapsed = (double)(now - began) / 1e9;

		while ((double)received < elapsed * options->rate) {
			load_receive_all(fd, chunk, LOAD_RECORD_BYTES);
			memcpy(&sent_ns, chunk, sizeof(sent_ns));
			received += LOAD_RECORD_BYTES;
		}
		now = pep_clock_mono_ns();
		elapsed = (double)(now - began) / 1e9;
		if (elapsed >= next_s) {
			printf("%s%.4f", next_s > 1 ? ", " : "", (double)(now - sent_ns) / 1e9);
			next_s++;
		}
		sleep_us(1000);
		now = pep_clock_mono_ns();
	}
	printf("], \"bps\": %.0f}\n", (double)received * 8e9 / (double)(now - began));
	return 0;
}
