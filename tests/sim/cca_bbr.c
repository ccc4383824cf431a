/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BBR family of src/cca/core in the simulator: one program, four sets of defaults. */
#include "cca_core.h"

#include "cca/core/bbr.h"

#include <string.h>

struct bbr_ca {
	struct pep_bbr_params params;
	struct pep_bbr bbr;
};

static const struct sim_cca_param table[] = {
#define PARAM(field, key, unit, min, max, bbr, acd, a, d, help) \
	{key, unit, help, min, max, offsetof(struct pep_bbr_params, field)},
	PEP_BBR_PARAMS(PARAM){0},
#undef PARAM
};

static int set(void *conf, const char *key, const char *value)
{
	return sim_cca_param_set(table, conf, key, value);
}

static void help(FILE *out)
{
	sim_cca_param_print(table, out);
}

static void init(struct sim_tcp *tp, const void *conf)
{
	struct bbr_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);
	struct pep_cc_out out;

	memcpy(&ca->params, conf, sizeof(ca->params));
	sk.random = (uint32_t)(sim_prng_next(&tp->prng) >> 32);
	pep_cc_out_init(&out, &sk);
	pep_bbr_init(&ca->bbr, &ca->params, &sk, &out);
	sim_cca_apply(tp, &out);
	tp->pacing = true;
}

static void control(struct sim_tcp *tp, const struct sim_rate *rate)
{
	struct bbr_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);
	struct pep_cc_rate rs = sim_cca_rate(rate);
	struct pep_cc_out out;

	pep_cc_out_init(&out, &sk);
	pep_bbr_ack(&ca->bbr, &ca->params, &sk, &rs, &out);
	sim_cca_apply(tp, &out);
}

static uint32_t ssthresh(struct sim_tcp *tp)
{
	struct bbr_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);

	return pep_bbr_ssthresh(&ca->bbr, &sk);
}

static uint32_t undo_cwnd(struct sim_tcp *tp)
{
	struct bbr_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);

	return pep_bbr_undo_cwnd(&ca->bbr, &sk);
}

static void set_state(struct sim_tcp *tp, enum sim_ca_state next)
{
	struct bbr_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);

	pep_bbr_set_state(&ca->bbr, &ca->params, &sk, (uint8_t)next);
}

static void event(struct sim_tcp *tp, enum sim_ca_event event)
{
	struct bbr_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);
	struct pep_cc_out out;

	if (event != SIM_EVENT_TX_START)
		return;
	pep_cc_out_init(&out, &sk);
	pep_bbr_tx_start(&ca->bbr, &ca->params, &sk, &out);
	sim_cca_apply(tp, &out);
}

static uint32_t min_segs(struct sim_tcp *tp)
{
	return pep_min_tso_segs(tp->pacing_rate);
}

static void describe(const struct sim_tcp *tp, FILE *out)
{
	static const char *const modes[] = {"startup", "drain", "probe-bw", "probe-rtt"};
	const struct bbr_ca *ca = tp->ca;
	const struct pep_bbr *b = &ca->bbr;

	fprintf(out, "mode=%s phase=%u bw=%.3fMbit/s min_rtt=%uus gain=%u cuts=%u radio=%u",
		modes[b->mode], b->cycle_idx,
		(double)pep_bw_bytes(pep_bbr_bw(b), tp->mss, 256, 0) * 8e-6, b->min_rtt_us,
		b->applied_gain, b->cuts, b->radio_losses);
}

#define DEFAULTS(name, list)                                                  \
	static void name(void *conf)                                          \
	{                                                                     \
		*(struct pep_bbr_params *)conf = (struct pep_bbr_params)list; \
	}

DEFAULTS(defaults_bbr, PEP_BBR_PARAMS_BBR)
DEFAULTS(defaults_acd, PEP_BBR_PARAMS_ACD)
DEFAULTS(defaults_a, PEP_BBR_PARAMS_A)
DEFAULTS(defaults_d, PEP_BBR_PARAMS_D)

#define FAMILY(symbol, label, text, set_defaults)           \
	const struct sim_cca symbol = {                     \
		.name = label,                              \
		.help = text,                               \
		.state_size = sizeof(struct bbr_ca),        \
		.conf_size = sizeof(struct pep_bbr_params), \
		.defaults = set_defaults,                   \
		.set = set,                                 \
		.print_params = help,                       \
		.init = init,                               \
		.ssthresh = ssthresh,                       \
		.cong_control = control,                    \
		.undo_cwnd = undo_cwnd,                     \
		.set_state = set_state,                     \
		.event = event,                             \
		.min_segs = min_segs,                       \
		.describe = describe,                       \
	}

FAMILY(sim_cca_bbr, "pep_bbr", "BBR version 1", defaults_bbr);
FAMILY(sim_cca_bbr_acd, "pep_bbr_acd", "BBR that halves its window on congestive losses",
       defaults_acd);
FAMILY(sim_cca_bbr_a, "pep_bbr_a", "the same, pacing slower for a round as well", defaults_a);
FAMILY(sim_cca_bbr_d, "pep_bbr_d", "BBR whose pacing gives way to a standing queue", defaults_d);
