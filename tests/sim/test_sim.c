/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulator against theory: what it says of windows, queues, losses and rates must be right. */
#include "sim_test.h"

#include "evq.h"

#include <math.h>

#define S SIM_TEST_SETTINGS

#define PAYLOAD  1448.0
#define WIRE     1500.0
#define NO_LIMIT "100000p"

/* -- parts -- */

static void events_come_in_order(void **state)
{
	struct sim_evq q;
	struct sim_prng prng;
	uint64_t at[50];

	(void)state;
	sim_prng_seed(&prng, 7, 0);
	assert_int_equal(sim_evq_init(&q, 50), 0);
	for (int i = 0; i < 50; i++)
		at[i] = SIM_NEVER;
	for (int step = 0; step < 20000; step++) {
		uint32_t slot = sim_prng_below(&prng, 50), first = 0;

		at[slot] = sim_prng_below(&prng, 4) ? sim_prng_below(&prng, 1000) : SIM_NEVER;
		sim_evq_set(&q, slot, at[slot]);
		for (uint32_t i = 0; i < 50; i++)
			first = at[i] < at[first] ? i : first;
		if (at[first] == SIM_NEVER) {
			assert_int_equal(q.n, 0);
			continue;
		}
		assert_int_equal(sim_evq_first(&q), first);
		assert_int_equal(sim_evq_at(&q, first), at[first]);
	}
	sim_evq_fini(&q);
}

static void quantiles_are_within_two_percent(void **state)
{
	static struct sim_hist h;

	(void)state;
	for (uint64_t v = 0; v < 1000000; v += 10)
		sim_hist_add(&h, v * 1000);
	assert_between((double)sim_hist_quantile(&h, 0.5), 490e6, 510e6);
	assert_between((double)sim_hist_quantile(&h, 0.95), 931e6, 969e6);
	assert_between(sim_hist_mean(&h), 499.9e6, 500.1e6);
}

static void jain_and_median(void **state)
{
	double equal[] = {3, 3, 3}, one[] = {0, 0, 9, 0}, odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};

	(void)state;
	assert_between(sim_jain(equal, 3), 1, 1);
	assert_between(sim_jain(one, 4), 0.25, 0.25);
	assert_between(sim_median(odd, 3), 3, 3);
	assert_between(sim_median(even, 4), 2.5, 2.5);
}

static void link_init(struct sim_link *l, const struct sim_link_conf *conf)
{
	assert_int_equal(sim_link_init(l, conf, 1), 0);
}

static void a_link_serves_at_its_rate_and_drops_what_does_not_fit(void **state)
{
	struct sim_link_conf conf = {.steps = {{0, 1500000}}, .n_steps = 1, .buffer_bytes = 4500};
	struct sim_link l;
	uint64_t depart = 0, wait = 0;

	(void)state;
	link_init(&l, &conf);
	for (unsigned int i = 0; i < 4; i++) { /* one in service, three waiting */
		assert_int_equal(sim_link_send(&l, 0, 1500, &depart, &wait), SIM_FATE_PASSED);
		assert_int_equal(depart, (i + 1) * 1000000);
		assert_int_equal(wait, i * 1000000);
	}
	assert_int_equal(sim_link_send(&l, 0, 1500, &depart, &wait), SIM_FATE_DROPPED);
	assert_int_equal(sim_link_send(&l, 1000000, 1500, &depart, &wait), SIM_FATE_PASSED);
	assert_int_equal(depart, 5000000);
	sim_link_fini(&l);
}

static void a_rate_step_takes_effect_within_a_packet(void **state)
{
	struct sim_link_conf conf = {.steps = {{0, 1500000}, {1500000, 0}, {2000000, 3000000}},
				     .n_steps = 3,
				     .buffer_bytes = 1 << 20};
	struct sim_link l;
	uint64_t depart = 0, wait = 0;

	(void)state;
	link_init(&l, &conf);
	sim_link_send(&l, 0, 1500, &depart, &wait);
	assert_int_equal(depart, 1000000);
	sim_link_send(&l, 0, 1500, &depart,
		      &wait); /* half, an outage of 0.5 ms, half at twice the rate */
	assert_int_equal(depart, 2250000);
	assert_between(sim_link_capacity(&l, 0, 3000000), 2250 + 3000, 2250 + 3000);
	sim_link_fini(&l);
}

static void a_trace_gives_its_chances_and_starts_again(void **state)
{
	uint32_t ms[] = {1, 1, 5, 10};
	struct sim_trace trace = {ms, 4, 10};
	struct sim_link_conf conf = {.trace = &trace, .buffer_bytes = 1 << 20};
	static const uint64_t expected[] = {1, 1, 5, 10, 11, 11, 15, 20, 21};
	struct sim_link l;
	uint64_t depart = 0, wait = 0;

	(void)state;
	link_init(&l, &conf);
	for (size_t i = 0; i < COUNT_OF(expected); i++) {
		sim_link_send(&l, 0, 1500, &depart, &wait);
		assert_int_equal(depart, expected[i] * 1000000);
	}
	sim_link_send(&l, 26000000, 750, &depart, &wait); /* two halves share a chance */
	assert_int_equal(depart, 30000000);
	sim_link_send(&l, 26000000, 750, &depart, &wait);
	assert_int_equal(depart, 30000000);
	sim_link_send(&l, 26000000, 750, &depart, &wait);
	assert_int_equal(depart, 31000000);
	assert_between(sim_link_capacity(&l, 0, 20000000), 7 * 1500, 8 * 1500);
	sim_link_fini(&l);
}

/* Sends @n packets one by one; returns the share lost and the mean length of a run of losses. */
static double loss_share(const struct sim_link_conf *conf, unsigned int n, double *ret_run)
{
	unsigned int lost = 0, runs = 0;
	uint64_t depart, wait;
	struct sim_link l;
	bool before = false;

	link_init(&l, conf);
	for (unsigned int i = 0; i < n; i++) {
		bool now = sim_link_send(&l, i * 1000000ull, 1500, &depart, &wait) == SIM_FATE_LOST;

		lost += now;
		runs += now && !before;
		before = now;
	}
	*ret_run = runs ? (double)lost / runs : 0;
	sim_link_fini(&l);
	return (double)lost / n;
}

static void losses_have_the_share_and_the_bursts_asked_for(void **state)
{
	struct sim_link_conf conf = {.steps = {{0, 1u << 30}}, .n_steps = 1, .loss = 0.01};
	double run;

	(void)state;
	conf.buffer_bytes = 1 << 20;
	assert_between(loss_share(&conf, 1000000, &run), 0.0097, 0.0103);
	assert_between(run, 1, 1.03);
	conf.loss = 0;
	conf.burst_start = 0.001;
	conf.burst_end = 0.1; /* 10 packets long; bad 1/101 of the time */
	conf.burst_loss = 1;
	assert_between(loss_share(&conf, 3000000, &run), 0.0094, 0.0104);
	assert_between(run, 9.5, 10.5);
}

/* -- flows -- */

static void a_small_window_gives_window_over_rtt(void **state)
{
	struct sim_result r;
	double rtt_s = 0.040 + WIRE * 8 / 20e6;

	(void)state;
	sim_test_run("fixed", NULL, S("param", "fixed.cwnd=30"), 1, &r);
	/* The burst of 30 packets follows itself; each waits for its turn behind the one before. */
	assert_between(r.goodput_bps, 0.995 * 30 * PAYLOAD * 8 / rtt_s,
		       1.005 * 30 * PAYLOAD * 8 / rtt_s);
	assert_int_equal(r.dropped + r.lost, 0);
}

static void a_large_window_stands_in_the_queue(void **state)
{
	struct sim_result r;
	double window = 200, service_ms = WIRE * 8 / 20e6 * 1e3;

	(void)state;
	sim_test_run("fixed", NULL, S("param", "fixed.cwnd=200", "buffer", NO_LIMIT), 1, &r);
	assert_between(r.utilisation, 0.999, 1.001);
	assert_between(r.goodput_bps, 0.999 * 20e6 * PAYLOAD / WIRE, 1.001 * 20e6 * PAYLOAD / WIRE);
	assert_between(r.flows[0].rtt_ms, 0.99 * window * service_ms, 1.01 * window * service_ms);
	assert_between(r.queue_mean_ms, window * service_ms - 40 - 2, window * service_ms - 40 + 2);
}

static void equal_windows_share_equally(void **state)
{
	struct sim_result r;

	(void)state;
	sim_test_run("fixed", NULL, S("param", "fixed.cwnd=100", "flows", "4", "buffer", NO_LIMIT),
		     1, &r);
	assert_between(r.jain, 0.999, 1);
	assert_between(r.utilisation, 0.999, 1.001);
}

static void random_loss_costs_its_share_of_packets(void **state)
{
	struct sim_result r;

	(void)state;
	sim_test_run("fixed", NULL, S("param", "fixed.cwnd=40", "loss", "1%", "time", "305s"), 1,
		     &r);
	assert_between(r.retrans_share, 0.0095, 0.0105);
	assert_between(r.loss_share, 0.0095, 0.0105);
	assert_int_equal(r.rtos, 0);
	/* A fixed window keeps going through losses: at most a round trip per episode is thinner.
	 */
	assert_between(r.utilisation, 0.5, 0.61);
}

static void no_packet_is_made_or_forgotten(void **state)
{
	static const char *const ccas[] = {"cubic", "reno", "pep_bbr", "pep_bbr_a", "pep_bwe"};
	struct sim_result r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ccas); i++) {
		sim_test_run(
			ccas[i], NULL,
			S("flows", "5", "loss", "0.5%", "jitter", "5ms", "burst", "0.1%,20%,80%"),
			i, &r);
		assert_int_equal(r.sent, r.passed + r.dropped + r.lost);
		assert_int_equal(r.passed, r.received);
		assert_true(r.dropped > 0 && r.lost > 0);
	}
}

static void the_same_seed_gives_the_same_run(void **state)
{
	static struct sim_result a, b, c;
	const char *const *settings = S("flows", "3", "loss", "1%", "jitter", "7ms");

	(void)state;
	sim_test_run("pep_bbr_a", NULL, settings, 5, &a);
	sim_test_run("pep_bbr_a", NULL, settings, 5, &b);
	sim_test_run("pep_bbr_a", NULL, settings, 6, &c);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_not_equal(&a, &c, sizeof(a));
}

static void reno_follows_the_square_root_law(void **state)
{
	static const struct {
		const char *loss, *rtt;
		double p, rtt_s;
	} cells[] = {{"0.01%", "100ms", 0.0001, 0.1},
		     {"0.1%", "20ms", 0.001, 0.02},
		     {"0.1%", "100ms", 0.001, 0.1},
		     {"1%", "20ms", 0.01, 0.02}};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cells); i++) {
		double law = sqrt(1.5 / cells[i].p) * PAYLOAD * 8 / cells[i].rtt_s / 1e6;
		struct sim_test_median m =
			sim_test_medians("reno", NULL,
					 S("rate", "2Gbit/s", "rtt", cells[i].rtt, "loss",
					   cells[i].loss, "time", "305s"),
					 3);

		assert_between(m.goodput_mbps, 0.85 * law, 1.15 * law);
	}
}

static void cubic_follows_its_response_function(void **state)
{
	/* 1.054 p^-3/4 RTT^-1/4 where that is above Reno's rate (RFC 9438, figure 4). */
	double law = 1.054 * pow(0.0001, -0.75) * pow(0.1, -0.25) * PAYLOAD * 8 / 1e6;
	struct sim_test_median m;

	(void)state;
	m = sim_test_medians("cubic", NULL,
			     S("rate", "2Gbit/s", "rtt", "100ms", "loss", "0.01%", "time", "305s"),
			     3);
	assert_between(m.goodput_mbps, 0.8 * law, 1.25 * law);
}

static void reno_alone_fills_a_buffer_of_one_bdp(void **state)
{
	struct sim_result r;

	(void)state;
	sim_test_run("reno", NULL, S("time", "105s"), 1, &r);
	assert_between(r.utilisation, 0.99, 1.001);
	assert_between(r.queue_mean_ms, 15, 28); /* a saw tooth between 0 and 40 ms */
}

static void bbr_bears_random_loss(void **state)
{
	static const struct {
		const char *loss;
		double low;
	} cells[] = {{"0.1%", 0.95}, {"1%", 0.95}, {"5%", 0.88}};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cells); i++)
		assert_between(sim_test_medians("pep_bbr", NULL,
						S("loss", cells[i].loss, "time", "65s"), 3)
				       .utilisation,
			       cells[i].low, 1);
}

static void an_application_sets_its_own_rate(void **state)
{
	static const char *const ccas[] = {"cubic", "pep_bbr", "pep_bwe"};
	struct sim_result r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ccas); i++) {
		sim_test_run(ccas[i], NULL, S("flow", "app-rate=3Mbit/s"), 1, &r);
		assert_between(r.goodput_bps, 2.9e6, 3.1e6);
		assert_between(r.queue_p95_ms, 0, 5);
	}
}

static void a_transfer_ends(void **state)
{
	struct sim_result r;

	(void)state;
	sim_test_run("cubic", NULL,
		     S("flow", "bytes=1MB", "loss", "1%", "warmup", "0s", "stagger", "0s"), 1, &r);
	assert_between(r.flows[0].finished_s, 1e6 * 8 / 20e6, 10);
	assert_int_equal(r.flows[0].bytes, 691 * 1448);
}

static void fewer_acks_do_not_change_the_rate(void **state)
{
	static const char *const ccas[] = {"reno", "cubic", "pep_bbr", "pep_bwe"};
	struct sim_result r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ccas); i++) {
		sim_test_run(ccas[i], NULL, S("ack-every", "2", "time", "65s"), 1, &r);
		assert_between(r.utilisation, 0.95, 1.001);
	}
}

static void an_outage_is_survived_and_its_timeout_undone(void **state)
{
	static const char *const ccas[] = {"cubic", "reno", "pep_bbr", "pep_bwe"};
	struct sim_result r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ccas); i++) {
		sim_test_run(ccas[i], NULL,
			     S("flow", "app-rate=5Mbit/s", "rate-at", "10s:0Mbit/s", "rate-at",
			       "11s:20Mbit/s", "buffer", NO_LIMIT),
			     1, &r);
		assert_true(r.flows[0].rtos >= 1);
		assert_int_equal(r.flows[0].undos, 1); /* nothing was lost */
		assert_between(r.flows[0].retrans_share, 0, 0.01);
		assert_between(r.goodput_bps, 4.9e6, 5.1e6);
	}
}

static void short_bursts_are_repaired_without_timeouts(void **state)
{
	struct sim_result r;

	(void)state;
	sim_test_run("fixed", NULL,
		     S("param", "fixed.cwnd=20", "burst", "0.2%,20%,100%", "time", "105s"), 1, &r);
	assert_true(r.flows[0].recoveries > 60);
	assert_true(r.rtos < r.flows[0].recoveries / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_in_order),
		cmocka_unit_test(quantiles_are_within_two_percent),
		cmocka_unit_test(jain_and_median),
		cmocka_unit_test(a_link_serves_at_its_rate_and_drops_what_does_not_fit),
		cmocka_unit_test(a_rate_step_takes_effect_within_a_packet),
		cmocka_unit_test(a_trace_gives_its_chances_and_starts_again),
		cmocka_unit_test(losses_have_the_share_and_the_bursts_asked_for),
		cmocka_unit_test(a_small_window_gives_window_over_rtt),
		cmocka_unit_test(a_large_window_stands_in_the_queue),
		cmocka_unit_test(equal_windows_share_equally),
		cmocka_unit_test(random_loss_costs_its_share_of_packets),
		cmocka_unit_test(no_packet_is_made_or_forgotten),
		cmocka_unit_test(the_same_seed_gives_the_same_run),
		cmocka_unit_test(reno_follows_the_square_root_law),
		cmocka_unit_test(cubic_follows_its_response_function),
		cmocka_unit_test(reno_alone_fills_a_buffer_of_one_bdp),
		cmocka_unit_test(bbr_bears_random_loss),
		cmocka_unit_test(an_application_sets_its_own_rate),
		cmocka_unit_test(a_transfer_ends),
		cmocka_unit_test(fewer_acks_do_not_change_the_rate),
		cmocka_unit_test(an_outage_is_survived_and_its_timeout_undone),
		cmocka_unit_test(short_bursts_are_repaired_without_timeouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
