/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_HTTP_SERVER_H
#define PEP_MON_HTTP_SERVER_H

/*
 * A small HTTP/1.1 server on libevent's bufferevents: GET and HEAD, keep-alive, everything bounded.
 * No client can hold up another: a request's head must be complete in time, and when there are too
 * many connections the one that has been waiting longest for a request makes room.
 */

#include <stdint.h>

#include "mon/http_parse.h"
#include "mon/page.h"

struct event_base;
struct pep_http_server;

struct pep_http_limits {
	unsigned int connections; /* open at the same time */
	unsigned int head_ms;     /* from a request's first byte to the end of its head: then 408 */
	unsigned int idle_ms;     /* without a request: then closed */
	unsigned int write_ms;    /* without progress of an answer: then closed */
};

extern const struct pep_http_limits pep_http_default_limits;

/** Answers @request with a page (its reference goes to the server), or NULL for a 500. */
typedef struct pep_page *pep_http_handler(const struct pep_http_request *request, void *user);

struct pep_http_counts {
	uint64_t requests, refused_connections;
	unsigned int connections;
};

/** @base is borrowed. Returns 0 and a new server, or -ENOMEM. */
int pep_http_server_new(struct event_base *base, const struct pep_http_limits *limits,
			pep_http_handler *handler, void *user, struct pep_http_server **ret);

/** Closes everything. NULL is a no-op. */
void pep_http_server_free(struct pep_http_server *server);

/** Serves the listening socket @fd, which is taken on success. Up to 8 of them. */
int pep_http_server_listen(struct pep_http_server *server, int fd);

void pep_http_server_counts(const struct pep_http_server *server, struct pep_http_counts *ret);

#endif
