/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pep_bwe of src/cca/core in the simulator. */
#include "cca_core.h"

#include "cca/core/bwe.h"

#include <string.h>

struct bwe_ca {
	struct pep_bwe_params params;
	struct pep_bwe bwe;
};

static const struct sim_cca_param table[] = {
#define PARAM(field, key, unit, min, max, def, help) \
	{key, unit, help, min, max, offsetof(struct pep_bwe_params, field)},
	PEP_BWE_PARAMS(PARAM){0},
#undef PARAM
};

static void defaults(void *conf)
{
	*(struct pep_bwe_params *)conf = (struct pep_bwe_params)PEP_BWE_PARAMS_DEFAULT;
}

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
	struct bwe_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);
	struct pep_cc_out out;

	memcpy(&ca->params, conf, sizeof(ca->params));
	pep_cc_out_init(&out, &sk);
	pep_bwe_init(&ca->bwe, &ca->params, &sk, &out);
	sim_cca_apply(tp, &out);
	tp->pacing = true;
}

static void control(struct sim_tcp *tp, const struct sim_rate *rate)
{
	struct bwe_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);
	struct pep_cc_rate rs = sim_cca_rate(rate);
	struct pep_cc_out out;

	pep_cc_out_init(&out, &sk);
	pep_bwe_ack(&ca->bwe, &ca->params, &sk, &rs, &out);
	sim_cca_apply(tp, &out);
}

static uint32_t ssthresh(struct sim_tcp *tp)
{
	struct bwe_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);

	return pep_bwe_ssthresh(&ca->bwe, &ca->params, &sk);
}

static uint32_t undo_cwnd(struct sim_tcp *tp)
{
	struct bwe_ca *ca = tp->ca;
	struct pep_cc_sock sk = sim_cca_sock(tp);

	return pep_bwe_undo_cwnd(&ca->bwe, &sk);
}

static void set_state(struct sim_tcp *tp, enum sim_ca_state next)
{
	struct bwe_ca *ca = tp->ca;

	pep_bwe_set_state(&ca->bwe, (uint8_t)next);
}

static void describe(const struct sim_tcp *tp, FILE *out)
{
	const struct bwe_ca *ca = tp->ca;

	fprintf(out, "bw=%.3fMbit/s min_rtt=%uus cuts=%u radio=%u",
		(double)pep_bw_bytes(pep_bwe_bw(&ca->bwe, &ca->params), tp->mss, 256, 0) * 8e-6,
		ca->bwe.min_rtt_us, ca->bwe.cuts, ca->bwe.radio_losses);
}

const struct sim_cca sim_cca_bwe = {
	.name = "pep_bwe",
	.help = "loss response from a bandwidth estimate",
	.state_size = sizeof(struct bwe_ca),
	.conf_size = sizeof(struct pep_bwe_params),
	.defaults = defaults,
	.set = set,
	.print_params = help,
	.init = init,
	.ssthresh = ssthresh,
	.cong_control = control,
	.undo_cwnd = undo_cwnd,
	.set_state = set_state,
	.describe = describe,
};
