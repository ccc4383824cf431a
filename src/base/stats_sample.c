/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All arithmetic is done on private copies, so that the record is odd for one short copy only. */
#include "base/stats_sample.h"

#include <string.h>

static uint64_t delta(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static void count_leg(struct pep_stats_worker *w, enum pep_segment segment, unsigned int cca_slot,
		      const struct pep_stats_tcp *before, const struct pep_stats_tcp *after)
{
	static const enum pep_histogram rtt[PEP_SEGMENT_COUNT_] = {
		[PEP_SEGMENT_WIRELESS] = PEP_HISTOGRAM_WIRELESS_RTT,
		[PEP_SEGMENT_WIRED] = PEP_HISTOGRAM_WIRED_RTT,
	};
	struct pep_stats_block *b = w->block;

	if (!after->valid)
		return;
	pep_stats_word_add(&b->sent_bytes[segment][cca_slot],
			   delta(before->bytes_sent, after->bytes_sent));
	pep_stats_word_add(&b->retransmitted_bytes[segment][cca_slot],
			   delta(before->bytes_retrans, after->bytes_retrans));
	pep_stats_word_add(&b->busy_ns[segment], delta(before->busy_us, after->busy_us) * 1000);
	pep_stats_word_add(&b->rwnd_limited_ns[segment],
			   delta(before->rwnd_limited_us, after->rwnd_limited_us) * 1000);
	pep_stats_word_add(&b->sndbuf_limited_ns[segment],
			   delta(before->sndbuf_limited_us, after->sndbuf_limited_us) * 1000);

	/* An idle leg's srtt is old news; and a leg of an idle flow must not outweigh a busy one.
	 */
	if (after->srtt_us && after->delivered != before->delivered)
		pep_stats_observe(w, rtt[segment], (uint64_t)after->srtt_us * 1000);
}

static void judge_path(struct pep_stats_worker *w, enum pep_direction d,
		       const struct pep_stats_sample *sample, const struct pep_stats_tcp *before,
		       const struct pep_stats_tcp *after, struct pep_stats_path *path)
{
	struct pep_attribution_relay *relay = sample->path[d].relay;
	enum pep_segment reading = pep_direction_reading(d), sending = pep_direction_sending(d);
	struct pep_attribution_input in = {
		.direction = d,
		.unread_bytes = delta(relay->total_in, after[reading].bytes_received),
		.window_bytes = sample->path[d].window_bytes,
		.reading_before = &before[reading],
		.reading_after = &after[reading],
		.sending_before = &before[sending],
		.sending_after = &after[sending],
	};
	uint64_t bytes = sample->path[d].bytes;
	enum pep_limit limit;

	pep_attribution_take(relay, sample->now_ns, &after[reading], &in);
	if (in.interval_ns == 0)
		return;
	limit = pep_attribution_judge(&in);
	pep_stats_word_add(&w->block->limited_ns[pep_attribution_segment(limit, d)][d][limit],
			   in.interval_ns);

	path->limit = (uint8_t)limit;
	path->rate = (uint64_t)((double)delta(path->bytes, bytes) * 1e9 / (double)in.interval_ns);
	path->bytes = bytes;
	path->held_bytes = sample->path[d].held_bytes;
	path->target_bytes = sample->path[d].target_bytes;
}

void pep_stats_flow_sample(struct pep_stats_worker *w, struct pep_stats_flow *flow,
			   const struct pep_stats_sample *sample)
{
	struct pep_stats_tcp before[PEP_SEGMENT_COUNT_], after[PEP_SEGMENT_COUNT_];
	struct pep_stats_path path[PEP_DIRECTION_COUNT_];
	uint64_t unread[PEP_SEGMENT_COUNT_];

	if (!flow) {
		struct pep_attribution_input unused;

		for (int d = 0; d < PEP_DIRECTION_COUNT_; d++)
			pep_attribution_take(sample->path[d].relay, sample->now_ns, NULL, &unused);
		return;
	}

	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		before[s] = after[s] = flow->leg[s].tcp;
		/* A leg that is gone keeps what it said last. */
		if (sample->fd[s] >= 0)
			(void)pep_stats_tcp_read(sample->fd[s], &after[s]);
		count_leg(w, (enum pep_segment)s, flow->leg[s].cca_slot, &before[s], &after[s]);
	}
	memcpy(path, flow->path, sizeof(path));
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		enum pep_segment reading = pep_direction_reading((enum pep_direction)d);

		unread[reading] =
			delta(sample->path[d].relay->total_in, after[reading].bytes_received);
		judge_path(w, (enum pep_direction)d, sample, before, after, &path[d]);
	}
	pep_stats_count_queues(w, flow, -1);

	pep_stats_flow_begin(flow);
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		flow->leg[s].tcp = after[s];
		flow->leg[s].unread_bytes = unread[s];
	}
	memcpy(flow->path, path, sizeof(path));
	flow->sample_ns = sample->now_ns;
	pep_stats_flow_end(flow);
	pep_stats_count_queues(w, flow, 1);
	pep_stats_add(w, PEP_COUNTER_SAMPLES, 1);
}
