/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_WORKER_H
#define PEP_PROXY_WORKER_H

/*
 * One thread of the data plane with its own event base, gate queue, listeners, flows and memory.
 * The main thread talks to it by mail: small messages over a socket pair, answered in order.
 */

#include "base/conf.h"
#include "proxy/flow.h"

#include <stdint.h>

struct pep_beliefs;
struct pep_clients;
struct pep_guard;
struct pep_local_addrs;
struct pep_stats;
struct pep_worker;

struct pep_worker_params {
	unsigned int index;
	const struct pep_conf *conf; /* read during pep_worker_new only */
	struct pep_stats *stats;     /* borrowed, like the next three */
	const struct pep_beliefs *beliefs;
	struct pep_clients *clients;
	struct pep_guard *guard;
	struct pep_local_addrs *local_addrs; /* a reference is taken */
	uint32_t max_flows;                  /* this worker's share, like the next two */
	uint64_t memory_bytes;
	uint32_t max_pipes;
};

enum pep_mail_type {
	PEP_MAIL_CONF,        /* pointer: struct pep_conf, the sender's again when answered */
	PEP_MAIL_LOCAL_ADDRS, /* pointer: struct pep_local_addrs in force from now on, with a
			       * reference for the worker */
	PEP_MAIL_INTAKE,      /* value: enum pep_intake */
	PEP_MAIL_KILL,        /* value: flow id; result 0 or -ENOENT */
};

/** A message and its answer: the answer is the message with @result set. */
struct pep_mail {
	enum pep_mail_type type;
	int result;
	uint64_t value;
	void *pointer;
	void *context; /* the sender's own */
};

/**
 * Opens everything the worker needs, in the caller's thread, so that what is wrong is known before
 * the daemon is ready. The thread is started by pep_worker_start().
 *
 * Returns 0, or a negative errno with one line for the log, naming the fix, in @error.
 */
int pep_worker_new(const struct pep_worker_params *params, char error[256],
		   struct pep_worker **ret);

/** Returns 0 or a negative errno. */
int pep_worker_start(struct pep_worker *worker);

/** Hangs up on the thread if it runs (it ends, its flows with RST), joins it and frees. NULL is a
 *  no-op. */
void pep_worker_free(struct pep_worker *worker);

/** When the worker's loop last turned, CLOCK_MONOTONIC; it does each PEP_FLOWS_TICK_MS. */
uint64_t pep_worker_last_tick_ns(const struct pep_worker *worker);

/** Sends @mail. Returns 0, or -EAGAIN when too many are unanswered. */
int pep_worker_post(struct pep_worker *worker, const struct pep_mail *mail);

/** The socket of the worker's netfilter queue, for the guard. */
int pep_worker_queue_fd(const struct pep_worker *worker);

/** Readable when answers wait. */
int pep_worker_answer_fd(const struct pep_worker *worker);

/** Takes one answer. Returns 0, or -EAGAIN when there is none. */
int pep_worker_take_answer(struct pep_worker *worker, struct pep_mail *ret);

#endif
