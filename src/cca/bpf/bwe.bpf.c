// SPDX-License-Identifier: GPL-2.0-or-later
/* pep_bwe, the bandwidth-estimating control, as struct_ops. */
#define PEP_PARAMS .bwe
#include "cca/bpf/glue.h"

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

static __always_inline void pep_control_init(struct pep_cc_flow *flow, const struct pep_cc_sock *s,
					     struct pep_cc_out *out)
{
	pep_bwe_init(&flow->bwe, &pep_config_get()->bwe, s, out);
}

static __always_inline void pep_control_ack(struct pep_cc_flow *flow, const struct pep_cc_sock *s,
					    const struct pep_cc_rate *r, struct pep_cc_out *out)
{
	bwe_step_estimate(&flow->bwe, s, r);
	bwe_step_send(&flow->bwe, s, r, out);
	flow->estimate = pep_bwe_bw(&flow->bwe, &pep_config_get()->bwe);
}

static __always_inline __u32 pep_control_ssthresh(struct pep_cc_flow *flow,
						  const struct pep_cc_sock *s)
{
	if (!flow)
		return pep_max32(s->cwnd / 2, 2);
	return pep_bwe_ssthresh(&flow->bwe, &pep_config_get()->bwe, s);
}

static __always_inline __u32 pep_control_undo_cwnd(struct pep_cc_flow *flow,
						   const struct pep_cc_sock *s)
{
	return pep_bwe_undo_cwnd(&flow->bwe, s);
}

static __always_inline void pep_control_lost(struct pep_cc_flow *flow, const struct pep_cc_sock *s)
{
	pep_bwe_set_state(&flow->bwe, PEP_CA_LOSS);
}

SEC(".struct_ops")
struct tcp_congestion_ops PEP_NAME = {
	PEP_OPS,
};
