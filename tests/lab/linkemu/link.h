/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_LINK_H
#define PEP_LINKEMU_LINK_H

/*
 * The model of one direction of one link. It sees packet numbers, lengths and times, nothing else,
 * so it runs the same under NFQUEUE and in a unit test.
 *
 *   arrival -> loss -> buffer (drop-tail) -> transmitter (rate or trace) -> delay + jitter ->
 * release
 *
 * Packets leave in the order they came. A dropped packet stays in its place and is "released" as a
 * drop when its turn comes: the kernel finds the head of its queue at once, but has to search for a
 * packet in the middle.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hist.h"
#include "rng.h"
#include "trace.h"

#define PEP_LINK_NAME_SIZE   32
#define PEP_LINK_MAX_CHANGES 128
#define PEP_LINK_NEVER       UINT64_MAX

/** What a scripted event or a command can change while the link runs. */
enum pep_link_what {
	PEP_LINK_WHAT_RATE,
	PEP_LINK_WHAT_LOSS,
	PEP_LINK_WHAT_DELAY,
	PEP_LINK_WHAT_BLOCK, /* nothing is transmitted; packets wait in the buffer */
};

struct pep_link_change {
	enum pep_link_what what;
	uint64_t value; /* bit/s, ns, or 0/1 */
	double share;   /* loss only, 0..1 */
};

struct pep_link_event {
	uint64_t at_ns;    /* from the start of the script */
	uint64_t every_ns; /* repeats after this; 0: once */
	struct pep_link_change change;
};

enum pep_link_jitter {
	PEP_LINK_JITTER_UNIFORM, /* delay +- jitter */
	PEP_LINK_JITTER_NORMAL,  /* jitter is the standard deviation */
};

struct pep_link_conf {
	char name[PEP_LINK_NAME_SIZE];
	uint16_t queue;         /* NFQUEUE number */
	uint64_t rate_bps;      /* bit/s of IP packet lengths; 0: no limit */
	struct pep_trace trace; /* count > 0: in place of the rate */
	uint64_t delay_ns, jitter_ns;
	enum pep_link_jitter jitter;
	uint64_t buffer_bytes;           /* waiting and being transmitted */
	double loss;                     /* random loss, 0..1 */
	double good_to_bad, bad_to_good; /* Gilbert-Elliott, a packet; off when the first is 0 */
	double loss_bad, loss_good;
	uint64_t seed;
	struct pep_link_event events[PEP_LINK_MAX_CHANGES];
	unsigned int n_events;
};

/** Why a packet was dropped. */
enum pep_link_drop {
	PEP_LINK_DROP_NONE,
	PEP_LINK_DROP_LOSS,
	PEP_LINK_DROP_BURST,
	PEP_LINK_DROP_BUFFER,
	PEP_LINK_DROP_COUNT_,
};

struct pep_link_stats {
	uint64_t packets_in, bytes_in, packets_out, bytes_out;
	uint64_t dropped[PEP_LINK_DROP_COUNT_];
	uint64_t loss_runs; /* runs of consecutive losses (random or burst) */
	uint64_t max_packet_bytes, max_backlog_bytes;
	uint64_t first_out_ns, last_out_ns;
	struct pep_hist queue_delay; /* ns, arrival to end of transmission */
	struct pep_hist lateness;    /* ns, actual minus due release */
};

struct pep_link;

/** @conf is copied, its trace is taken over on success. Returns 0 or -ENOMEM. */
int pep_link_new(const struct pep_link_conf *conf, uint64_t now_ns, struct pep_link **ret);
void pep_link_free(struct pep_link *link);

const struct pep_link_conf *pep_link_conf(const struct pep_link *link);
const struct pep_link_stats *pep_link_stats(const struct pep_link *link);
uint64_t pep_link_backlog_bytes(const struct pep_link *link);

/** Script, trace, random numbers and counters start again at @now_ns; packets inside stay. */
void pep_link_restart(struct pep_link *link, uint64_t now_ns);

/** Changes the link from @now_ns on; what was transmitted before stays as it was. */
void pep_link_change(struct pep_link *link, const struct pep_link_change *change, uint64_t now_ns);

/**
 * Packet @id of @bytes came at @arrival_ns. What the link did by then is settled with the first
 * call that names a later time, so a packet told too late waits from there on. Returns 0 or -ENOMEM
 * (not taken).
 */
int pep_link_input(struct pep_link *link, uint32_t id, uint32_t bytes, uint64_t arrival_ns);

/**
 * The next packet whose turn has come by @until_ns, before which every arrival was told: true with
 * its number and fate, false when there is none. @now_ns, not before that, is the clock, for the
 * statistics.
 */
bool pep_link_output(struct pep_link *link, uint64_t until_ns, uint64_t now_ns, uint32_t *ret_id,
		     bool *ret_drop);

/** When to call pep_link_output() next; PEP_LINK_NEVER: not before the next packet or change. */
uint64_t pep_link_next(const struct pep_link *link);

#endif
