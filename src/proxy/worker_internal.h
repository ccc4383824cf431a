/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_WORKER_INTERNAL_H
#define PEP_PROXY_WORKER_INTERNAL_H

/*
 * Shared by worker.c and worker_open.c. Invariant: after pep_worker_start() everything in a worker
 * but the main thread's end of `mail` and `thread` belongs to the worker's thread.
 */

#include "proxy/worker.h"

#include "base/log.h"
#include "proxy/gate.h"

#include <event2/util.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
	WORKER_MAIL_MAIN,
	WORKER_MAIL_OWN
}; /* ends of the mail socket pair */

struct listener {
	int fd;
	struct event *event;
	bool paused; /* until the next tick: accept() cannot succeed now */
};

struct pep_worker {
	struct pep_worker_params params;
	struct event_base *base;
	struct pep_policy *policy;
	struct pep_pool *pool;
	struct pep_flows *flows;
	struct pep_gate *gate;
	struct listener listeners[2]; /* IPv4, IPv6 */
	int reserve_fd;               /* given up to be able to turn a client away */
	int mail[2];
	struct event *mail_event, *tick_event;
	uint64_t next_tick_ns;
	_Atomic uint64_t last_tick_ns; /* read by the main thread */
	struct pep_log_limit accept_limit;
	pthread_t thread;
	bool running;
};

/* What the event base and the gate call. */
void worker_on_acceptable(evutil_socket_t fd, short what, void *worker);
void worker_on_mail(evutil_socket_t fd, short what, void *worker);
void worker_on_tick(evutil_socket_t fd, short what, void *worker);
void worker_on_syn(void *worker, const struct pep_gate_ticket *ticket, const struct pep_syn *syn);
void worker_on_synack(void *worker, const struct pep_syn *synack);
void worker_on_malformed(void *worker, int error);

/** A descriptor to give up later; -1 without one. */
int worker_open_reserve(void);

#endif
