// SPDX-License-Identifier: GPL-2.0-or-later
/* pep_bwe, the bandwidth-estimating control, as struct_ops. */
#include "cca/bpf/glue.h"

const volatile struct pep_cca_config pep_config SEC(PEP_CCA_CONFIG_SECTION) = {
	.magic = PEP_CCA_MAGIC,
	.layout = PEP_CCA_LAYOUT,
	.kind = PEP_KIND,
	.bwe = PEP_DEFAULTS,
};

static __always_inline struct pep_cc_flow *bwe_start(struct sock *sk)
{
	struct pep_cc_flow *flow;
	struct pep_cc_sock s;
	struct pep_cc_out out;

	pep_read_sock(&s, sk);
	pep_cc_out_init(&out, &s);
	flow = pep_flow_new(sk, &s, PEP_KIND);
	if (!flow)
		return NULL;
	pep_bwe_init(&flow->bwe, &pep_config_get()->bwe, &s, &out);
	pep_write_sock(sk, &s, &out);
	return flow;
}

/* Global functions, each verified on its own (see bbr.bpf.c). */
__noinline int bwe_step_estimate(struct pep_bwe *w, const struct pep_cc_sock *s,
				 const struct pep_cc_rate *r)
{
	if (!w || !s || !r)
		return 0;
	pep_bwe_ack_estimate(w, &pep_config_get()->bwe, s, r);
	return 0;
}

__noinline int bwe_step_send(struct pep_bwe *w, const struct pep_cc_sock *s,
			     const struct pep_cc_rate *r, struct pep_cc_out *out)
{
	if (!w || !s || !r || !out)
		return 0;
	pep_bwe_ack_send(w, &pep_config_get()->bwe, s, r, out);
	return 0;
}

PEP_PROG(init)
void BPF_PROG(pep_init, struct sock *sk)
{
	bwe_start(sk);
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
		flow = bwe_start(sk);
		if (!flow)
			return;
	}
	pep_read_sock(&s, sk);
	pep_read_rate(&r, rs);
	pep_cc_out_init(&out, &s);
	flow->mss_bytes = s.mss_bytes;
	bwe_step_estimate(&flow->bwe, &s, &r);
	bwe_step_send(&flow->bwe, &s, &r, &out);
	flow->estimate = pep_bwe_bw(&flow->bwe, &pep_config_get()->bwe);
	pep_write_sock(sk, &s, &out);
}

PEP_PROG(ssthresh)
__u32 BPF_PROG(pep_ssthresh, struct sock *sk)
{
	struct pep_cc_flow *flow = pep_flow(sk);
	struct pep_cc_sock s;

	pep_read_sock(&s, sk);
	if (!flow)
		return pep_max32(s.cwnd / 2, 2);
	return pep_bwe_ssthresh(&flow->bwe, &pep_config_get()->bwe, &s);
}

PEP_PROG(undo_cwnd)
__u32 BPF_PROG(pep_undo_cwnd, struct sock *sk)
{
	struct pep_cc_flow *flow = pep_flow(sk);
	struct pep_cc_sock s;

	pep_read_sock(&s, sk);
	return flow ? pep_bwe_undo_cwnd(&flow->bwe, &s) : s.cwnd;
}

PEP_PROG(set_state)
void BPF_PROG(pep_set_state, struct sock *sk, __u8 state)
{
	struct pep_cc_flow *flow;

	if (state != PEP_CA_LOSS)
		return;
	flow = pep_flow(sk);
	if (flow)
		pep_bwe_set_state(&flow->bwe, state);
}

PEP_PROG(sndbuf_expand)
__u32 BPF_PROG(pep_sndbuf_expand, struct sock *sk)
{
	return PEP_SNDBUF_EXPAND;
}

SEC(".struct_ops")
struct tcp_congestion_ops PEP_NAME = {
	.init = (void *)pep_init,
	.release = (void *)pep_release,
	.ssthresh = (void *)pep_ssthresh,
	.undo_cwnd = (void *)pep_undo_cwnd,
	.cong_control = (void *)pep_cong_control,
	.set_state = (void *)pep_set_state,
	.sndbuf_expand = (void *)pep_sndbuf_expand,
	.flags = PEP_TCP_CONG_NON_RESTRICTED,
	.name = PEP_STRING(PEP_NAME),
};
