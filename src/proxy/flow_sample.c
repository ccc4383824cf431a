/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a flow tells the stats segment. */
#include "proxy/flow_internal.h"

#include "base/stats_sample.h"
#include "proxy/beliefs.h"

#include <string.h>

void flow_count_moved(struct flow *flow, enum pep_direction direction, uint64_t read_bytes,
		      uint64_t written_bytes)
{
	struct pep_attribution_relay *relay = &flow->attribution[direction];
	struct pep_path *path = &flow->path[direction];
	struct pep_stats_worker *w = flow->set->stats;
	uint64_t now = flow->active_ns;

	if (read_bytes || written_bytes) {
		now = flow->active_ns = flow_now_ns();
		pep_stats_gauge_add(w,
				    direction == PEP_DIRECTION_DOWNLINK
					    ? PEP_GAUGE_HELD_DOWNLINK_BYTES
					    : PEP_GAUGE_HELD_UPLINK_BYTES,
				    (int64_t)read_bytes - (int64_t)written_bytes);
	}
	if (read_bytes) {
		pep_stats_payload(w, pep_direction_reading(direction), direction, flow->class_slot,
				  read_bytes);
		pep_attribution_read(relay, now, read_bytes);
	}
	if (written_bytes) {
		pep_stats_payload(w, pep_direction_sending(direction), direction, flow->class_slot,
				  written_bytes);
		pep_attribution_written(relay, written_bytes);
		if (direction == PEP_DIRECTION_DOWNLINK && !flow->first_byte_seen) {
			flow->first_byte_seen = true;
			pep_stats_observe(w, PEP_HISTOGRAM_FIRST_BYTE, now - flow->syn_ns);
		}
	}
	if (path->held_bytes)
		pep_attribution_blocked(relay, now ? now : flow_now_ns());
	else
		pep_attribution_drained(relay, now);
}

static enum pep_stats_flow_state published_state(const struct flow *flow)
{
	bool uplink = flow->path[PEP_DIRECTION_UPLINK].eof;
	bool downlink = flow->path[PEP_DIRECTION_DOWNLINK].eof;

	switch (flow->state) {
	case FLOW_FREE:
		return PEP_STATS_FLOW_FREE;
	case FLOW_CONNECTING:
		return PEP_STATS_FLOW_CONNECTING;
	case FLOW_AWAITING:
		return PEP_STATS_FLOW_ACCEPTING;
	case FLOW_FLUSHING:
		return PEP_STATS_FLOW_CLOSING;
	case FLOW_OPEN:
		break;
	}
	if (uplink && downlink)
		return PEP_STATS_FLOW_CLOSING;
	if (uplink)
		return PEP_STATS_FLOW_UPLINK_CLOSED;
	return downlink ? PEP_STATS_FLOW_DOWNLINK_CLOSED : PEP_STATS_FLOW_OPEN;
}

void flow_publish_state(struct flow *flow)
{
	if (!flow->record)
		return;
	pep_stats_flow_begin(flow->record);
	flow->record->state = (uint8_t)published_state(flow);
	pep_stats_flow_end(flow->record);
}

/* The controls in use, asked once: what was set up is not always what the kernel took. */
static void publish_ccas(struct flow *flow)
{
	struct pep_stats_flow *record = flow->record;
	char name[PEP_SEGMENT_COUNT_][PEP_CONF_NAME_SIZE];
	unsigned int slot[PEP_SEGMENT_COUNT_];

	if (!record || record->leg[PEP_SEGMENT_WIRELESS].cca[0])
		return;
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		pep_leg_cca_name(flow->leg[s].fd, name[s]);
		slot[s] = pep_stats_cca(flow->set->params.stats, name[s]);
	}
	pep_stats_flow_begin(record);
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		memcpy(record->leg[s].cca, name[s], sizeof(name[s]));
		record->leg[s].cca_slot = (uint8_t)slot[s];
		record->leg[s].fallback = flow->cca_fallback[s];
	}
	pep_stats_flow_end(record);
}

static void publish_beliefs(struct flow *flow)
{
	struct pep_stats_flow *record = flow->record;
	struct pep_stats_belief belief;

	for (int s = 0; record && s < PEP_SEGMENT_COUNT_; s++) {
		if (strncmp(record->leg[s].cca, "pep_", 4) != 0 ||
		    pep_beliefs_read(flow->set->params.beliefs, flow->leg[s].fd, &belief) < 0)
			continue;
		pep_stats_flow_begin(record);
		record->leg[s].belief = belief;
		pep_stats_flow_end(record);
	}
}

void flow_sample(struct flow *flow, uint64_t now_ns)
{
	struct pep_stats_sample sample = {.now_ns = now_ns};

	publish_ccas(flow);
	publish_beliefs(flow);
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++)
		sample.fd[s] = flow->leg[s].fd;
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		sample.path[d].relay = &flow->attribution[d];
		sample.path[d].bytes = flow->path[d].bytes - flow->path[d].held_bytes;
		sample.path[d].held_bytes = flow->path[d].held_bytes;
		sample.path[d].target_bytes = flow->path[d].target_bytes;
		sample.path[d].window_bytes = pep_leg_buffer_window(&flow->buffer[d].leg);
		flow_buffer_tick(flow, (enum pep_direction)d, now_ns);
	}
	pep_stats_flow_sample(flow->set->stats, flow->record, &sample);
}
