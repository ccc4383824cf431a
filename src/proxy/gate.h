/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_GATE_H
#define PEP_PROXY_GATE_H

/*
 * The SYN gate: one NFQUEUE of a worker. The rules send it every bare SYN from the radio side that
 * has no mark yet, and SYN-ACKs with a DSCP for our wired legs. Each packet gets exactly one
 * verdict.
 */

#include "base/mark.h"
#include "proxy/syn.h"

#include <stdint.h>

struct event_base;
struct pep_gate;

/** A queued packet, as the owner of its verdict keeps it. */
struct pep_gate_ticket {
	uint32_t id;   /* network order, as the kernel gave it */
	uint32_t mark; /* the packet's mark, whose foreign bits are kept */
};

struct pep_gate_handler {
	/** A SYN. The handler owes one verdict for @ticket, now or later. */
	void (*on_syn)(void *context, const struct pep_gate_ticket *ticket,
		       const struct pep_syn *syn);
	/** A SYN-ACK of a server for one of our wired legs; the gate accepts it itself. */
	void (*on_synack)(void *context, const struct pep_syn *synack);
	/** A packet that could not be parsed (@error < 0); the gate bypasses it itself. */
	void (*on_malformed)(void *context, int error);
	void *context;
};

struct pep_gate_params {
	uint16_t queue;
	uint32_t mark_mask;
	unsigned int worker;
	uint32_t max_length; /* packets the kernel keeps; beyond it they pass unmarked */
};

struct pep_gate_counters {
	uint64_t packets, overruns, verdict_errors;
};

/**
 * Binds the queue and reads it from @base's thread.
 *
 * Returns 0; -EPERM without CAP_NET_ADMIN, -EBUSY when another process has the queue, or another
 * negative errno. @handler is copied.
 */
int pep_gate_new(struct event_base *base, const struct pep_gate_params *params,
		 const struct pep_gate_handler *handler, struct pep_gate **ret);

/** Handles what is queued now, as the event would. */
void pep_gate_run(struct pep_gate *gate);

/** Sends verdicts that the kernel did not take before; call it now and then. */
void pep_gate_flush(struct pep_gate *gate);

/** Unbinds: the kernel drops what is still queued, the clients send again. NULL is a no-op. */
void pep_gate_free(struct pep_gate *gate);

/** The packet is looked at by the rules again, with the mark of @kind. */
void pep_gate_mark(struct pep_gate *gate, const struct pep_gate_ticket *ticket,
		   enum pep_mark_kind kind);
void pep_gate_drop(struct pep_gate *gate, const struct pep_gate_ticket *ticket);

/** The netlink socket that the queue is bound to; stays the gate's. */
int pep_gate_fd(const struct pep_gate *gate);

void pep_gate_get_counters(const struct pep_gate *gate, struct pep_gate_counters *ret);

#endif
