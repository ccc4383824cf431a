/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_SIM_TEST_H
#define PEP_SIM_SIM_TEST_H

/* Running scenarios from tests. */

#include "unit/unit.h"

#include "scenario.h"

#define SIM_TEST_MAX_SEEDS 15

/** Settings as name, value, ..., NULL. */
#define SIM_TEST_SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL, NULL})

/** Runs control @cca over @preset (NULL: the defaults) and @settings; fails the test on any error.
 */
static inline void sim_test_run(const char *cca, const char *preset, const char *const *settings,
				uint64_t seed, struct sim_result *ret)
{
	static struct scenario_run run;
	static struct scenario s;

	scenario_init(&s);
	if (preset)
		assert_int_equal(scenario_preset(&s, preset, stderr), 0);
	for (; settings && settings[0]; settings += 2)
		assert_int_equal(scenario_set(&s, settings[0], settings[1], stderr), 0);
	assert_int_equal(scenario_check(&s, stderr), 0);
	assert_non_null(sim_cca_find(cca));
	assert_int_equal(scenario_run_init(&run, &s, sim_cca_find(cca), seed), 0);
	assert_int_equal(sim_run(&run.conf, ret), 0);
	scenario_run_fini(&run);
	scenario_fini(&s);
}

/** The medians of @n_seeds runs. */
struct sim_test_median {
	double goodput_mbps, utilisation, retrans, jain, queue_ms;
};

static inline struct sim_test_median sim_test_medians(const char *cca, const char *preset,
						      const char *const *settings,
						      unsigned int n_seeds)
{
	double v[5][SIM_TEST_MAX_SEEDS];
	struct sim_result r;

	for (unsigned int i = 0; i < n_seeds; i++) {
		sim_test_run(cca, preset, settings, i + 1, &r);
		v[0][i] = r.goodput_bps / 1e6;
		v[1][i] = r.utilisation;
		v[2][i] = r.retrans_share;
		v[3][i] = r.jain;
		v[4][i] = r.queue_mean_ms;
	}
	return (struct sim_test_median){sim_median(v[0], n_seeds), sim_median(v[1], n_seeds),
					sim_median(v[2], n_seeds), sim_median(v[3], n_seeds),
					sim_median(v[4], n_seeds)};
}

/** Fails with the numbers unless @low <= @value <= @high. */
#define assert_between(value, low, high)                                                      \
	do {                                                                                  \
		double value_ = (value), low_ = (low), high_ = (high);                        \
		if (!(value_ >= low_ && value_ <= high_))                                     \
			fail_msg("%s is %g, expected %g to %g", #value, value_, low_, high_); \
	} while (0)

#endif
