/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_CCA_H
#define PEP_SIM_CCA_H

/*
 * What a congestion control looks like to the simulated sender. The callbacks are those of Linux'
 * tcp_congestion_ops and come in the same order.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tcp.h"

struct sim_cca {
	const char *name;
	const char *help;
	size_t state_size;
	size_t conf_size; /* parameters, filled by defaults() and set() */

	/** Default parameters into @conf. NULL: there are none. */
	void (*defaults)(void *conf);
	/** Sets one parameter. Returns 0, -ENOENT (no such key) or -EINVAL. */
	int (*set)(void *conf, const char *key, const char *value);
	/** Prints the parameters for --help; may be NULL. */
	void (*print_params)(FILE *out);

	void (*init)(struct sim_tcp *tp, const void *conf);
	uint32_t (*ssthresh)(struct sim_tcp *tp);
	void (*cong_avoid)(struct sim_tcp *tp, uint32_t acked); /* one of these two */
	void (*cong_control)(struct sim_tcp *tp, const struct sim_rate *rs);
	uint32_t (*undo_cwnd)(struct sim_tcp *tp); /* NULL: max(cwnd, prior_cwnd) */
	void (*set_state)(struct sim_tcp *tp, enum sim_ca_state next);          /* may be NULL */
	void (*event)(struct sim_tcp *tp, enum sim_ca_event event);             /* may be NULL */
	void (*pkts_acked)(struct sim_tcp *tp, uint32_t acked, int64_t rtt_us); /* may be NULL */
	uint32_t (*min_segs)(struct sim_tcp *tp); /* of a paced burst; NULL: 2 */
	/** The control's own view as "key=value ..." for traces; may be NULL. */
	void (*describe)(const struct sim_tcp *tp, FILE *out);
};

/** The control called @name, or NULL. */
const struct sim_cca *sim_cca_find(const char *name);

/** Walks the controls: number @i, or NULL past the last. */
const struct sim_cca *sim_cca_get(size_t i);

/* Growth as shared by loss-based controls. */

/** Slow start by @acked packets; returns what is left for congestion avoidance. */
uint32_t sim_cca_slow_start(struct sim_tcp *tp, uint32_t acked);
/** Adds one packet per @window acknowledged. */
void sim_cca_additive(struct sim_tcp *tp, uint32_t window, uint32_t acked);

#endif
