/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_LINK_H
#define PEP_SIM_LINK_H

/*
 * The bottleneck: one first-in first-out queue with a droptail buffer, served at a fixed rate, at a
 * rate that changes at given times, or by a capacity trace; packets may get lost behind it.
 *
 * Because the queue is FIFO, the time a packet leaves is known when it comes in. That is why the
 * link needs no events of its own.
 */

#include <stddef.h>
#include <stdint.h>

#include "prng.h"
#include "trace.h"

#define SIM_LINK_MAX_STEPS 64

struct sim_step {
	uint64_t at_ns;
	uint64_t rate; /* bytes per second from then on; 0 is an outage */
};

struct sim_link_conf {
	struct sim_step steps[SIM_LINK_MAX_STEPS]; /* rising in time; the first is at 0 */
	unsigned int n_steps;
	const struct sim_trace *trace; /* borrowed; when set, steps are not used */
	uint64_t buffer_bytes;         /* waiting packets, without the one in service */
	uint32_t buffer_packets;       /* 0: only bytes count */
	double loss;                   /* random loss behind the queue, 0..1 */
	double burst_start,
		burst_end; /* Gilbert-Elliott: chance per packet to go bad, to recover */
	double burst_loss; /* loss while bad; 0 turns the model off */
};

enum sim_fate {
	SIM_FATE_PASSED,
	SIM_FATE_DROPPED, /* the buffer was full */
	SIM_FATE_LOST,    /* random or burst loss; it did use the link */
};

struct sim_link {
	struct sim_link_conf conf;
	struct sim_prng prng;
	uint64_t loss_threshold, start_threshold, end_threshold, bad_threshold;
	bool bad; /* Gilbert-Elliott state */

	unsigned int step;
	uint64_t busy_until_ns;
	size_t chance;        /* trace: the next one */
	uint64_t round_ms;    /* trace: start of the current repetition */
	uint32_t chance_left; /* trace: bytes left of the last chance used */

	struct sim_waiting {
		uint64_t start_ns; /* when it leaves the buffer */
		uint32_t bytes;
	} * ring;
	uint32_t ring_size, head, tail; /* ring_size is a power of two */
	uint64_t queued_bytes;

	uint64_t passed, dropped, lost, passed_bytes;
};

/** @seed selects the random losses. Returns 0 or -ENOMEM. */
int sim_link_init(struct sim_link *l, const struct sim_link_conf *conf, uint64_t seed);
void sim_link_fini(struct sim_link *l);

/**
 * A packet of @bytes arrives at @now_ns; calls must come in time order. Unless it was dropped,
 * *@ret_depart_ns gets the time its last byte leaves and *@ret_wait_ns the time it waits in the
 * buffer. Returns the fate, or -ENOMEM.
 */
int sim_link_send(struct sim_link *l, uint64_t now_ns, uint32_t bytes, uint64_t *ret_depart_ns,
		  uint64_t *ret_wait_ns);

/** How long a packet that came at @now_ns would wait. Changes nothing but the books. */
uint64_t sim_link_wait(struct sim_link *l, uint64_t now_ns);

/** What the link could have carried between two times, in bytes. */
double sim_link_capacity(const struct sim_link *l, uint64_t from_ns, uint64_t to_ns);

#endif
