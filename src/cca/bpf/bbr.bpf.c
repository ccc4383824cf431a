// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The BBR family as struct_ops: pep_bbr, pep_bbr_acd, pep_bbr_a, pep_bbr_d are this file with other
 * defaults (PEP_KIND, PEP_DEFAULTS).
 */
#define PEP_PARAMS .bbr
#include "cca/bpf/glue.h"

/*
 * The steps of an ACK as global functions, each verified on its own. The tests for NULL are the
 * verifier's wish.
 */
#define PEP_STEP(name)                                                      \
	__noinline int name(struct pep_bbr *b, const struct pep_cc_sock *s, \
			    const struct pep_cc_rate *r, struct pep_cc_out *out)

PEP_STEP(bbr_step_bw)
{
	if (!b || !s || !r || !out)
		return 0;
	pep_bbr_ack_bw(b, &pep_config_get()->bbr, s, r, out);
	return 0;
}

PEP_STEP(bbr_step_mode)
{
	if (!b || !s || !r || !out)
		return 0;
	pep_bbr_ack_mode(b, &pep_config_get()->bbr, s, r, out);
	return 0;
}

PEP_STEP(bbr_step_send)
{
	if (!b || !s || !r || !out)
		return 0;
	pep_bbr_ack_send(b, &pep_config_get()->bbr, s, r, out);
	return 0;
}

static __always_inline void pep_control_init(struct pep_cc_flow *flow, const struct pep_cc_sock *s,
					     struct pep_cc_out *out)
{
	pep_bbr_init(&flow->bbr, &pep_config_get()->bbr, s, out);
}

static __always_inline void pep_control_ack(struct pep_cc_flow *flow, const struct pep_cc_sock *s,
					    const struct pep_cc_rate *r, struct pep_cc_out *out)
{
	bbr_step_bw(&flow->bbr, s, r, out);
	bbr_step_mode(&flow->bbr, s, r, out);
	bbr_step_send(&flow->bbr, s, r, out);
}

static __always_inline __u32 pep_control_ssthresh(struct pep_cc_flow *flow,
						  const struct pep_cc_sock *s)
{
	return flow ? pep_bbr_ssthresh(&flow->bbr, s) : s->ssthresh;
}

static __always_inline __u32 pep_control_undo_cwnd(struct pep_cc_flow *flow,
						   const struct pep_cc_sock *s)
{
	return pep_bbr_undo_cwnd(&flow->bbr, s);
}

static __always_inline void pep_control_lost(struct pep_cc_flow *flow, const struct pep_cc_sock *s)
{
	pep_bbr_set_state(&flow->bbr, &pep_config_get()->bbr, s, PEP_CA_LOSS);
}

PEP_PROG(tx_start)
void PEP_TX_START_PROG(pep_tx_start)
{
	struct pep_cc_flow *flow;
	struct pep_cc_sock s;
	struct pep_cc_out out;

	if (!PEP_IS_TX_START || !((const struct tcp_sock *)sk)->app_limited)
		return;
	flow = pep_flow(sk);
	if (!flow)
		return;
	pep_read_sock(&s, sk);
	pep_cc_out_init(&out, &s);
	pep_bbr_tx_start(&flow->bbr, &pep_config_get()->bbr, &s, &out);
	pep_write_sock(sk, &s, &out);
}

/*
 * No min_tso_segs: with it the stack sends up to 40 segments as one packet now and then, most often
 * for pep_bbr_d, which is what was lost in short buffers (doc/EVALUATION.md; why is not known).
 * Without it net.ipv4.tcp_min_tso_segs (2) holds, which is BBR's own value from 1.2 Mbit/s on.
 */
SEC(".struct_ops")
struct tcp_congestion_ops PEP_NAME = {
	PEP_OPS,
	.PEP_TX_START_MEMBER = (void *)pep_tx_start,
};
