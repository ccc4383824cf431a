/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_DAEMON_INTERNAL_H
#define PEP_PROXY_DAEMON_INTERNAL_H

/* Shared by daemon.c (set-up and timers) and daemon_commands.c (what the control socket asks). */

#include "proxy/control.h"
#include "proxy/daemon.h"
#include "proxy/flow.h"
#include "proxy/worker.h"

#include <stdbool.h>
#include <stdint.h>

struct event;
struct event_base;
struct pep_beliefs;
struct pep_clients;
struct pep_guard;
struct pep_local_addrs;
struct pep_stats;

struct daemon_worker {
	struct pep_worker *worker;
	struct event *answer_event;
	uint64_t addrs_generation; /* of the local addresses that it was given */
	struct pep_daemon *daemon;
};

struct pep_daemon {
	const char *conf_path;
	struct pep_conf *conf;
	uint64_t generation;
	uint64_t start_ns;
	struct event_base *base;
	struct pep_stats *stats;
	struct pep_beliefs *beliefs;
	struct pep_clients *clients;
	struct pep_local_addrs *local_addrs;
	uint64_t addrs_generation;
	struct pep_guard *guard;
	struct event *guard_event;
	struct pep_control *control;
	struct event *heartbeat_event, *watch_event, *signal_events[3];
	struct daemon_worker workers[PEP_CONF_MAX_WORKERS];
	unsigned int n_workers;
	uint32_t max_flows;
	bool bypass, draining;
	uint64_t drain_deadline_ns;
	uint64_t fallback_logged_ns;
};

/**
 * A question to all workers: each answers once; @done is called with the best result (0 if any
 * worker gave 0) and frees @user.
 */
typedef void daemon_done_fn(struct pep_daemon *daemon, int result, void *user);
int daemon_ask_all(struct pep_daemon *daemon, const struct pep_mail *mail, daemon_done_fn *done,
		   void *user);

/** Puts bypass/draining in force on all workers and says so in the stats. */
int daemon_set_intake(struct pep_daemon *daemon, daemon_done_fn *done, void *user);

/** Reads the file again; the text of what is wrong goes to @errors (512 bytes). */
int daemon_reload(struct pep_daemon *daemon, struct pep_conf **ret_before, char errors[512]);

/** daemon_open.c: opens everything, drops the privileges and starts the workers; logs what is
 * wrong. Returns 0 or a negative errno; pep_daemon_free takes what was opened. */
int daemon_open(struct pep_daemon *daemon);

/** Signals, timers and the workers' answers. */
int daemon_open_events(struct pep_daemon *daemon);

/** Looks out for the end of the guard. Returns 0 or -ENOMEM. */
int daemon_watch_guard(struct pep_daemon *daemon);

/** Flows in any state, all workers. */
uint64_t daemon_flows(const struct pep_daemon *daemon, uint64_t *ret_pending);

extern const struct pep_control_command daemon_commands[];

#endif
