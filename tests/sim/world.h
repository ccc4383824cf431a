/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_WORLD_H
#define PEP_SIM_WORLD_H

/*
 * One simulation: senders, one bottleneck, receivers, and the way back.
 *
 * A packet waits at the bottleneck, travels half its flow's RTT to the receiver, and the ACK
 * travels the other half back. Only the bottleneck queues and only behind it packets get lost; ACKs
 * never do. Jitter delays each packet (or ACK) by a random time but never changes the order within
 * a flow.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cca.h"
#include "hist.h"
#include "link.h"

#define SIM_MAX_FLOWS  256
#define SIM_WIRE_BYTES 1500u /* a full packet at the bottleneck */

struct sim_flow_conf {
	const struct sim_cca *cca;
	const void *cca_conf; /* borrowed; the control's parameters */
	uint64_t rtt_ns;      /* without queue, service time and jitter */
	uint64_t start_ns, stop_ns;
	uint64_t bytes;        /* to send; 0: no end */
	uint64_t app_rate;     /* bytes/s the application offers; 0: always enough */
	uint64_t app_chunk;    /* bytes per write of such an application; 0: one packet */
	uint32_t ack_every;    /* packets per ACK, >= 1 */
	uint64_t ack_delay_ns; /* the longest such an ACK is held back */
};

struct sim_conf {
	struct sim_link_conf link;
	struct sim_flow_conf flows[SIM_MAX_FLOWS];
	unsigned int n_flows;
	uint64_t duration_ns, warmup_ns; /* results count from warmup on */
	uint64_t jitter_ns, ack_jitter_ns;
	uint64_t seed;
	uint64_t series_ns; /* distance of samples over time; 0: none */
};

struct sim_flow_result {
	double goodput_bps;   /* payload bits/s acknowledged while the flow was active */
	double retrans_share; /* of the packets sent */
	double rtt_ms;        /* mean of all ACKs */
	uint64_t sent, retransmitted, recoveries, rtos, undos;
	uint64_t bytes;         /* payload acknowledged after warm-up */
	double finished_s;      /* when all bytes were acknowledged; < 0: not finished */
	uint32_t cwnd, srtt_us; /* at the end */
};

struct sim_sample {
	double at_s;
	double queue_ms; /* a packet arriving now would wait */
	struct sim_sample_flow {
		double goodput_bps; /* since the sample before */
		uint32_t cwnd, srtt_us;
		uint64_t pacing_bps;
	} flows[];
};

struct sim_result {
	struct sim_flow_result flows[SIM_MAX_FLOWS];
	unsigned int n_flows;
	double goodput_bps;   /* sum */
	double utilisation;   /* bytes through the link / what it could carry */
	double retrans_share; /* of all packets sent */
	double drop_share, loss_share;
	double jain;
	double queue_mean_ms, queue_p50_ms, queue_p95_ms, queue_p99_ms;
	uint64_t rtos;
	/* books of the whole run, for conservation checks */
	uint64_t sent, passed, dropped, lost, received;
};

struct sim_world;

/**
 * Prepares a run of @conf, which is borrowed and must outlive it. Returns 0 and stores a new world
 * in
 * @ret (free with sim_world_free), or -ENOMEM or -EINVAL.
 */
int sim_world_new(const struct sim_conf *conf, struct sim_world **ret);
void sim_world_free(struct sim_world *w);

/** Runs to the end and fills @ret. Returns 0 or a negative errno. */
int sim_world_run(struct sim_world *w, struct sim_result *ret);

/** Sample number @i over time, or NULL past the last. */
const struct sim_sample *sim_world_sample(const struct sim_world *w, size_t i);

/** The sender of flow @i, for tests; NULL before it has started. */
const struct sim_tcp *sim_world_tcp(const struct sim_world *w, unsigned int i);

/** New, run, free. */
int sim_run(const struct sim_conf *conf, struct sim_result *ret);

#endif
