/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_FLOW_H
#define PEP_SIM_FLOW_H

/* One flow: its application, sender, receiver and the ACKs on their way back. Used by world.c. */

#include <stddef.h>

#include "evq.h"
#include "world.h"

#define FLOW_MSS        (SIM_WIRE_BYTES - SIM_TCP_HEADER_BYTES)
#define FLOW_QUICK_ACKS 16 /* the first packets are acknowledged one by one */

/** The event sources of a flow. */
enum flow_slot {
	FLOW_SLOT_ACK,
	FLOW_SLOT_PACE,
	FLOW_SLOT_TIMER,
	FLOW_SLOT_DELACK,
	FLOW_SLOT_START,
	FLOW_SLOT_APP,
	FLOW_SLOT_STOP,
	FLOW_SLOT_COUNT_,
};

struct sim_flow {
	struct sim_tcp tcp;
	const struct sim_flow_conf *conf;
	struct sim_world *world;
	uint64_t forth_ns, back_ns; /* delay behind the bottleneck and of the way back */
	uint64_t handshake_ns;      /* 0 before the start */
	uint64_t started_ns;
	double finished_s;

	/* receiver */
	uint32_t rcv_nxt, out_of_order, unacked;
	uint64_t last_arrival_ns, delack_ns, echo_ns, received;

	/* ACKs in flight: a ring */
	struct sim_ack *acks;
	uint32_t ack_mask, ack_head, ack_tail;
	uint64_t last_ack_ns;

	/* books at the end of the warm-up */
	struct sim_hist rtt;
	uint32_t warm_una, sample_una;
	uint64_t warm_sent, warm_retransmitted, warm_recoveries, warm_rtos, warm_undos;
};

static inline struct sim_flow *sim_flow_of(struct sim_tcp *tp)
{
	return (struct sim_flow *)((char *)tp - offsetof(struct sim_flow, tcp));
}

int sim_flow_init(struct sim_flow *f, struct sim_world *world, const struct sim_flow_conf *conf);
void sim_flow_fini(struct sim_flow *f);

/** The handshake is over. Returns 0 or -ENOMEM. */
int sim_flow_start(struct sim_flow *f, const struct sim_tcp_ops *ops, uint64_t now_ns,
		   uint64_t seed);

/** The application writes; returns when it wants to write again (SIM_NEVER: never). */
uint64_t sim_flow_write(struct sim_flow *f, uint64_t now_ns);

/** The receiver gets packet @seq; returns whether it did not have it. */
bool sim_flow_receive(struct sim_flow *f, uint32_t seq);

int sim_flow_push_ack(struct sim_flow *f, const struct sim_ack *ack);
void sim_flow_note_progress(struct sim_flow *f);
void sim_flow_get_warm(struct sim_flow *f);
void sim_flow_result(const struct sim_flow *f, uint64_t from_ns, uint64_t to_ns,
		     struct sim_flow_result *ret);

#endif
