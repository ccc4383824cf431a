/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The published comparisons, with the tolerances of the targets. Each number is the median of
 * several seeds, and each pair of controls sees the same starts and losses.
 */
#include "sim_test.h"

#define S     SIM_TEST_SETTINGS
#define SEEDS 7

/* BBR-A against BBR, ICT Express 6 (2020) 343: 4 flows of 10 ms, 4 of 50 ms, buffer 2 BDP. */
static void bbr_a_retransmits_60_percent_less_and_shares_better(void **state)
{
	static const char *const rates[] = {"20Mbit/s", "50Mbit/s"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rates); i++) {
		const char *const *cell = S("rate", rates[i]);
		struct sim_test_median bbr = sim_test_medians("pep_bbr", "mixed-rtt", cell, SEEDS);
		struct sim_test_median a = sim_test_medians("pep_bbr_a", "mixed-rtt", cell, SEEDS);

		assert_between(a.retrans, 0, 0.4 * bbr.retrans);
		assert_between(a.jain, 1.1 * bbr.jain, 1);
		assert_between(a.goodput_mbps, 0.98 * bbr.goodput_mbps, 1000);
	}
}

/* BBR-ACD is said to save about half. */
static void bbr_acd_retransmits_half(void **state)
{
	struct sim_test_median bbr, acd;

	(void)state;
	bbr = sim_test_medians("pep_bbr", "mixed-rtt", NULL, SEEDS);
	acd = sim_test_medians("pep_bbr_acd", "mixed-rtt", NULL, SEEDS);
	assert_between(acd.retrans, 0, 0.5 * bbr.retrans);
	assert_between(acd.goodput_mbps, 0.98 * bbr.goodput_mbps, 1000);
}

/* Radio losses are not congestion, with jitter or without. */
static void bbr_a_bears_random_loss_as_bbr_does(void **state)
{
	static const char *const cells[][8] = {
		{"rate", "20Mbit/s", "rtt", "40ms", "jitter", "0ms", NULL},
		{"rate", "20Mbit/s", "rtt", "40ms", "jitter", "30ms", NULL},
		{"rate", "100Mbit/s", "rtt", "20ms", "jitter", "0ms", NULL},
		{"rate", "100Mbit/s", "rtt", "20ms", "jitter", "30ms", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cells); i++) {
		struct sim_test_median bbr, a;
		const char *settings[10] = {"loss", "1%"};

		memcpy(settings + 2, cells[i], 6 * sizeof(settings[0]));
		bbr = sim_test_medians("pep_bbr", "random-loss", settings, 3);
		a = sim_test_medians("pep_bbr_a", "random-loss", settings, 3);
		assert_between(a.goodput_mbps, 0.95 * bbr.goodput_mbps, 1000);
		assert_between(bbr.utilisation, 0.93, 1);
	}
}

/* RTT-adjusted pacing, TRITA-EECS-EX 2020:855. */
static void rtt_adjusted_pacing_halves_the_queue(void **state)
{
	static const char *const rates[] = {"20Mbit/s", "100Mbit/s"};
	static const char *const forms[] = {"pep_bbr_d.rtt-pacing=safe",
					    "pep_bbr_d.rtt-pacing=strict"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rates); i++) {
		struct sim_test_median bbr =
			sim_test_medians("pep_bbr", "deep-buffer", S("rate", rates[i]), 5);

		for (size_t k = 0; k < COUNT_OF(forms); k++) {
			struct sim_test_median d =
				sim_test_medians("pep_bbr_d", "deep-buffer",
						 S("rate", rates[i], "param", forms[k]), 5);

			assert_between(d.queue_ms, 0, 0.5 * bbr.queue_ms);
			assert_between(d.goodput_mbps, 0.98 * bbr.goodput_mbps, 1000);
		}
	}
}

/* Most transfers are short: the queue must not wait for the first regular ProbeRTT. */
static void safe_pacing_works_within_seconds(void **state)
{
	const char *const *cell = S("rtt", "20ms", "warmup", "2s", "time", "8s");
	double bbr, d;

	(void)state;
	bbr = sim_test_medians("pep_bbr", "deep-buffer", cell, SEEDS).queue_ms;
	d = sim_test_medians("pep_bbr_d", "deep-buffer", cell, SEEDS).queue_ms;
	assert_between(d, 0, 0.5 * bbr);
}

static void pacing_hardly_loses_in_shallow_buffers(void **state)
{
	static const char *const forms[] = {"pep_bbr_d.rtt-pacing=safe",
					    "pep_bbr_d.rtt-pacing=strict"};
	static const char *const rates[] = {"20Mbit/s", "50Mbit/s", "100Mbit/s"};
	static const char *const rtts[] = {"20ms", "40ms", "80ms"};

	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(rates) * COUNT_OF(rtts); i++) {
		struct sim_test_median d = sim_test_medians(
			"pep_bbr_d", "shallow-buffer",
			S("rate", rates[i / 2 % COUNT_OF(rates)], "rtt",
			  rtts[i / 2 / COUNT_OF(rates)], "param", forms[i % 2], "time", "18s"),
			5);

		/* The strict form's ProbeRTTs do not join each other: 0.1 % in the least buffer. */
		assert_between(d.retrans, 0, i == 1 ? 0.002 : 0.001);
		assert_between(d.utilisation, 0.95, 1.01);
	}
}

/* One flow gives up no more than the others gain. */
static void safe_pacing_costs_one_flow_little(void **state)
{
	static const char *const rtts[] = {"20ms", "40ms", "80ms"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rtts); i++) {
		const char *const *cell = S("rtt", rtts[i], "flows", "1", "time", "30s");

		assert_between(
			sim_test_medians("pep_bbr_d", "deep-buffer", cell, 3).goodput_mbps,
			0.98 * sim_test_medians("pep_bbr", "deep-buffer", cell, 3).goodput_mbps,
			1000);
	}
}

static void safe_pacing_bears_jitter(void **state)
{
	static const char *const cells[][2] = {{"20Mbit/s", "20ms"},
					       {"20Mbit/s", "40ms"},
					       {"20Mbit/s", "80ms"},
					       {"100Mbit/s", "20ms"},
					       {"100Mbit/s", "40ms"}};
	static const char *const losses[] = {"0%", "1%"};

	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(cells); i++)
		assert_between(sim_test_medians("pep_bbr_d", "radio-jitter",
						S("rate", cells[i / 2][0], "rtt", cells[i / 2][1],
						  "loss", losses[i % 2], "time", "18s"),
						5)
				       .utilisation,
			       0.9, 1.01);
}

/* RTTs from the return of the line of sight at 15 s until 90 % of the rate is used again. */
static double recovery_rtts(const char *cca, const char *rtt, double rtt_s, uint64_t seed)
{
	static struct scenario_run run;
	static struct scenario s;
	const struct sim_sample *sample;
	struct sim_result result;
	struct sim_world *w;
	double reached = 1e9;

	scenario_init(&s);
	assert_int_equal(scenario_preset(&s, "blockage", stderr), 0);
	assert_int_equal(scenario_set(&s, "rtt", rtt, stderr), 0);
	assert_int_equal(scenario_set(&s, "series", rtt, stderr), 0);
	assert_int_equal(scenario_run_init(&run, &s, sim_cca_find(cca), seed), 0);
	assert_int_equal(sim_world_new(&run.conf, &w), 0);
	assert_int_equal(sim_world_run(w, &result), 0);
	for (size_t i = 0; (sample = sim_world_sample(w, i)); i++) {
		if (sample->at_s > 15 &&
		    sample->flows[0].goodput_bps >= 0.9 * 2500e6 * 1448 / 1500) {
			reached = (sample->at_s - 15) / rtt_s;
			break;
		}
	}
	sim_world_free(w);
	scenario_run_fini(&run);
	scenario_fini(&s);
	return reached;
}

/* Blockage of a mmWave link, 2500, 500, 2500 Mbit/s: back within 10 round trips. */
static void bbr_a_is_back_soon_after_a_blockage(void **state)
{
	static const struct {
		const char *rtt;
		double rtt_s;
	} cells[] = {{"5ms", 0.005}, {"10ms", 0.010}, {"20ms", 0.020}};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cells); i++) {
		double rtts[5];

		for (unsigned int k = 0; k < COUNT_OF(rtts); k++)
			rtts[k] = recovery_rtts("pep_bbr_a", cells[i].rtt, cells[i].rtt_s, k + 1);
		assert_between(sim_median(rtts, COUNT_OF(rtts)), 0, 10);
		assert_between(rtts[COUNT_OF(rtts) - 1], 0, 14); /* sorted now: the worst */
	}
}

/* Bandwidth estimation: the loss-based controls stop, it goes on. */
static void bandwidth_estimation_doubles_the_rate_under_loss(void **state)
{
	static const char *const losses[] = {"0.05%", "0.1%", "0.5%", "1%"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(losses); i++) {
		const char *const *cell = S("loss", losses[i], "time", "35s");
		double bwe = sim_test_medians("pep_bwe", "lossy-100m", cell, 3).goodput_mbps;

		assert_between(bwe,
			       2 * sim_test_medians("cubic", "lossy-100m", cell, 3).goodput_mbps,
			       100);
		assert_between(
			bwe, 2 * sim_test_medians("reno", "lossy-100m", cell, 3).goodput_mbps, 100);
	}
}

static void a_hundredth_of_a_percent_costs_bandwidth_estimation_nothing(void **state)
{
	struct sim_test_median clean, lossy;

	(void)state;
	clean = sim_test_medians("pep_bwe", "lossy-100m", S("loss", "0%", "time", "35s"), 3);
	lossy = sim_test_medians("pep_bwe", "lossy-100m", S("loss", "0.01%", "time", "35s"), 3);
	assert_between(lossy.goodput_mbps, 0.99 * clean.goodput_mbps, 100);
}

/* The Korean paper gives a Reno flow 47 of 100 Mbit/s beside its own. */
static void bandwidth_estimation_shares_with_reno(void **state)
{
	struct sim_test_median m;

	(void)state;
	m = sim_test_medians(
		"reno", "lossy-100m",
		S("loss", "0%", "flow", "cca=pep_bwe", "flow", "cca=reno", "time", "65s"), 3);
	assert_between(m.jain, 0.9, 1);
	assert_between(m.utilisation, 0.98, 1.001);
}

/* Many flows in a buffer too small for them: losses, but no collapse. */
static void nobody_retransmits_most_of_what_it_sends(void **state)
{
	static const char *const ccas[] = {"cubic",     "reno",      "pep_bbr", "pep_bbr_acd",
					   "pep_bbr_a", "pep_bbr_d", "pep_bwe"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ccas); i++) {
		struct sim_test_median m = sim_test_medians(
			ccas[i], "mixed-rtt",
			S("rate", "10Mbit/s", "buffer", "0.5bdp", "time", "35s"), 3);

		assert_between(m.retrans, 0, 0.4);
		assert_between(m.utilisation, 0.95, 1.001);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bbr_a_retransmits_60_percent_less_and_shares_better),
		cmocka_unit_test(bbr_acd_retransmits_half),
		cmocka_unit_test(bbr_a_bears_random_loss_as_bbr_does),
		cmocka_unit_test(rtt_adjusted_pacing_halves_the_queue),
		cmocka_unit_test(safe_pacing_works_within_seconds),
		cmocka_unit_test(pacing_hardly_loses_in_shallow_buffers),
		cmocka_unit_test(safe_pacing_costs_one_flow_little),
		cmocka_unit_test(safe_pacing_bears_jitter),
		cmocka_unit_test(bbr_a_is_back_soon_after_a_blockage),
		cmocka_unit_test(bandwidth_estimation_doubles_the_rate_under_loss),
		cmocka_unit_test(a_hundredth_of_a_percent_costs_bandwidth_estimation_nothing),
		cmocka_unit_test(bandwidth_estimation_shares_with_reno),
		cmocka_unit_test(nobody_retransmits_most_of_what_it_sends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
