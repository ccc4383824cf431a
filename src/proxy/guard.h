/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_GUARD_H
#define PEP_PROXY_GUARD_H

/*
 * The guard: a small process beside the daemon that reads a worker's netfilter queue in its place
 * while the worker stands still, and lets every SYN go end to end. It cuts no flow, so it may act
 * long before a watchdog dares to kill; and when the daemon is killed, it lets go what waits in the
 * queues, which the kernel would drop, before it ends itself.
 */

#include "base/conf.h"

#include <stdint.h>

/** A worker that has not turned for so long is stood in for; it does each PEP_FLOWS_TICK_MS. */
#define PEP_GUARD_STALL_MS 300

struct pep_guard;

struct pep_guard_params {
	unsigned int n_queues; /* one of each worker */
	uint16_t first_queue;
	uint32_t mark_mask;
	int fds[PEP_CONF_MAX_WORKERS]; /* the workers' netlink sockets; the guard has copies */
};

/** Makes the memory that workers and guard share; no process yet. Returns 0 or -ENOMEM. */
int pep_guard_new(struct pep_guard **ret);

/**
 * Starts the process. Call it with the privileges dropped and before threads run. Returns 0 or a
 * negative errno.
 */
int pep_guard_start(struct pep_guard *guard, const struct pep_guard_params *params);

/** Tells the process that the daemon ends, waits until it has ended too, frees. NULL is a no-op. */
void pep_guard_free(struct pep_guard *guard);

/** Worker @queue turns. Returns how many SYNs the guard has let go since the last call. */
uint64_t pep_guard_tick(struct pep_guard *guard, unsigned int queue, uint64_t now_ns);

/** Worker @queue does not read its queue any more: the guard does, from now on. */
void pep_guard_leave(struct pep_guard *guard, unsigned int queue);

/** Readable when the process has ended before its time; -1 while there is none. */
int pep_guard_fd(const struct pep_guard *guard);

#endif
