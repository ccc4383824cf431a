/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A record's fields change only while its sequence number is odd. */
#include "base/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define NUMBER_MASK ((UINT64_C(1) << 48) - 1)

static void begin(struct pep_stats_flow *flow)
{
	uint32_t sequence = atomic_load_explicit(&flow->sequence, memory_order_relaxed);

	atomic_store_explicit(&flow->sequence, sequence + 1, memory_order_relaxed);
	/* No later store to the record may become visible before the odd number. */
	atomic_thread_fence(memory_order_release);
}

static void end(struct pep_stats_flow *flow)
{
	uint32_t sequence = atomic_load_explicit(&flow->sequence, memory_order_relaxed);

	atomic_store_explicit(&flow->sequence, sequence + 1, memory_order_release);
}

void pep_stats_flow_begin(struct pep_stats_flow *flow)
{
	if (flow)
		begin(flow);
}

void pep_stats_flow_end(struct pep_stats_flow *flow)
{
	if (flow)
		end(flow);
}

/* Everything but the sequence number and the slot. */
static void clear(struct pep_stats_flow *flow)
{
	const size_t head = offsetof(struct pep_stats_flow, id);

	memset((uint8_t *)flow + head, 0, sizeof(*flow) - head);
}

struct pep_stats_flow *pep_stats_flow_acquire(struct pep_stats_worker *w)
{
	struct pep_stats_flow *flow;
	uint32_t slot;

	if (w->n_free == 0) {
		pep_stats_add(w, PEP_COUNTER_RECORDS_FULL, 1);
		return NULL;
	}
	slot = w->free_slots[--w->n_free];
	flow = &w->flows[slot];

	begin(flow);
	clear(flow);
	flow->slot = slot;
	flow->id = (uint64_t)w->index << 48 | w->next_number++;
	flow->worker = (uint8_t)w->index;
	flow->state = PEP_STATS_FLOW_CONNECTING;
	flow->start_ns = pep_clock_ns(CLOCK_REALTIME);
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++)
		flow->path[d].limit = PEP_LIMIT_APPLICATION;
	end(flow);

	if (slot >= pep_stats_word_get(&w->block->flows_high))
		pep_stats_word_set(&w->block->flows_high, slot + 1);
	return flow;
}

void pep_stats_count_queues(struct pep_stats_worker *w, const struct pep_stats_flow *flow, int sign)
{
	static const enum pep_gauge unread[PEP_SEGMENT_COUNT_] = {
		[PEP_SEGMENT_WIRELESS] = PEP_GAUGE_UNREAD_WIRELESS_BYTES,
		[PEP_SEGMENT_WIRED] = PEP_GAUGE_UNREAD_WIRED_BYTES,
	};
	static const enum pep_gauge notsent[PEP_SEGMENT_COUNT_] = {
		[PEP_SEGMENT_WIRELESS] = PEP_GAUGE_NOTSENT_WIRELESS_BYTES,
		[PEP_SEGMENT_WIRED] = PEP_GAUGE_NOTSENT_WIRED_BYTES,
	};

	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		pep_stats_gauge_add(w, unread[s], sign * (int64_t)flow->leg[s].unread_bytes);
		pep_stats_gauge_add(w, notsent[s], sign * (int64_t)flow->leg[s].tcp.notsent_bytes);
	}
}

static void observe_close(struct pep_stats_worker *w, const struct pep_stats_flow *flow)
{
	static const enum pep_histogram min_rtt[PEP_SEGMENT_COUNT_] = {
		[PEP_SEGMENT_WIRELESS] = PEP_HISTOGRAM_WIRELESS_MIN_RTT,
		[PEP_SEGMENT_WIRED] = PEP_HISTOGRAM_WIRED_MIN_RTT,
	};
	static const enum pep_histogram throughput[PEP_DIRECTION_COUNT_] = {
		[PEP_DIRECTION_DOWNLINK] = PEP_HISTOGRAM_WIRELESS_THROUGHPUT,
		[PEP_DIRECTION_UPLINK] = PEP_HISTOGRAM_WIRED_THROUGHPUT,
	};
	double seconds = (double)(flow->end_ns - flow->start_ns) / 1e9;

	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		uint32_t us = flow->leg[s].tcp.min_rtt_us;

		if (flow->leg[s].tcp.valid && us > 0 && us != UINT32_MAX)
			pep_stats_observe(w, min_rtt[s], (uint64_t)us * 1000);
	}
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		if (flow->path[d].bytes > 0 && seconds > 0)
			pep_stats_observe(w, throughput[d],
					  (uint64_t)((double)flow->path[d].bytes / seconds));
	}
}

/* The ring lets a reader that comes each second see flows that ended in between. */
static void keep_closed(struct pep_stats_worker *w, const struct pep_stats_flow *flow)
{
	const size_t head = offsetof(struct pep_stats_flow, id);
	uint64_t count = pep_stats_word_get(&w->block->closed_count);
	struct pep_stats_flow *kept = &w->closed[count % w->n_closed];

	begin(kept);
	memcpy((uint8_t *)kept + head, (const uint8_t *)flow + head, sizeof(*flow) - head);
	end(kept);
	atomic_store_explicit(&w->block->closed_count, count + 1, memory_order_release);
}

void pep_stats_flow_release(struct pep_stats_worker *w, struct pep_stats_flow *flow,
			    enum pep_close reason)
{
	pep_stats_word_add(&w->block->closed[reason], 1);
	if (!flow)
		return;

	begin(flow);
	flow->state = PEP_STATS_FLOW_CLOSED;
	flow->close_reason = (uint8_t)reason;
	flow->end_ns = pep_clock_ns(CLOCK_REALTIME);
	if (flow->end_ns < flow->start_ns) /* the clock was set back */
		flow->end_ns = flow->start_ns;
	end(flow);

	pep_stats_count_queues(w, flow, -1);
	observe_close(w, flow);
	keep_closed(w, flow);

	begin(flow);
	flow->state = PEP_STATS_FLOW_FREE;
	end(flow);
	w->free_slots[w->n_free++] = flow->slot;
}

const char *pep_stats_flow_id(uint64_t id, char text[PEP_STATS_FLOW_ID_SIZE])
{
	snprintf(text, PEP_STATS_FLOW_ID_SIZE, "%u-%" PRIu64, (unsigned int)(id >> 48),
		 id & NUMBER_MASK);
	return text;
}

/* Digits only, so that signs, blanks and the like of strtoull() are refused. */
static const char *parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > max)
			return NULL;
	}
	*ret = value;
	return text;
}

int pep_stats_flow_id_parse(const char *text, uint64_t *ret)
{
	uint64_t worker, number;

	text = parse_number(text, PEP_CONF_MAX_WORKERS - 1, &worker);
	if (!text || *text != '-')
		return -EINVAL;
	text = parse_number(text + 1, NUMBER_MASK, &number);
	if (!text || *text != '\0')
		return -EINVAL;
	*ret = worker << 48 | number;
	return 0;
}
