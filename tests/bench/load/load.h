/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BENCH_LOAD_H
#define PEP_BENCH_LOAD_H

/*
 * benchload: the servers and clients of the benchmark. Each client prints one JSON object. Whatever
 * fails ends the program with one line and exit code 1.
 */

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/* Services of `benchload serve`: one port each, counted from the first one. */
enum load_service {
	LOAD_ECHO,   /* returns what it gets */
	LOAD_ANSWER, /* three bytes after the first ones that come, then FIN */
	LOAD_SOURCE, /* sends until the client closes */
	LOAD_SINK,   /* reads until the client closes */
	LOAD_STAMPS, /* sends records of LOAD_RECORD_BYTES that begin with the time of sending */
	LOAD_SERVICE_COUNT_,
};

#define LOAD_RECORD_BYTES 1024

struct load_options {
	struct sockaddr_in to; /* server, port of the service LOAD_ECHO */
	unsigned int count;    /* of flows, samples or packets */
	unsigned int bytes;    /* of a message */
	double seconds;
	double warm_up; /* seconds before those, not counted */
	double rate;    /* bytes or packets per second */
	int upload;
	unsigned int receive_buffer; /* SO_RCVBUF; 0 leaves it */
	uint32_t sources;            /* SYN generator: number of client addresses */
	struct in_addr from;
};

_Noreturn void load_fail(const char *what);
_Noreturn void load_fail_text(const char *text);
void *load_alloc(size_t count, size_t size);

/** A connected TCP socket to @service, or -1 with errno. Blocking, without Nagle. */
int load_connect(const struct load_options *options, enum load_service service);

/** Whole messages on a blocking socket. */
void load_send_all(int fd, const void *data, size_t n);
void load_receive_all(int fd, void *data, size_t n);

/** Sorts @values and prints {"count": .., "p50_us": .., "p99_us": .., "max_us": ..}. */
void load_print_times(uint64_t *values_ns, size_t count);

int load_serve(const struct load_options *options);
int load_echo(const struct load_options *options);
int load_first_byte(const struct load_options *options);
int load_idle(const struct load_options *options);
int load_age(const struct load_options *options);
int load_bulk(const struct load_options *options);
int load_syn(const struct load_options *options);

#endif
