/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_BPF_GLUE_H
#define PEP_CCA_BPF_GLUE_H

/*
 * Between the kernel's socket and the core: what the core reads is copied in, what it decided is
 * written back if it changed. State lives in socket storage, which observers can read through the
 * socket or an iterator, so that exporting it costs nothing per ACK.
 */

#include "cca/bpf/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "cca/flow_state.h"

/* Each variant is one object, named by the build. */
#ifndef PEP_NAME
#error "PEP_NAME names the congestion control"
#endif
#ifndef PEP_PARAMS
#error "PEP_PARAMS is the member of struct pep_cca_config that holds its parameters"
#endif
#define PEP_STRING_(x) #x
#define PEP_STRING(x)  PEP_STRING_(x)

#define PEP_PROG(fn) SEC("struct_ops/" PEP_STRING(PEP_NAME) "_" #fn)

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, PEP_BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, PEP_BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pep_cc_flow);
} pep_cc_state SEC(".maps");

const volatile struct pep_cca_config pep_config SEC(PEP_CCA_CONFIG_SECTION) = {
	.magic = PEP_CCA_MAGIC,
	.layout = PEP_CCA_LAYOUT,
	.kind = PEP_KIND,
	.set_app_limited = 1,
	PEP_PARAMS = PEP_DEFAULTS,
};

/*
 * Parameters through a pointer the compiler cannot see through: it must not fold the defaults in.
 * The verifier can, and drops what a parameter turns off.
 */
static __always_inline const struct pep_cca_config *pep_config_get(void)
{
	const struct pep_cca_config *config = (const struct pep_cca_config *)&pep_config;

	asm volatile("" : "+r"(config));
	return config;
}

/** The connection's state; NULL when there is no memory for it or it is another control's. */
static __always_inline struct pep_cc_flow *pep_flow(struct sock *sk)
{
	struct pep_cc_flow *flow = bpf_sk_storage_get(&pep_cc_state, sk, 0, 0);

	if (!flow || flow->layout != PEP_CCA_LAYOUT)
		return NULL;
	return flow;
}

static __always_inline void pep_read_sock(struct pep_cc_sock *s, struct sock *sk)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	__u32 cwnd = tp->snd_cwnd;

	s->now_us = tp->tcp_mstamp;
	s->delivered_us = tp->delivered_mstamp;
	s->clock_ns = tp->tcp_clock_cache;
	s->wstamp_ns = tp->tcp_wstamp_ns;
	s->pacing_rate = sk->sk_pacing_rate;
	s->max_pacing_rate = sk->sk_max_pacing_rate;
	s->delivered = tp->delivered;
	s->lost = tp->lost;
	s->inflight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	s->cwnd = cwnd;
	s->cwnd_clamp = tp->snd_cwnd_clamp;
	s->ssthresh = tp->snd_ssthresh;
	s->app_limited = tp->app_limited;
	s->mss_bytes = pep_max32(tp->mss_cache, 1);
	s->srtt_us = tp->srtt_us >> 3;
	s->mdev_us = tp->mdev_us >> 2;
	s->min_rtt_us = tp->rtt_min.s[0].v;
	s->random = 0;
	s->pacing_shift = sk->sk_pacing_shift;
	s->ca_state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	/* As tcp_is_cwnd_limited(): in slow start half a window in use is enough. */
	s->cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
			  (cwnd < s->ssthresh && cwnd < 2 * tp->max_packets_out);
}

static __always_inline void pep_read_rate(struct pep_cc_rate *r, const struct rate_sample *rs)
{
	r->interval_us = rs->interval_us;
	r->rtt_us = rs->rtt_us;
	r->delivered = rs->delivered;
	r->prior_delivered = rs->prior_delivered;
	r->losses = rs->losses > 0 ? (__u32)rs->losses : 0;
	r->acked_sacked = rs->acked_sacked;
	r->prior_inflight = rs->prior_in_flight;
	r->app_limited = rs->is_app_limited;
	r->ack_delayed = rs->is_ack_delayed;
}

static __always_inline void pep_write_sock(struct sock *sk, const struct pep_cc_sock *s,
					   const struct pep_cc_out *out)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (out->pacing_rate != s->pacing_rate)
		sk->sk_pacing_rate = out->pacing_rate;
	if (out->cwnd != s->cwnd)
		tp->snd_cwnd = out->cwnd ? out->cwnd : 1;
	if (out->ssthresh != s->ssthresh)
		tp->snd_ssthresh = out->ssthresh;
	/* Older kernels refuse this store; the loader then has the verifier drop it. */
	if (pep_config_get()->set_app_limited && out->app_limited != s->app_limited)
		tp->app_limited = out->app_limited;
}

/* Without the fq queueing discipline TCP paces by its own timer, once this is set. */
static __always_inline void pep_need_pacing(struct sock *sk)
{
	if (sk->sk_pacing_status == PEP_SK_PACING_NONE)
		sk->sk_pacing_status = PEP_SK_PACING_NEEDED;
}

/* -- what each control brings; @flow may be NULL where that is said -- */

static __always_inline void pep_control_init(struct pep_cc_flow *flow, const struct pep_cc_sock *s,
					     struct pep_cc_out *out);
static __always_inline void pep_control_ack(struct pep_cc_flow *flow, const struct pep_cc_sock *s,
					    const struct pep_cc_rate *r, struct pep_cc_out *out);
/* @flow: or NULL */
static __always_inline __u32 pep_control_ssthresh(struct pep_cc_flow *flow,
						  const struct pep_cc_sock *s);
static __always_inline __u32 pep_control_undo_cwnd(struct pep_cc_flow *flow,
						   const struct pep_cc_sock *s);
/* A timeout: state Loss begins. */
static __always_inline void pep_control_lost(struct pep_cc_flow *flow, const struct pep_cc_sock *s);

/* -- programs of every control -- */

/** State made anew and written to the socket; NULL without memory. */
static __always_inline struct pep_cc_flow *pep_flow_start(struct sock *sk)
{
	struct pep_cc_flow *flow;
	struct pep_cc_sock s;
	struct pep_cc_out out;

	flow = bpf_sk_storage_get(&pep_cc_state, sk, 0, PEP_BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return NULL;
	pep_read_sock(&s, sk);
	pep_cc_out_init(&out, &s);
	s.random = bpf_get_prandom_u32();
	flow->layout = PEP_CCA_LAYOUT;
	flow->mss_bytes = s.mss_bytes;
	flow->estimate = 0;
	flow->kind = PEP_KIND;
	pep_control_init(flow, &s, &out);
	pep_write_sock(sk, &s, &out);
	return flow;
}

/* cong_control has two or four arguments; the two in the middle tell nothing we need. */
#if PEP_ARGS == 4
#define PEP_CONG_CONTROL(fn) \
	BPF_PROG(fn, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
#else
#define PEP_CONG_CONTROL(fn) BPF_PROG(fn, struct sock *sk, const struct rate_sample *rs)
#endif

PEP_PROG(init)
void BPF_PROG(pep_init, struct sock *sk)
{
	pep_flow_start(sk);
	pep_need_pacing(sk);
}

PEP_PROG(release)
void BPF_PROG(pep_release, struct sock *sk)
{
	bpf_sk_storage_delete(&pep_cc_state, sk);
}

PEP_PROG(cong_control)
void PEP_CONG_CONTROL(pep_cong_control)
{
	struct pep_cc_flow *flow = pep_flow(sk);
	struct pep_cc_rate r;
	struct pep_cc_sock s;
	struct pep_cc_out out;

	if (!flow) {
		flow = pep_flow_start(sk);
		if (!flow)
			return;
	}
	pep_read_sock(&s, sk);
	pep_read_rate(&r, rs);
	pep_cc_out_init(&out, &s);
	flow->mss_bytes = s.mss_bytes;
	pep_control_ack(flow, &s, &r, &out);
	pep_write_sock(sk, &s, &out);
}

PEP_PROG(ssthresh)
__u32 BPF_PROG(pep_ssthresh, struct sock *sk)
{
	struct pep_cc_sock s;

	pep_read_sock(&s, sk);
	return pep_control_ssthresh(pep_flow(sk), &s);
}

PEP_PROG(undo_cwnd)
__u32 BPF_PROG(pep_undo_cwnd, struct sock *sk)
{
	struct pep_cc_flow *flow = pep_flow(sk);
	struct pep_cc_sock s;

	pep_read_sock(&s, sk);
	return flow ? pep_control_undo_cwnd(flow, &s) : s.cwnd;
}

PEP_PROG(set_state)
void BPF_PROG(pep_set_state, struct sock *sk, __u8 state)
{
	struct pep_cc_flow *flow;
	struct pep_cc_sock s;

	if (state != PEP_CA_LOSS)
		return;
	flow = pep_flow(sk);
	if (!flow)
		return;
	pep_read_sock(&s, sk);
	pep_control_lost(flow, &s);
}

PEP_PROG(sndbuf_expand)
__u32 BPF_PROG(pep_sndbuf_expand, struct sock *sk)
{
	return PEP_SNDBUF_EXPAND;
}

/* What every control puts into its struct tcp_congestion_ops. */
#define PEP_OPS                                                                           \
	.init = (void *)pep_init, .release = (void *)pep_release,                         \
	.ssthresh = (void *)pep_ssthresh, .undo_cwnd = (void *)pep_undo_cwnd,             \
	.cong_control = (void *)pep_cong_control, .set_state = (void *)pep_set_state,     \
	.sndbuf_expand = (void *)pep_sndbuf_expand, .flags = PEP_TCP_CONG_NON_RESTRICTED, \
	.name = PEP_STRING(PEP_NAME)

#ifdef PEP_TX_START
#define PEP_TX_START_PROG(fn) BPF_PROG(fn, struct sock *sk)
#define PEP_IS_TX_START       1
#define PEP_TX_START_MEMBER   cwnd_event_tx_start
#else
#define PEP_TX_START_PROG(fn) BPF_PROG(fn, struct sock *sk, int event)
#define PEP_IS_TX_START       (event == PEP_CA_EVENT_TX_START)
#define PEP_TX_START_MEMBER   cwnd_event
#endif

#endif
