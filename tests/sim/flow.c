/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: the receiver has all packets below rcv_nxt, and out_of_order of those above. */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>

int sim_flow_init(struct sim_flow *f, struct sim_world *world, const struct sim_flow_conf *conf)
{
	*f = (struct sim_flow){
		.conf = conf,
		.world = world,
		.forth_ns = conf->rtt_ns / 2,
		.back_ns = conf->rtt_ns - conf->rtt_ns / 2,
		.finished_s = -1,
		.delack_ns = SIM_NEVER,
		.ack_mask = 255,
	};
	f->tcp.timer_ns = f->tcp.pace_ns = SIM_NEVER;
	f->acks = malloc((f->ack_mask + 1) * sizeof(*f->acks));
	return f->acks ? 0 : -ENOMEM;
}

void sim_flow_fini(struct sim_flow *f)
{
	sim_tcp_fini(&f->tcp);
	free(f->acks);
	f->acks = NULL;
}

int sim_flow_start(struct sim_flow *f, const struct sim_tcp_ops *ops, uint64_t now_ns,
		   uint64_t seed)
{
	f->started_ns = now_ns;
	return sim_tcp_init(&f->tcp, ops, f->conf->cca, f->conf->cca_conf, now_ns,
			    (uint32_t)(f->handshake_ns / 1000), FLOW_MSS, seed);
}

static uint32_t all_packets(const struct sim_flow_conf *conf)
{
	return conf->bytes ? (uint32_t)((conf->bytes + FLOW_MSS - 1) / FLOW_MSS) : UINT32_MAX;
}

uint64_t sim_flow_write(struct sim_flow *f, uint64_t now_ns)
{
	uint64_t chunk = f->conf->app_chunk ? f->conf->app_chunk : FLOW_MSS, bytes, n;
	uint32_t all = all_packets(f->conf);

	if (!f->conf->app_rate) {
		sim_tcp_write(&f->tcp, all);
		return SIM_NEVER;
	}
	n = (uint64_t)((double)(now_ns - f->started_ns) * 1e-9 * (double)f->conf->app_rate /
			       (double)chunk +
		       1e-6) +
	    1;
	bytes = n * chunk;
	if (bytes / FLOW_MSS >= all) {
		sim_tcp_write(&f->tcp, all);
		return SIM_NEVER;
	}
	sim_tcp_write(&f->tcp, (uint32_t)(bytes / FLOW_MSS));
	return f->started_ns + (uint64_t)((double)(n * chunk) * 1e9 / (double)f->conf->app_rate) +
	       1;
}

bool sim_flow_receive(struct sim_flow *f, uint32_t seq)
{
	struct sim_pkt *p = sim_tcp_pkt(&f->tcp, seq);

	if (seq < f->rcv_nxt || (p->flags & SIM_PKT_RECEIVED))
		return false;
	if (seq > f->rcv_nxt) {
		p->flags |= SIM_PKT_RECEIVED;
		f->out_of_order++;
		return true;
	}
	f->rcv_nxt++;
	while (f->out_of_order && f->rcv_nxt < f->tcp.nxt &&
	       (sim_tcp_pkt(&f->tcp, f->rcv_nxt)->flags & SIM_PKT_RECEIVED)) {
		f->rcv_nxt++;
		f->out_of_order--;
	}
	return true;
}

int sim_flow_push_ack(struct sim_flow *f, const struct sim_ack *ack)
{
	if (f->ack_tail - f->ack_head > f->ack_mask) {
		uint32_t size = (f->ack_mask + 1) * 2;
		struct sim_ack *acks = malloc(size * sizeof(*acks));

		if (!acks)
			return -ENOMEM;
		for (uint32_t i = f->ack_head; i != f->ack_tail; i++)
			acks[i & (size - 1)] = f->acks[i & f->ack_mask];
		free(f->acks);
		f->acks = acks;
		f->ack_mask = size - 1;
	}
	f->acks[f->ack_tail++ & f->ack_mask] = *ack;
	return 0;
}

void sim_flow_note_progress(struct sim_flow *f)
{
	if (f->finished_s < 0 && f->conf->bytes && f->tcp.una >= all_packets(f->conf))
		f->finished_s = (double)f->tcp.now_ns / 1e9;
}

void sim_flow_get_warm(struct sim_flow *f)
{
	f->warm_una = f->tcp.una;
	f->warm_sent = f->tcp.sent;
	f->warm_retransmitted = f->tcp.retransmitted;
	f->warm_recoveries = f->tcp.recoveries;
	f->warm_rtos = f->tcp.rtos;
	f->warm_undos = f->tcp.undos;
}

void sim_flow_result(const struct sim_flow *f, uint64_t from_ns, uint64_t to_ns,
		     struct sim_flow_result *ret)
{
	uint64_t from = f->conf->start_ns > from_ns ? f->conf->start_ns : from_ns;
	uint64_t to = f->conf->stop_ns < to_ns ? f->conf->stop_ns : to_ns;
	const struct sim_tcp *tp = &f->tcp;

	*ret = (struct sim_flow_result){
		.sent = tp->sent - f->warm_sent,
		.retransmitted = tp->retransmitted - f->warm_retransmitted,
		.recoveries = tp->recoveries - f->warm_recoveries,
		.rtos = tp->rtos - f->warm_rtos,
		.undos = tp->undos - f->warm_undos,
		.bytes = (uint64_t)(tp->una - f->warm_una) * FLOW_MSS,
		.rtt_ms = sim_hist_mean(&f->rtt) / 1e6,
		.finished_s = f->finished_s,
		.cwnd = tp->cwnd,
		.srtt_us = tp->srtt_us >> 3,
	};
	if (f->finished_s >= 0 && (uint64_t)(f->finished_s * 1e9) < to)
		to = (uint64_t)(f->finished_s * 1e9);
	if (to > from)
		ret->goodput_bps = (double)ret->bytes * 8e9 / (double)(to - from);
	if (ret->sent)
		ret->retrans_share = (double)ret->retransmitted / (double)ret->sent;
}
