/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which verdict which evidence gets, in either direction. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/attribution.h"

#define MS  UINT64_C(1000000)
#define MSS 1448

/* One interval of a second over legs of 80 ms (reading) and 10 ms (sending). */
struct evidence {
	const char *what;
	uint64_t bytes_in, blocked_ms, capped_ms, idle_ms, unread;
	uint32_t bursts;
	uint32_t segments, rcv_mss, ooo, rcv_ssthresh, rcv_space;
	uint64_t busy_ms, rwnd_ms, sndbuf_ms;
	uint32_t notsent_before, notsent_after, snd_wnd, unacked, cwnd, cwnd_before, wnd_before;
	enum pep_limit downlink, uplink;
};

#define FULL(n)  .bytes_in = (uint64_t)(n)*MSS, .segments = (n), .rcv_mss = MSS
#define SAME(x)  .downlink = PEP_LIMIT_##x, .uplink = PEP_LIMIT_##x
#define SOURCE   .downlink = PEP_LIMIT_WIRED, .uplink = PEP_LIMIT_WIRELESS
#define SINK     .downlink = PEP_LIMIT_WIRELESS, .uplink = PEP_LIMIT_WIRED
#define OPEN_WND .snd_wnd = 1000000, .rcv_ssthresh = 4000000

static const struct evidence rows[] = {
	{"nothing at all", OPEN_WND, SAME(APPLICATION)},
	{"nothing in order, but a hole is being filled", OPEN_WND, .ooo = 12, SOURCE},
	{"steady full segments, relay empty", FULL(800), OPEN_WND, .bursts = 400, .busy_ms = 900,
	 SOURCE},
	{"full segments with losses and a timeout", FULL(50), OPEN_WND, .bursts = 10,
	 .idle_ms = 700, .ooo = 9, SOURCE},
	{"full segments, silent most of the time", FULL(50), OPEN_WND, .bursts = 4, .idle_ms = 700,
	 SAME(APPLICATION)},
	{"messages of 1000 bytes", .bytes_in = 100000, .segments = 100, .rcv_mss = 1000, OPEN_WND,
	 .bursts = 100, SAME(APPLICATION)},
	{"chunks of 20000 bytes every 50 ms", .bytes_in = 400000, .segments = 280, .rcv_mss = MSS,
	 OPEN_WND, .bursts = 20, SAME(APPLICATION)},
	{"the same chunks through a network that splits them into many bursts", .bytes_in = 400000,
	 .segments = 280, .rcv_mss = MSS, OPEN_WND, .bursts = 60, SAME(APPLICATION)},
	{"a queue through a network that loses", .bytes_in = 1135232, .segments = 811,
	 .rcv_mss = MSS, OPEN_WND, .ooo = 191, .bursts = 30, SOURCE},
	{"relay blocked", FULL(800), OPEN_WND, .blocked_ms = 900, .busy_ms = 1000, SINK},
	{"send queue never dry", FULL(800), OPEN_WND, .notsent_before = 100000,
	 .notsent_after = 90000, .busy_ms = 1000, SINK},
	{"relay blocked, peer's window in the way", FULL(100), OPEN_WND, .blocked_ms = 1000,
	 .busy_ms = 1000, .rwnd_ms = 800, SAME(RECEIVER)},
	{"relay blocked, peer's window opens in small steps", FULL(100), .rcv_ssthresh = 4000000,
	 .snd_wnd = 10000, .cwnd = 26, .blocked_ms = 1000, .busy_ms = 1000, .rwnd_ms = 400,
	 SAME(RECEIVER)},
	{"the same while BBR looks for the least round trip", FULL(100), .rcv_ssthresh = 4000000,
	 .snd_wnd = 14336, .cwnd_before = 28, .cwnd = 4, .blocked_ms = 1000, .busy_ms = 1000,
	 .rwnd_ms = 400, SAME(RECEIVER)},
	{"the same, the peer's buffer emptied meanwhile", FULL(100), .rcv_ssthresh = 4000000,
	 .wnd_before = 12288, .snd_wnd = 57344, .cwnd_before = 26, .cwnd = 26, .blocked_ms = 1000,
	 .busy_ms = 1004, .rwnd_ms = 312, SAME(RECEIVER)},
	{"relay blocked, peer's window in the way for a moment", FULL(800), OPEN_WND, .cwnd = 100,
	 .blocked_ms = 1000, .busy_ms = 1000, .rwnd_ms = 300, SINK},
	{"relay blocked, peer's window shut", .rcv_ssthresh = 4000000, .blocked_ms = 1000,
	 .snd_wnd = 0, .notsent_after = 5000, SAME(RECEIVER)},
	{"relay blocked, yet the socket starved", FULL(800), OPEN_WND, .blocked_ms = 900,
	 .busy_ms = 800, .sndbuf_ms = 700, SAME(PROXY)},
	{"memory cap, data unread, sending leg idle", FULL(20), OPEN_WND, .capped_ms = 800,
	 .unread = 60000, SAME(PROXY)},
	{"memory cap, data unread, sending leg filled now and then", FULL(800), OPEN_WND,
	 .capped_ms = 1000, .unread = 60000, .notsent_before = 190000, .notsent_after = 130000,
	 .busy_ms = 120, SAME(PROXY)},
	{"memory cap, yet all that comes goes on", FULL(800), OPEN_WND, .capped_ms = 1000,
	 .bursts = 400, .busy_ms = 900, SOURCE},
	{"memory cap, and nothing comes", OPEN_WND, .capped_ms = 1000, SAME(APPLICATION)},
	{"memory cap because the sending leg is slow", FULL(20), OPEN_WND, .blocked_ms = 900,
	 .capped_ms = 800, .busy_ms = 1000, SINK},
	{"our window filled each round trip", FULL(500), .snd_wnd = 1000000, .bursts = 50,
	 .rcv_ssthresh = 65536, SAME(PROXY)},
	{"our window filled, its last segment short", .bytes_in = 1300000, .segments = 930,
	 .rcv_mss = MSS, .snd_wnd = 1000000, .bursts = 12, .rcv_ssthresh = 81960, SAME(PROXY)},
	/* 58 kB a round trip; what a window of 80 kB brought when the CPU was busy. */
	{"our window filled, round trips longer than the kernel thinks", .bytes_in = 725000,
	 .segments = 507, .rcv_mss = MSS, .snd_wnd = 1000000, .bursts = 50, .rcv_ssthresh = 81920,
	 .rcv_space = 94952, SAME(PROXY)},
	{"window large enough by the kernel's account", FULL(501), .snd_wnd = 1000000, .bursts = 50,
	 .rcv_ssthresh = 160000, .rcv_space = 78000, SOURCE},
	{"window once filled, now a path that brings less", FULL(250), .snd_wnd = 1000000,
	 .bursts = 50, .rcv_ssthresh = 81920, .rcv_space = 94952, SOURCE},
	{"data lie unread", FULL(8000), OPEN_WND, .bursts = 50, .unread = 3000000, SAME(PROXY)},
};

static void verdicts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct evidence *e = &rows[i];

		for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
			/* Counters that are about to wrap, to see that deltas bear it. */
			struct pep_stats_tcp rb = {.data_segs_in = UINT32_MAX - 3,
						   .rcv_ooo = UINT32_MAX,
						   .bytes_received = 5000};
			struct pep_stats_tcp ra = rb, sb = {.snd_mss = MSS,
							    .notsent_bytes = e->notsent_before};
			struct pep_stats_tcp sa = sb;
			struct pep_attribution_input in = {
				.direction = (enum pep_direction)d,
				.interval_ns = 1000 * MS,
				.bytes_in = e->bytes_in,
				.blocked_ns = e->blocked_ms * MS,
				.capped_ns = e->capped_ms * MS,
				.idle_ns = e->idle_ms * MS,
				.bursts = e->bursts,
				.unread_bytes = e->unread,
				.reading_before = &rb,
				.reading_after = &ra,
				.sending_before = &sb,
				.sending_after = &sa,
			};
			enum pep_limit want = d == PEP_DIRECTION_DOWNLINK ? e->downlink : e->uplink;
			enum pep_limit got;

			ra.data_segs_in += e->segments;
			ra.bytes_received += e->bytes_in;
			ra.rcv_ooo += e->ooo;
			ra.rcv_mss = e->rcv_mss;
			ra.snd_mss = MSS;
			ra.srtt_us = 80000;
			ra.rcv_rtt_us = 80000;
			ra.rcv_ssthresh = e->rcv_ssthresh;
			ra.rcv_space = e->rcv_space;
			sa.busy_us = e->busy_ms * 1000;
			sa.rwnd_limited_us = e->rwnd_ms * 1000;
			sa.sndbuf_limited_us = e->sndbuf_ms * 1000;
			sa.notsent_bytes = e->notsent_after;
			sa.snd_wnd = e->snd_wnd;
			sa.unacked = e->unacked;
			sb.cwnd = e->cwnd_before;
			sb.snd_wnd = e->wnd_before;
			sb.valid = e->wnd_before > 0;
			sa.cwnd = e->cwnd;

			got = pep_attribution_judge(&in);
			if (got != want)
				fail_msg("%s, %s: %s, expected %s", e->what,
					 pep_direction_name((enum pep_direction)d),
					 pep_limit_name(got), pep_limit_name(want));
		}
	}
}

static void window_clamp_counts_as_our_window(void **state)
{
	struct pep_stats_tcp before = {0};
	struct pep_stats_tcp after = {.data_segs_in = 500,
				      .bytes_received = 500 * MSS,
				      .rcv_mss = MSS,
				      .snd_mss = MSS,
				      .srtt_us = 80000,
				      .rcv_ssthresh = 4000000};
	struct pep_stats_tcp sending = {.snd_mss = MSS};
	struct pep_attribution_input in = {.interval_ns = 1000 * MS,
					   .bytes_in = 500 * MSS,
					   .reading_before = &before,
					   .reading_after = &after,
					   .sending_before = &sending,
					   .sending_after = &sending};

	(void)state;
	assert_int_equal(pep_attribution_judge(&in), PEP_LIMIT_WIRED);
	in.window_bytes = 64000;
	assert_int_equal(pep_attribution_judge(&in), PEP_LIMIT_PROXY);
}

static void relay_counts_periods_across_intervals(void **state)
{
	struct pep_attribution_relay relay;
	struct pep_attribution_input in;

	(void)state;
	pep_attribution_init(&relay, 1000 * MS);
	pep_attribution_blocked(&relay, 1100 * MS);
	pep_attribution_blocked(&relay, 1200 * MS); /* repeated: the first counts */
	pep_attribution_drained(&relay, 1300 * MS);
	pep_attribution_drained(&relay, 1400 * MS);
	pep_attribution_capped(&relay, 1900 * MS);
	pep_attribution_take(&relay, 2000 * MS, NULL, &in);
	assert_int_equal(in.interval_ns, 1000 * MS);
	assert_int_equal(in.blocked_ns, 200 * MS);
	assert_int_equal(in.capped_ns, 100 * MS);
	assert_int_equal(in.idle_ns, 1000 * MS); /* nothing was read */

	pep_attribution_uncapped(&relay, 2050 * MS);
	pep_attribution_take(&relay, 3000 * MS, NULL, &in);
	assert_int_equal(in.capped_ns, 50 * MS);
	assert_int_equal(in.blocked_ns, 0);
	assert_int_equal(in.idle_ns, 1000 * MS); /* no more than the interval */
}

static void silences_and_bursts(void **state)
{
	struct pep_stats_tcp slow = {.srtt_us = 200000};
	struct pep_attribution_relay relay;
	struct pep_attribution_input in;

	(void)state;
	pep_attribution_init(&relay, 0);
	for (uint64_t t = 1; t <= 100; t++) /* every ms: one burst */
		pep_attribution_read(&relay, t * MS, 1000);
	pep_attribution_read(&relay, 600 * MS, 1000); /* half a second of silence */
	pep_attribution_read(&relay, 610 * MS, 1000);
	pep_attribution_take(&relay, 620 * MS, &slow, &in);
	assert_int_equal(in.bytes_in, 102000);
	assert_int_equal(in.idle_ns, 500 * MS);
	assert_int_equal(in.bursts, 2);
	assert_int_equal(relay.total_in, 102000);

	/* On a leg of 200 ms a silence of 250 ms is the round trip. */
	pep_attribution_read(&relay, 860 * MS, 1000);
	pep_attribution_take(&relay, 900 * MS, &slow, &in);
	assert_int_equal(in.idle_ns, 0);
}

static void verdicts_lie_on_a_segment(void **state)
{
	(void)state;
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		enum pep_direction dir = (enum pep_direction)d;
		enum pep_segment reading =
			d == PEP_DIRECTION_DOWNLINK ? PEP_SEGMENT_WIRED : PEP_SEGMENT_WIRELESS;

		assert_int_equal(pep_attribution_segment(PEP_LIMIT_WIRED, dir), PEP_SEGMENT_WIRED);
		assert_int_equal(pep_attribution_segment(PEP_LIMIT_WIRELESS, dir),
				 PEP_SEGMENT_WIRELESS);
		assert_int_equal(pep_attribution_segment(PEP_LIMIT_RECEIVER, dir), !reading);
		assert_int_equal(pep_attribution_segment(PEP_LIMIT_APPLICATION, dir), reading);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts),
		cmocka_unit_test(window_clamp_counts_as_our_window),
		cmocka_unit_test(relay_counts_periods_across_intervals),
		cmocka_unit_test(silences_and_bursts),
		cmocka_unit_test(verdicts_lie_on_a_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
