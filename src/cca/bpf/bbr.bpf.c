// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The BBR family as struct_ops: pep_bbr, pep_bbr_acd, pep_bbr_a, pep_bbr_d are this file with other
 * defaults (PEP_KIND, PEP_DEFAULTS).
 */
#include "cca/bpf/glue.h"

const volatile struct pep_cca_config pep_config SEC(PEP_CCA_CONFIG_SECTION) = {
	.magic = PEP_CCA_MAGIC,
	.layout = PEP_CCA_LAYOUT,
	.kind = PEP_KIND,
	.set_app_limited = 1,
	.bbr = PEP_DEFAULTS,
};

static __always_inline struct pep_cc_flow *bbr_start(struct sock *sk)
{
	struct pep_cc_flow *flow;
	struct pep_cc_sock s;
	struct pep_cc_out out;

	pep_read_sock(&s, sk);
	pep_cc_out_init(&out, &s);
	flow = pep_flow_new(sk, &s, PEP_KIND);
	if (!flow)
		return NULL;
	pep_bbr_init(&flow->bbr, &pep_config_get()->bbr, &s, &out);
	pep_write_sock(sk, &s, &out);
	return flow;
}

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

PEP_PROG(init)
void BPF_PROG(pep_init, struct sock *sk)
{
	bbr_start(sk);
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
		flow = bbr_start(sk);
		if (!flow)
			return;
	}
	pep_read_sock(&s, sk);
	pep_read_rate(&r, rs);
	pep_cc_out_init(&out, &s);
	flow->mss_bytes = s.mss_bytes;
	bbr_step_bw(&flow->bbr, &s, &r, &out);
	bbr_step_mode(&flow->bbr, &s, &r, &out);
	bbr_step_send(&flow->bbr, &s, &r, &out);
	pep_write_sock(sk, &s, &out);
}

PEP_PROG(ssthresh)
__u32 BPF_PROG(pep_ssthresh, struct sock *sk)
{
	struct pep_cc_flow *flow = pep_flow(sk);
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;

	if (flow)
		pep_bbr_save_cwnd(&flow->bbr, tp->snd_cwnd);
	return tp->snd_ssthresh;
}

PEP_PROG(undo_cwnd)
__u32 BPF_PROG(pep_undo_cwnd, struct sock *sk)
{
	struct pep_cc_flow *flow = pep_flow(sk);
	struct pep_cc_sock s;

	pep_read_sock(&s, sk);
	return flow ? pep_bbr_undo_cwnd(&flow->bbr, &s) : s.cwnd;
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
	pep_bbr_set_state(&flow->bbr, &pep_config_get()->bbr, &s, state);
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

PEP_PROG(sndbuf_expand)
__u32 BPF_PROG(pep_sndbuf_expand, struct sock *sk)
{
	return PEP_SNDBUF_EXPAND;
}

#ifndef PEP_NO_MIN_TSO
PEP_PROG(min_tso_segs)
__u32 BPF_PROG(pep_min_tso, struct sock *sk)
{
	return pep_min_tso_segs(sk->sk_pacing_rate);
}
#endif

SEC(".struct_ops")
struct tcp_congestion_ops PEP_NAME = {
	.init = (void *)pep_init,
	.release = (void *)pep_release,
	.ssthresh = (void *)pep_ssthresh,
	.undo_cwnd = (void *)pep_undo_cwnd,
	.cong_control = (void *)pep_cong_control,
	.set_state = (void *)pep_set_state,
	.PEP_TX_START_MEMBER = (void *)pep_tx_start,
	.sndbuf_expand = (void *)pep_sndbuf_expand,
#ifndef PEP_NO_MIN_TSO
	.min_tso_segs = (void *)pep_min_tso,
#endif
	.flags = PEP_TCP_CONG_NON_RESTRICTED,
	.name = PEP_STRING(PEP_NAME),
};
