/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sample keeps the daemon's counters as they were, so that an average over any stretch is one
 * subtraction and loses nothing to rounding.
 */
#include "mon/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/attribution.h"

/*
 * The daemon looks at each flow's TCP_INFO once a second, at its own second. What is made of that
 * is shown as the mean of so many seconds, else it would jump as the two seconds drift.
 */
#define TCP_SECONDS 3

struct sample {
	bool valid; /* false: no daemon */
	bool first; /* no sample before it to compare with */
	uint64_t mono_ns, real_ns;
	uint64_t payload[PEP_SEGMENT_COUNT_][PEP_DIRECTION_COUNT_];
	uint64_t sent[PEP_SEGMENT_COUNT_], retransmitted[PEP_SEGMENT_COUNT_];
	uint64_t rtt_sum_ns[PEP_SEGMENT_COUNT_], rtt_count[PEP_SEGMENT_COUNT_];
	uint64_t limited_ns[PEP_DIRECTION_COUNT_][PEP_LIMIT_COUNT_];
	uint64_t held[PEP_DIRECTION_COUNT_];   /* by the relay */
	uint64_t queued[PEP_DIRECTION_COUNT_]; /* the same and what waits in the sockets */
	uint64_t flows, pending, split, bypassed, refused, closed, connect_failures;
	uint32_t min_rtt_us[PEP_SEGMENT_COUNT_];
};

struct pep_history {
	struct sample ring[PEP_HISTORY_SECONDS + TCP_SECONDS + 1];
	uint64_t count; /* samples ever pushed */
};

#define RING (sizeof(((struct pep_history *)0)->ring) / sizeof(struct sample))

struct pep_history *pep_history_new(void)
{
	return calloc(1, sizeof(struct pep_history));
}

void pep_history_free(struct pep_history *history)
{
	free(history);
}

/* The sample @back places before the newest (0), or NULL. */
static const struct sample *sample_at(const struct pep_history *h, uint64_t back)
{
	if (back >= h->count || back >= RING)
		return NULL;
	return &h->ring[(h->count - 1 - back) % RING];
}

/*
 * The oldest sample at most @steps before the one @back places ago with which that one can be
 * compared; itself when there is none.
 */
static const struct sample *base_of(const struct pep_history *h, uint64_t back, unsigned int steps)
{
	const struct sample *base = sample_at(h, back);

	for (unsigned int i = 1; i <= steps && base && base->valid && !base->first; i++) {
		const struct sample *older = sample_at(h, back + i);

		if (!older || !older->valid)
			break;
		base = older;
	}
	return base;
}

static uint64_t sum(const pep_stats_word *words, size_t count)
{
	uint64_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += pep_stats_word_get(&words[i]);
	return n;
}

static void fill_segment(struct sample *s, int segment, const struct pep_stats_block *t)
{
	static const enum pep_histogram rtt[PEP_SEGMENT_COUNT_] = {
		[PEP_SEGMENT_WIRELESS] = PEP_HISTOGRAM_WIRELESS_RTT,
		[PEP_SEGMENT_WIRED] = PEP_HISTOGRAM_WIRED_RTT,
	};
	const struct pep_stats_histogram *h = &t->histograms[rtt[segment]];

	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++)
		s->payload[segment][d] = sum(t->payload_bytes[segment][d], PEP_STATS_MAX_CLASSES);
	s->sent[segment] = sum(t->sent_bytes[segment], PEP_STATS_MAX_CCAS);
	s->retransmitted[segment] = sum(t->retransmitted_bytes[segment], PEP_STATS_MAX_CCAS);
	s->rtt_sum_ns[segment] = pep_stats_word_get(&h->sum);
	s->rtt_count[segment] = sum(h->buckets, PEP_STATS_MAX_BUCKETS + 1);
}

static void fill_queues(struct sample *s, const pep_stats_word *gauges)
{
	static const enum pep_gauge parts[PEP_DIRECTION_COUNT_][3] = {
		[PEP_DIRECTION_DOWNLINK] = {PEP_GAUGE_HELD_DOWNLINK_BYTES,
					    PEP_GAUGE_UNREAD_WIRED_BYTES,
					    PEP_GAUGE_NOTSENT_WIRELESS_BYTES},
		[PEP_DIRECTION_UPLINK] = {PEP_GAUGE_HELD_UPLINK_BYTES,
					  PEP_GAUGE_UNREAD_WIRELESS_BYTES,
					  PEP_GAUGE_NOTSENT_WIRED_BYTES},
	};

	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		s->held[d] = pep_stats_word_get(&gauges[parts[d][0]]);
		for (int i = 0; i < 3; i++)
			s->queued[d] += pep_stats_word_get(&gauges[parts[d][i]]);
	}
}

static struct sample *next_sample(struct pep_history *h)
{
	struct sample *s = &h->ring[h->count++ % RING];

	memset(s, 0, sizeof(*s));
	return s;
}

static void fill(struct sample *s, const struct pep_history_tick *tick)
{
	const struct pep_stats_block *t = tick->totals;

	s->valid = true;
	s->mono_ns = tick->mono_ns;
	s->real_ns = tick->real_ns;
	for (int i = 0; i < PEP_SEGMENT_COUNT_; i++) {
		fill_segment(s, i, t);
		s->min_rtt_us[i] = tick->min_rtt_us[i];
	}
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		for (int r = 0; r < PEP_LIMIT_COUNT_; r++) {
			enum pep_segment segment =
				pep_attribution_segment((enum pep_limit)r, (enum pep_direction)d);

			s->limited_ns[d][r] = pep_stats_word_get(&t->limited_ns[segment][d][r]);
		}
	}
	fill_queues(s, t->gauges);
	s->flows = pep_stats_word_get(&t->gauges[PEP_GAUGE_FLOWS]);
	s->pending = pep_stats_word_get(&t->gauges[PEP_GAUGE_PENDING]);
	s->split = pep_stats_word_get(&t->counters[PEP_COUNTER_FLOWS_SPLIT]);
	s->bypassed = sum(t->bypassed, PEP_BYPASS_COUNT_);
	s->refused = sum(t->refused, PEP_REFUSE_COUNT_);
	s->closed = sum(t->closed, PEP_CLOSE_COUNT_);
	s->connect_failures = sum(t->connect_failures, PEP_CONNECT_FAILURE_COUNT_);
}

void pep_history_push(struct pep_history *h, const struct pep_history_tick *tick)
{
	const struct sample *before = sample_at(h, 0);
	bool first = !before || !before->valid;
	struct sample *s = next_sample(h);

	fill(s, tick);
	s->first = first;
}

void pep_history_push_gap(struct pep_history *h, uint64_t real_ns)
{
	next_sample(h)->real_ns = real_ns;
}

/* Two samples that can be compared, one second and TCP_SECONDS apart at most. */
struct span {
	const struct sample *now, *before, *tcp_before;
};

static double per_second(uint64_t before, uint64_t now, const struct sample *a,
			 const struct sample *b)
{
	double seconds = (double)(b->mono_ns - a->mono_ns) / 1e9;

	return seconds > 0 && now >= before ? (double)(now - before) / seconds : NAN;
}

static double rate(const struct span *s, int segment, int direction)
{
	return per_second(s->before->payload[segment][direction],
			  s->now->payload[segment][direction], s->before, s->now);
}

static double rtt_seconds(const struct span *s, int segment)
{
	uint64_t n = s->now->rtt_count[segment] - s->tcp_before->rtt_count[segment];
	uint64_t ns = s->now->rtt_sum_ns[segment] - s->tcp_before->rtt_sum_ns[segment];

	return n ? (double)ns / (double)n / 1e9 : NAN;
}

static double min_rtt_seconds(const struct span *s, int segment)
{
	return s->now->min_rtt_us[segment] ? s->now->min_rtt_us[segment] / 1e6 : NAN;
}

static double retransmitted_share(const struct span *s, int segment)
{
	uint64_t sent = s->now->sent[segment] - s->tcp_before->sent[segment];
	uint64_t again = s->now->retransmitted[segment] - s->tcp_before->retransmitted[segment];

	return sent ? (double)again / (double)sent : NAN;
}

/* How many flows, on average, were held back by @reason. */
static double limited(const struct span *s, int direction, int reason)
{
	return per_second(s->tcp_before->limited_ns[direction][reason],
			  s->now->limited_ns[direction][reason], s->tcp_before, s->now) /
	       1e9;
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* A column is made by calling @value for each of the samples, oldest first. */
typedef json_t *column_value(const struct span *span, int a, int b);

static json_t *value_rate(const struct span *s, int a, int b)
{
	return number(rate(s, a, b));
}

static json_t *value_rtt(const struct span *s, int a, int b)
{
	(void)b;
	return number(rtt_seconds(s, a));
}

static json_t *value_min_rtt(const struct span *s, int a, int b)
{
	(void)b;
	return number(min_rtt_seconds(s, a));
}

static json_t *value_retransmitted(const struct span *s, int a, int b)
{
	(void)b;
	return number(retransmitted_share(s, a));
}

static json_t *value_limited(const struct span *s, int a, int b)
{
	return number(limited(s, a, b));
}

static json_t *value_held(const struct span *s, int a, int b)
{
	(void)b;
	return json_integer((json_int_t)s->now->held[a]);
}

static json_t *value_queued(const struct span *s, int a, int b)
{
	(void)b;
	return json_integer((json_int_t)s->now->queued[a]);
}

static json_t *value_flows(const struct span *s, int a, int b)
{
	(void)a;
	(void)b;
	return json_integer((json_int_t)s->now->flows);
}

static json_t *value_pending(const struct span *s, int a, int b)
{
	(void)a;
	(void)b;
	return json_integer((json_int_t)s->now->pending);
}

enum event {
	EVENT_SPLIT,
	EVENT_BYPASSED,
	EVENT_REFUSED,
	EVENT_CLOSED,
	EVENT_FAILED
};

static uint64_t events(const struct sample *s, enum event which)
{
	switch (which) {
	case EVENT_SPLIT:
		return s->split;
	case EVENT_BYPASSED:
		return s->bypassed;
	case EVENT_REFUSED:
		return s->refused;
	case EVENT_CLOSED:
		return s->closed;
	case EVENT_FAILED:
		break;
	}
	return s->connect_failures;
}

static json_t *value_events(const struct span *s, int a, int b)
{
	enum event which = (enum event)a;

	(void)b;
	return number(
		per_second(events(s->before, which), events(s->now, which), s->before, s->now));
}

static struct span span_at(const struct pep_history *h, uint64_t back)
{
	return (struct span){sample_at(h, back), base_of(h, back, 1),
			     base_of(h, back, TCP_SECONDS)};
}

static json_t *column(const struct pep_history *h, uint64_t n, column_value *value, int a, int b)
{
	json_t *array = json_array();

	for (uint64_t back = n; array && back-- > 0;) {
		struct span span = span_at(h, back);

		json_array_append_new(array, span.now->valid ? value(&span, a, b) : json_null());
	}
	return array;
}

static json_t *segment_columns(const struct pep_history *h, uint64_t n, int s)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o}", "downlink_bytes_per_second",
		column(h, n, value_rate, s, PEP_DIRECTION_DOWNLINK), "uplink_bytes_per_second",
		column(h, n, value_rate, s, PEP_DIRECTION_UPLINK), "rtt_seconds",
		column(h, n, value_rtt, s, 0), "min_rtt_seconds", column(h, n, value_min_rtt, s, 0),
		"retransmitted_share", column(h, n, value_retransmitted, s, 0));
}

static json_t *limit_columns(const struct pep_history *h, uint64_t n, int d)
{
	json_t *object = json_object();

	for (int r = 0; object && r < PEP_LIMIT_COUNT_; r++)
		json_object_set_new(object, pep_limit_name((enum pep_limit)r),
				    column(h, n, value_limited, d, r));
	return object;
}

json_t *pep_history_json(const struct pep_history *h, unsigned int seconds)
{
	uint64_t n = h->count < seconds ? h->count : seconds;
	json_t *times = json_array();

	for (uint64_t back = n; times && back-- > 0;)
		json_array_append_new(times, json_real((double)sample_at(h, back)->real_ns / 1e9));
	return json_pack("{s:i, s:o, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}, s:o, s:o, "
			 "s:o, s:o, s:o, s:o,"
			 " s:o}",
			 "interval_seconds", 1, "time", times, "wireless",
			 segment_columns(h, n, PEP_SEGMENT_WIRELESS), "wired",
			 segment_columns(h, n, PEP_SEGMENT_WIRED), "held_bytes", "downlink",
			 column(h, n, value_held, PEP_DIRECTION_DOWNLINK, 0), "uplink",
			 column(h, n, value_held, PEP_DIRECTION_UPLINK, 0), "queued_bytes",
			 "downlink", column(h, n, value_queued, PEP_DIRECTION_DOWNLINK, 0),
			 "uplink", column(h, n, value_queued, PEP_DIRECTION_UPLINK, 0),
			 "limited_flows", "downlink", limit_columns(h, n, PEP_DIRECTION_DOWNLINK),
			 "uplink", limit_columns(h, n, PEP_DIRECTION_UPLINK), "flows",
			 column(h, n, value_flows, 0, 0), "flows_pending",
			 column(h, n, value_pending, 0, 0), "new_flows_per_second",
			 column(h, n, value_events, EVENT_SPLIT, 0), "bypassed_flows_per_second",
			 column(h, n, value_events, EVENT_BYPASSED, 0), "refused_flows_per_second",
			 column(h, n, value_events, EVENT_REFUSED, 0), "closed_flows_per_second",
			 column(h, n, value_events, EVENT_CLOSED, 0), "connect_failures_per_second",
			 column(h, n, value_events, EVENT_FAILED, 0));
}

static json_t *segment_now(const struct span *span, int s)
{
	static const char *const path = "{s:o, s:I}";
	const struct sample *now = span->now;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "downlink",
		json_pack(path, "bytes_per_second", number(rate(span, s, PEP_DIRECTION_DOWNLINK)),
			  "bytes_total", (json_int_t)now->payload[s][PEP_DIRECTION_DOWNLINK]),
		"uplink",
		json_pack(path, "bytes_per_second", number(rate(span, s, PEP_DIRECTION_UPLINK)),
			  "bytes_total", (json_int_t)now->payload[s][PEP_DIRECTION_UPLINK]),
		"rtt_seconds", number(rtt_seconds(span, s)), "min_rtt_seconds",
		number(min_rtt_seconds(span, s)), "retransmitted_share",
		number(retransmitted_share(span, s)), "sent_bytes_total", (json_int_t)now->sent[s],
		"retransmitted_bytes_total", (json_int_t)now->retransmitted[s]);
}

static json_t *limits_now(const struct span *span, int d)
{
	json_t *object = json_object();

	for (int r = 0; object && r < PEP_LIMIT_COUNT_; r++)
		json_object_set_new(object, pep_limit_name((enum pep_limit)r),
				    number(limited(span, d, r)));
	return object;
}

/* The sample from about @seconds ago, if it can be compared with the newest; else NULL. */
static const struct sample *ago(const struct pep_history *h, unsigned int seconds)
{
	const struct sample *newest = sample_at(h, 0);

	return newest && newest->valid ? base_of(h, 0, seconds) : NULL;
}

json_t *pep_history_segments_json(const struct pep_history *h, const struct pep_history_tick *tick,
				  unsigned int seconds)
{
	struct sample now = {.real_ns = tick->real_ns};
	struct span span = {&now, &now, &now};

	if (tick->totals) {
		fill(&now, tick);
		if (ago(h, 0)) {
			span.before = ago(h, seconds);
			span.tcp_before = ago(h, seconds > TCP_SECONDS ? seconds : TCP_SECONDS);
		}
	}
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:{s:I, s:I}, s:{s:I, s:I}, s:{s:o, s:o}, s:I}",
			 "up", (int)span.now->valid, "time",
			 json_real((double)span.now->real_ns / 1e9), "interval_seconds",
			 json_real((double)(span.now->mono_ns - span.before->mono_ns) / 1e9),
			 "wireless", segment_now(&span, PEP_SEGMENT_WIRELESS), "wired",
			 segment_now(&span, PEP_SEGMENT_WIRED), "held_bytes", "downlink",
			 (json_int_t)span.now->held[PEP_DIRECTION_DOWNLINK], "uplink",
			 (json_int_t)span.now->held[PEP_DIRECTION_UPLINK], "queued_bytes",
			 "downlink", (json_int_t)span.now->queued[PEP_DIRECTION_DOWNLINK], "uplink",
			 (json_int_t)span.now->queued[PEP_DIRECTION_UPLINK], "limited_flows",
			 "downlink", limits_now(&span, PEP_DIRECTION_DOWNLINK), "uplink",
			 limits_now(&span, PEP_DIRECTION_UPLINK), "flows",
			 (json_int_t)span.now->flows);
}
