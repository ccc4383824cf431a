/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One thread, one epoll: all services of the server host. */
#include "load.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FDS     65536
#define CHUNK_BYTES 131072
#define TURN_CHUNKS 8 /* then the other connections get their turn */

struct connection {
	uint8_t service;
	uint8_t listening;
	uint16_t record_at; /* LOAD_STAMPS: bytes of the record already sent */
	uint8_t *record;
};

static struct connection connections[MAX_FDS];
static uint8_t chunk[CHUNK_BYTES];
static int epoll_fd;

static void watch(int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		load_fail("epoll_ctl");
}

static void end(int fd)
{
	free(connections[fd].record);
	connections[fd] = (struct connection){0};
	close(fd);
}

static void accept_all(int listener)
{
	uint8_t service = connections[listener].service;

	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;

		if (fd < 0)
			return;
		if (fd >= MAX_FDS) {
			close(fd);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		connections[fd] = (struct connection){.service = service};
		if (service == LOAD_STAMPS)
			connections[fd].record = load_alloc(1, LOAD_RECORD_BYTES);
		watch(fd, service == LOAD_SOURCE || service == LOAD_STAMPS ? EPOLLOUT | EPOLLRDHUP
									   : EPOLLIN | EPOLLRDHUP);
	}
}

static void echo(int fd)
{
	ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

	if (n > 0)
		n = send(fd, chunk, (size_t)n, MSG_NOSIGNAL);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		end(fd);
}

static void answer(int fd)
{
	if (recv(fd, chunk, sizeof(chunk), 0) > 0)
		(void)send(fd, "ok\n", 3, MSG_NOSIGNAL);
	end(fd);
}

static void drain(int fd)
{
	for (int i = 0; i < TURN_CHUNKS; i++) {
		ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			end(fd);
			return;
		}
	}
}

static void source(int fd)
{
	for (int i = 0; i < TURN_CHUNKS; i++) {
		if (send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) >= 0)
			continue;
		if (errno != EAGAIN)
			end(fd);
		return;
	}
}

/* A record is stamped when its first byte goes to the kernel. */
static void stamps(int fd)
{
	struct connection *c = &connections[fd];

	for (int i = 0; i < 64; i++) {
		uint64_t now = pep_clock_mono_ns();
		ssize_t n;

		if (c->record_at == 0)
			memcpy(c->record, &now, sizeof(now));
		n = send(fd, c->record + c->record_at, LOAD_RECORD_BYTES - c->record_at,
			 MSG_NOSIGNAL);
		if (n < 0) {
			if (errno != EAGAIN)
				end(fd);
			return;
		}
		c->record_at = (uint16_t)((c->record_at + n) % LOAD_RECORD_BYTES);
	}
}

static void serve(int fd, uint32_t events)
{
	enum load_service service = connections[fd].service;

	if (connections[fd].listening) {
		accept_all(fd);
		return;
	}
	if ((events & (EPOLLERR | EPOLLHUP)) ||
	    ((events & EPOLLRDHUP) && (service == LOAD_SOURCE || service == LOAD_STAMPS))) {
		end(fd);
		return;
	}
	switch (service) {
	case LOAD_ECHO:
		echo(fd);
		break;
	case LOAD_ANSWER:
		answer(fd);
		break;
	case LOAD_SOURCE:
		source(fd);
		break;
	case LOAD_SINK:
		drain(fd);
		break;
	case LOAD_STAMPS:
		stamps(fd);
		break;
	case LOAD_SERVICE_COUNT_:
		break;
	}
}

static void open_service(const struct load_options *options, enum load_service service)
{
	struct sockaddr_in at = options->to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

	at.sin_port = htons((uint16_t)(ntohs(at.sin_port) + service));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 16384) < 0)
		load_fail("listen");
	connections[fd] = (struct connection){.service = (uint8_t)service, .listening = 1};
	watch(fd, EPOLLIN);
}

int load_serve(const struct load_options *options)
{
	struct epoll_event events[256];
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		load_fail("epoll_create1");
	for (int s = 0; s < LOAD_SERVICE_COUNT_; s++)
		open_service(options, (enum load_service)s);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll_fd, events, 256, -1);

		for (int i = 0; i < n; i++)
			serve(events[i].data.fd, events[i].events);
		if (n < 0 && errno != EINTR)
			load_fail("epoll_wait");
	}
}
