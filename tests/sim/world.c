/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant: per flow both directions are first-in first-out, so the times in a flow's ring of ACKs
 * never decrease and only its head is in the event queue.
 *
 * The receiver is run when the packet is put on the wire, with the time of its arrival: nothing
 * that happens in between can change what it does.
 */
#include "world.h"
#include "evq.h"
#include "flow.h"

#include <errno.h>
#include <stdlib.h>

enum world_slot {
	WORLD_SLOT_WARM, /* the measurement starts */
	WORLD_SLOT_SAMPLE,
	WORLD_SLOT_COUNT_,
};

struct sim_world {
	const struct sim_conf *conf;
	struct sim_evq events;
	struct sim_link link;
	struct sim_prng jitter;
	struct sim_hist queue;
	uint64_t now_ns;
	bool warm, failed;
	uint64_t warm_passed_bytes, warm_dropped, warm_lost;
	struct sim_sample **samples;
	size_t n_samples;
	unsigned int n_flows;
	struct sim_flow flows[];
};

static uint32_t slot_of(const struct sim_world *w, const struct sim_flow *f, enum flow_slot slot)
{
	return WORLD_SLOT_COUNT_ + (uint32_t)(f - w->flows) * FLOW_SLOT_COUNT_ + slot;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void send_ack(struct sim_world *w, struct sim_flow *f, uint64_t now, uint32_t sack)
{
	uint64_t at = now + f->back_ns + sim_prng_below64(&w->jitter, w->conf->ack_jitter_ns);

	at = max64(at, f->last_ack_ns);
	f->last_ack_ns = at;
	if (sim_flow_push_ack(f, &(struct sim_ack){at, f->echo_ns, f->rcv_nxt, sack}) < 0)
		w->failed = true;
	if (f->ack_tail - f->ack_head == 1)
		sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_ACK), at);
	f->unacked = 0;
	if (f->delack_ns != SIM_NEVER) {
		f->delack_ns = SIM_NEVER;
		sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_DELACK), SIM_NEVER);
	}
}

static void receive(struct sim_world *w, struct sim_flow *f, uint32_t seq, uint64_t at)
{
	uint32_t hole = f->out_of_order;
	bool news;

	if (f->delack_ns <= at)
		send_ack(w, f, f->delack_ns, SIM_TCP_NIL);
	f->received++;
	if (!f->unacked)
		f->echo_ns = sim_tcp_pkt(&f->tcp, seq)->sent_ns;
	news = sim_flow_receive(f, seq);
	if (!news || seq >= f->rcv_nxt) {
		f->echo_ns = sim_tcp_pkt(&f->tcp, seq)->sent_ns;
		send_ack(w, f, at, news ? seq : SIM_TCP_NIL);
		return;
	}
	f->unacked++;
	if (hole || f->unacked >= f->conf->ack_every || f->received <= FLOW_QUICK_ACKS) {
		send_ack(w, f, at, SIM_TCP_NIL);
	} else if (f->unacked == 1) {
		f->delack_ns = at + f->conf->ack_delay_ns;
		sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_DELACK), f->delack_ns);
	}
}

static void wire(struct sim_tcp *tp, uint32_t seq)
{
	struct sim_flow *f = sim_flow_of(tp);
	struct sim_world *w = f->world;
	uint64_t depart, wait, at;
	int fate = sim_link_send(&w->link, w->now_ns, SIM_WIRE_BYTES, &depart, &wait);

	if (fate < 0)
		w->failed = true;
	if (fate == SIM_FATE_DROPPED || fate < 0)
		return;
	if (w->warm)
		sim_hist_add(&w->queue, wait);
	if (fate == SIM_FATE_LOST)
		return;
	at = depart + f->forth_ns + sim_prng_below64(&w->jitter, w->conf->jitter_ns);
	at = max64(at, f->last_arrival_ns);
	f->last_arrival_ns = at;
	receive(w, f, seq, at);
}

static const struct sim_tcp_ops tcp_ops = {.transmit = wire};

int sim_world_new(const struct sim_conf *conf, struct sim_world **ret)
{
	struct sim_world *w;
	int r = -ENOMEM;

	if (!conf->n_flows || conf->n_flows > SIM_MAX_FLOWS || conf->warmup_ns >= conf->duration_ns)
		return -EINVAL;
	w = calloc(1, sizeof(*w) + conf->n_flows * sizeof(w->flows[0]));
	if (!w)
		return -ENOMEM;
	w->conf = conf;
	w->n_flows = conf->n_flows;
	if (sim_evq_init(&w->events, WORLD_SLOT_COUNT_ + w->n_flows * FLOW_SLOT_COUNT_) < 0)
		goto fail;
	if (sim_link_init(&w->link, &conf->link, conf->seed) < 0)
		goto fail;
	sim_prng_seed(&w->jitter, conf->seed, 3);
	for (unsigned int i = 0; i < w->n_flows; i++) {
		r = sim_flow_init(&w->flows[i], w, &conf->flows[i]);
		if (r < 0)
			goto fail;
		sim_evq_set(&w->events, slot_of(w, &w->flows[i], FLOW_SLOT_START),
			    conf->flows[i].start_ns);
	}
	sim_evq_set(&w->events, WORLD_SLOT_WARM, conf->warmup_ns);
	if (conf->series_ns)
		sim_evq_set(&w->events, WORLD_SLOT_SAMPLE, conf->series_ns);
	*ret = w;
	return 0;
fail:
	sim_world_free(w);
	return r;
}

void sim_world_free(struct sim_world *w)
{
	if (!w)
		return;
	for (unsigned int i = 0; i < w->n_flows; i++)
		sim_flow_fini(&w->flows[i]);
	for (size_t i = 0; i < w->n_samples; i++)
		free(w->samples[i]);
	free(w->samples);
	sim_link_fini(&w->link);
	sim_evq_fini(&w->events);
	free(w);
}

/* The sender's timers may run out late: a pending event is only ever moved to an earlier time. */
static void sync_timers(struct sim_world *w, struct sim_flow *f)
{
	uint32_t timer = slot_of(w, f, FLOW_SLOT_TIMER);

	sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_PACE), f->tcp.pace_ns);
	if (f->tcp.timer_ns < sim_evq_at(&w->events, timer))
		sim_evq_set(&w->events, timer, f->tcp.timer_ns);
	if (f->tcp.failed)
		w->failed = true;
}

/* First the handshake, which sees the queue as it is; then the transfer. */
static void start_flow(struct sim_world *w, struct sim_flow *f)
{
	uint64_t rtt;

	if (!f->handshake_ns) {
		rtt = f->conf->rtt_ns + sim_link_wait(&w->link, w->now_ns) +
		      sim_prng_below64(&w->jitter, w->conf->jitter_ns) +
		      sim_prng_below64(&w->jitter, w->conf->ack_jitter_ns);
		f->handshake_ns = max64(rtt, 1000);
		sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_START),
			    w->now_ns + f->handshake_ns);
		return;
	}
	sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_START), SIM_NEVER);
	if (sim_flow_start(f, &tcp_ops, w->now_ns,
			   w->conf->seed * 1000 + (uint64_t)(f - w->flows)) < 0)
		w->failed = true;
	sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_APP), w->now_ns);
	if (f->conf->stop_ns != SIM_NEVER)
		sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_STOP),
			    max64(f->conf->stop_ns, w->now_ns));
}

static void take_ack(struct sim_world *w, struct sim_flow *f)
{
	struct sim_ack ack = f->acks[f->ack_head++ & f->ack_mask];

	sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_ACK),
		    f->ack_head == f->ack_tail ? SIM_NEVER
					       : f->acks[f->ack_head & f->ack_mask].at_ns);
	if (w->warm)
		sim_hist_add(&f->rtt, w->now_ns - ack.echo_ns);
	sim_tcp_ack(&f->tcp, &ack);
	sim_flow_note_progress(f);
}

static void take_timer(struct sim_world *w, struct sim_flow *f)
{
	sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_TIMER), SIM_NEVER);
	if (f->tcp.timer_ns <= w->now_ns)
		sim_tcp_timeout(&f->tcp);
}

static void flow_event(struct sim_world *w, struct sim_flow *f, enum flow_slot slot)
{
	f->tcp.now_ns = w->now_ns;
	switch (slot) {
	case FLOW_SLOT_ACK:
		take_ack(w, f);
		break;
	case FLOW_SLOT_PACE:
		sim_tcp_push(&f->tcp);
		break;
	case FLOW_SLOT_TIMER:
		take_timer(w, f);
		break;
	case FLOW_SLOT_DELACK:
		send_ack(w, f, w->now_ns, SIM_TCP_NIL);
		return;
	case FLOW_SLOT_START:
		start_flow(w, f);
		break;
	case FLOW_SLOT_APP:
		sim_evq_set(&w->events, slot_of(w, f, slot), sim_flow_write(f, w->now_ns));
		break;
	case FLOW_SLOT_STOP:
		sim_evq_set(&w->events, slot_of(w, f, slot), SIM_NEVER);
		sim_evq_set(&w->events, slot_of(w, f, FLOW_SLOT_APP), SIM_NEVER);
		sim_tcp_write(&f->tcp, f->tcp.nxt);
		break;
	case FLOW_SLOT_COUNT_:
	default:
		abort();
	}
	sync_timers(w, f);
}

static void get_warm(struct sim_world *w)
{
	sim_evq_set(&w->events, WORLD_SLOT_WARM, SIM_NEVER);
	w->warm = true;
	w->warm_passed_bytes = w->link.passed_bytes;
	w->warm_dropped = w->link.dropped;
	w->warm_lost = w->link.lost;
	for (unsigned int i = 0; i < w->n_flows; i++)
		sim_flow_get_warm(&w->flows[i]);
}

static int take_sample(struct sim_world *w)
{
	struct sim_sample *s = calloc(1, sizeof(*s) + w->n_flows * sizeof(s->flows[0]));
	struct sim_sample **list = reallocarray(w->samples, w->n_samples + 1, sizeof(*list));

	if (list)
		w->samples = list;
	if (!s || !list) {
		free(s);
		return -ENOMEM;
	}
	s->at_s = (double)w->now_ns / 1e9;
	s->queue_ms = (double)sim_link_wait(&w->link, w->now_ns) / 1e6;
	for (unsigned int i = 0; i < w->n_flows; i++) {
		struct sim_flow *f = &w->flows[i];
		uint32_t packets = f->tcp.una - f->sample_una;

		f->sample_una = f->tcp.una;
		s->flows[i] = (struct sim_sample_flow){
			(double)packets * FLOW_MSS * 8e9 / (double)w->conf->series_ns, f->tcp.cwnd,
			f->tcp.srtt_us >> 3, f->tcp.pacing_rate * 8};
	}
	w->samples[w->n_samples++] = s;
	sim_evq_set(&w->events, WORLD_SLOT_SAMPLE, w->now_ns + w->conf->series_ns);
	return 0;
}

static void finish(struct sim_world *w, struct sim_result *ret)
{
	double rates[SIM_MAX_FLOWS], capacity;
	uint64_t sent = 0, retransmitted = 0;

	*ret = (struct sim_result){.n_flows = w->n_flows};
	for (unsigned int i = 0; i < w->n_flows; i++) {
		struct sim_flow_result *f = &ret->flows[i];

		sim_flow_result(&w->flows[i], w->conf->warmup_ns, w->conf->duration_ns, f);
		rates[i] = f->goodput_bps;
		ret->goodput_bps += (double)f->bytes * 8e9 /
				    (double)(w->conf->duration_ns - w->conf->warmup_ns);
		ret->rtos += f->rtos;
		sent += f->sent;
		retransmitted += f->retransmitted;
		ret->sent += w->flows[i].tcp.sent;
		ret->received += w->flows[i].received;
	}
	capacity = sim_link_capacity(&w->link, w->conf->warmup_ns, w->conf->duration_ns);
	if (capacity > 0)
		ret->utilisation = (double)(w->link.passed_bytes - w->warm_passed_bytes) / capacity;
	if (sent) {
		ret->retrans_share = (double)retransmitted / (double)sent;
		ret->drop_share = (double)(w->link.dropped - w->warm_dropped) / (double)sent;
		ret->loss_share = (double)(w->link.lost - w->warm_lost) / (double)sent;
	}
	ret->jain = sim_jain(rates, w->n_flows);
	ret->queue_mean_ms = sim_hist_mean(&w->queue) / 1e6;
	ret->queue_p50_ms = (double)sim_hist_quantile(&w->queue, 0.50) / 1e6;
	ret->queue_p95_ms = (double)sim_hist_quantile(&w->queue, 0.95) / 1e6;
	ret->queue_p99_ms = (double)sim_hist_quantile(&w->queue, 0.99) / 1e6;
	ret->passed = w->link.passed;
	ret->dropped = w->link.dropped;
	ret->lost = w->link.lost;
}

int sim_world_run(struct sim_world *w, struct sim_result *ret)
{
	while (w->events.n && !w->failed) {
		uint32_t slot = sim_evq_first(&w->events);
		uint64_t at = sim_evq_at(&w->events, slot);

		if (at >= w->conf->duration_ns)
			break;
		w->now_ns = at;
		if (slot == WORLD_SLOT_WARM) {
			get_warm(w);
		} else if (slot == WORLD_SLOT_SAMPLE) {
			w->failed = take_sample(w) < 0;
		} else {
			slot -= WORLD_SLOT_COUNT_;
			flow_event(w, &w->flows[slot / FLOW_SLOT_COUNT_],
				   (enum flow_slot)(slot % FLOW_SLOT_COUNT_));
		}
	}
	if (w->failed)
		return -ENOMEM;
	finish(w, ret);
	return 0;
}

const struct sim_sample *sim_world_sample(const struct sim_world *w, size_t i)
{
	return i < w->n_samples ? w->samples[i] : NULL;
}

const struct sim_tcp *sim_world_tcp(const struct sim_world *w, unsigned int i)
{
	return w->flows[i].tcp.pkts ? &w->flows[i].tcp : NULL;
}

int sim_run(const struct sim_conf *conf, struct sim_result *ret)
{
	struct sim_world *w;
	int r = sim_world_new(conf, &w);

	if (r < 0)
		return r;
	r = sim_world_run(w, ret);
	sim_world_free(w);
	return r;
}
