/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much a direction may hold, applied: the relay reads no more than the target at a time, and
 * the reading leg's window lets the other end send no more than the target ahead.
 */
#include "proxy/flow_internal.h"

static struct pep_target_conf conf_of(const struct flow *flow)
{
	const struct pep_relay_conf *relay = &flow->set->policy->conf.relay;

	return (struct pep_target_conf){
		.min_bytes = relay->buffer_min_bytes,
		.max_bytes = relay->buffer_max_bytes,
		.gain_percent = relay->buffer_gain_percent,
	};
}

void flow_buffer_init(struct flow *flow, enum pep_direction direction)
{
	struct pep_target_conf conf = conf_of(flow);
	struct flow_buffer *buffer = &flow->buffer[direction];

	*buffer = (struct flow_buffer){0};
	pep_target_init(&buffer->target, &conf, flow->active_ns);
	flow->path[direction].target_bytes = buffer->target.bytes;
}

void flow_buffer_fini(struct flow *flow, enum pep_direction direction)
{
	pep_target_fini(&flow->buffer[direction].target, &flow->set->budget);
}

/* The least round trip of a leg: what was sampled last, or asked now. 0: unknown. */
static uint32_t round_trip_us(const struct flow *flow, enum pep_segment segment)
{
	struct pep_stats_tcp tcp;

	if (flow->record && flow->record->leg[segment].tcp.valid)
		return flow->record->leg[segment].tcp.min_rtt_us;
	if (pep_stats_tcp_read(flow->leg[segment].fd, &tcp) < 0)
		return 0;
	return tcp.min_rtt_us;
}

/*
 * The reading leg's buffer follows the target from the first time that bytes wait until the target
 * has grown to its maximum again.
 */
static void bound_buffer(struct flow *flow, enum pep_direction direction, bool may_free)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	uint32_t target = buffer->target.bytes, bound = buffer->bound_bytes;
	int fd = flow->leg[pep_direction_reading(direction)].fd;
	int err = 0;

	if (!bound)
		return;
	if (may_free && !buffer->target.want_bytes) {
		buffer->bound_bytes = 0;
		err = pep_leg_free_buffer(fd);
	} else if (!buffer->settled || target > bound + bound / 8 || target < bound - bound / 8) {
		buffer->bound_bytes = target;
		err = pep_leg_bound_buffer(fd, target, &buffer->settled);
	}
	flow_count_option(flow->set, err);
}

static void update(struct flow *flow, enum pep_direction direction, uint64_t now_ns)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	const struct pep_path *path = &flow->path[direction];
	struct pep_target_conf conf = conf_of(flow);
	bool waits = buffer->target.waiting_since_ns || buffer->target.waiting_ns;
	uint32_t rtt_us = waits ? round_trip_us(flow, pep_direction_reading(direction)) : 0;

	(void)pep_target_update(&buffer->target, &flow->set->budget, &conf,
				path->bytes - path->held_bytes, rtt_us, now_ns);
	flow->path[direction].target_bytes = buffer->target.bytes;
	bound_buffer(flow, direction, buffer->target.bytes == conf.max_bytes);
}

/* Bytes wait for the first time, or again: the buffer is held at once, on a short path milliseconds
 * are megabytes. */
static void hold_buffer(struct flow *flow, enum pep_direction direction)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	struct pep_path *path = &flow->path[direction];
	struct pep_target_conf conf = conf_of(flow);
	uint32_t bytes = conf.min_bytes;

	flow_count_option(flow->set, pep_leg_freeze_buffer(path->from_fd, &bytes));
	pep_target_start(&buffer->target, &conf, bytes, path->bytes - path->held_bytes,
			 flow->active_ns);
	path->target_bytes = buffer->bound_bytes = buffer->target.bytes;
	buffer->settled = buffer->target.bytes == bytes;
}

void flow_buffer_moved(struct flow *flow, enum pep_direction direction)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	const struct pep_path *path = &flow->path[direction];

	if (path->eof)
		return;
	pep_target_waiting(&buffer->target, path->held_bytes > 0, flow->active_ns);
	if (path->held_bytes > 0 && !buffer->bound_bytes)
		hold_buffer(flow, direction);
	else if (pep_target_due(&buffer->target, flow->active_ns))
		update(flow, direction, flow->active_ns);
}

/* A flow that rests gives its share of the budget back. */
void flow_buffer_tick(struct flow *flow, enum pep_direction direction, uint64_t now_ns)
{
	if (flow->state == FLOW_OPEN && !flow->path[direction].eof &&
	    flow->buffer[direction].target.want_bytes &&
	    pep_target_due(&flow->buffer[direction].target, now_ns))
		update(flow, direction, now_ns);
}
