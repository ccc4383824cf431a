/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_FLOW_H
#define PEP_PROXY_FLOW_H

/*
 * The flows of one worker, from the SYN at the gate to the last close. All calls come from the
 * worker's thread.
 */

#include "base/conf.h"
#include "base/stats.h"
#include "proxy/gate.h"
#include "proxy/policy.h"
#include "proxy/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct pep_beliefs;
struct pep_clients;
struct pep_local_addrs;
struct pep_flows;

/** What the worker does with new SYNs. */
enum pep_intake {
	PEP_INTAKE_SPLIT,
	PEP_INTAKE_BYPASS, /* the operator said so */
	PEP_INTAKE_DRAIN,  /* the daemon is about to end */
};

struct pep_flows_params {
	struct event_base *base; /* borrowed, like the next four */
	struct pep_pool *pool;
	struct pep_stats *stats;
	const struct pep_beliefs *beliefs; /* shared by all workers, like the next */
	struct pep_clients *clients;       /* shared by all workers */
	struct pep_policy *policy;         /* a reference is taken */
	unsigned int worker;
	uint32_t max_flows;
};

/** Returns 0 or a negative errno. */
int pep_flows_new(const struct pep_flows_params *params, struct pep_flows **ret);

/** Ends every flow with RST (reason shutdown) and frees. NULL is a no-op. */
void pep_flows_free(struct pep_flows *flows);

/** The gate that verdicts go to; must be set before the first SYN. NULL before the gate is freed.
 */
void pep_flows_set_gate(struct pep_flows *flows, struct pep_gate *gate);

/** Flows begun from now on follow @policy; timeouts change for all. A reference is taken. */
void pep_flows_set_policy(struct pep_flows *flows, struct pep_policy *policy);
void pep_flows_set_intake(struct pep_flows *flows, enum pep_intake intake);

/** Addresses of this host: SYNs from one of them are a loop. Borrowed until the next call. */
void pep_flows_set_local_addrs(struct pep_flows *flows, const struct pep_local_addrs *addrs);

/** Lets every SYN that is held go end to end, for the end of the worker. */
void pep_flows_let_go(struct pep_flows *flows);

/* The gate's events. */
void pep_flows_on_syn(struct pep_flows *flows, const struct pep_gate_ticket *ticket,
		      const struct pep_syn *syn);
void pep_flows_on_synack(struct pep_flows *flows, const struct pep_syn *synack);
void pep_flows_on_malformed(struct pep_flows *flows);

/** A connection on the transparent listener; @fd is taken. */
void pep_flows_on_accept(struct pep_flows *flows, int fd, const struct sockaddr_storage *peer);

/** The same, but the connection cannot be kept: it and the flow that waits for it are reset. */
void pep_flows_on_turned_away(struct pep_flows *flows, int fd, const struct sockaddr_storage *peer);

/** Call every PEP_FLOWS_TICK_MS: time-outs and a slice of the samples. */
#define PEP_FLOWS_TICK_MS 50
void pep_flows_tick(struct pep_flows *flows);

/** Ends one flow with RST on both sides. Returns 0 or -ENOENT. */
int pep_flows_kill(struct pep_flows *flows, uint64_t id);

/** Flows in any state. */
uint32_t pep_flows_count(const struct pep_flows *flows);

#endif
