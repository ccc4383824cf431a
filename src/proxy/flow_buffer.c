/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much a direction may hold, applied: the reading leg's buffer takes no more than the target,
 * so that the other end can send no more ahead. A direction whose bytes do not wait, or whose
 * buffer is below its target anyway, is left to the kernel.
 */
#include "proxy/flow_internal.h"

/* Shorter transfers are not worth system calls. */
#define BEGINNING_BYTES 65536u

/* Smaller reads cost more than a small buffer that shrinks slowly. */
#define SHRINK_READ_LEAST 32768u

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
	flow->buffer[direction] = (struct flow_buffer){0};
	pep_target_init(&flow->buffer[direction].target, flow->active_ns);
}

void flow_buffer_fini(struct flow *flow, enum pep_direction direction)
{
	pep_target_fini(&flow->buffer[direction].target, &flow->set->budget);
}

static int reading_fd(const struct flow *flow, enum pep_direction direction)
{
	return flow->leg[pep_direction_reading(direction)].fd;
}

/*
 * The reading leg's round trip, and whether a hole held back most of what came since the last look.
 * A few segments in a wrong order are not a hole.
 */
static void look_at_reading(struct flow *flow, enum pep_direction direction,
			    struct pep_target_seen *ret)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	uint32_t came, disordered;
	struct pep_stats_tcp tcp;

	if (pep_stats_tcp_read(reading_fd(flow, direction), &tcp) < 0)
		return;
	came = tcp.data_segs_in - buffer->came;
	disordered = tcp.rcv_ooo - buffer->disordered;
	ret->rtt_us = tcp.min_rtt_us;
	ret->hole = disordered > came / 2;
	buffer->came = tcp.data_segs_in;
	buffer->disordered = tcp.rcv_ooo;
}

/*
 * What the sending leg has delivered and still has. What its socket takes comes in lumps of
 * megabytes after a loss, what arrives does not.
 */
static void look_at_sending(struct flow *flow, enum pep_direction direction,
			    struct pep_target_seen *ret)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	struct pep_stats_tcp tcp;

	*ret = (struct pep_target_seen){.delivered_bytes = buffer->delivered_bytes};
	if (pep_stats_tcp_read(flow->leg[pep_direction_sending(direction)].fd, &tcp) < 0)
		return;
	buffer->delivered_bytes +=
		(uint64_t)(uint32_t)(tcp.delivered - buffer->delivered) * tcp.snd_mss;
	buffer->delivered = tcp.delivered;
	ret->delivered_bytes = buffer->delivered_bytes;
	ret->dry = tcp.notsent_bytes == 0 && flow->path[direction].held_bytes == 0;
}

/* Small changes are not worth a system call. */
static bool differs(uint32_t a, uint32_t b)
{
	return a > b + b / 8 || a < b - b / 8;
}

static void apply(struct flow *flow, enum pep_direction direction, uint64_t read_bytes)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	struct pep_path *path = &flow->path[direction];
	uint32_t target = buffer->target.bytes;
	int err = 0;

	buffer->leg.most = flow->set->buffer_limit;
	if (target == UINT32_MAX)
		err = pep_leg_free_buffer(reading_fd(flow, direction), &buffer->leg);
	else if (!buffer->leg.settled || buffer->leg.hole || differs(target, buffer->leg.bytes))
		err = pep_leg_bound_buffer(reading_fd(flow, direction), target, read_bytes,
					   &buffer->leg);
	flow_count_option(flow->set, err);

	path->target_bytes = target;
	if (buffer->leg.bytes && !buffer->leg.settled)
		path->target_bytes = target / PEP_LEG_SHRINK_SHARE > SHRINK_READ_LEAST
					     ? target / PEP_LEG_SHRINK_SHARE
					     : SHRINK_READ_LEAST;
}

/*
 * Bytes begin to wait: the buffer stays as it is until the target is known. On a short path the
 * kernel would let it grow by megabytes within milliseconds, and the sender's with it.
 */
static void freeze(struct flow *flow, enum pep_direction direction)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	struct pep_target_seen seen;

	flow_count_option(flow->set, pep_leg_freeze_buffer(reading_fd(flow, direction),
							   flow->set->buffer_limit, &buffer->leg));
	look_at_sending(flow, direction, &seen);
	pep_target_start(&buffer->target, buffer->leg.bytes, seen.delivered_bytes, flow->active_ns);
}

static void update(struct flow *flow, enum pep_direction direction, uint64_t now_ns)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	struct pep_target_conf conf = conf_of(flow);
	struct pep_target_seen seen;

	look_at_sending(flow, direction, &seen);
	look_at_reading(flow, direction, &seen);
	pep_target_update(&buffer->target, &flow->set->budget, &conf, &seen, now_ns);
	buffer->leg.hole = seen.hole;
	apply(flow, direction, 0);
}

/* A bulk transfer begins: the buffer is held before it is known whether bytes will wait. */
static bool is_beginning(const struct flow_buffer *buffer, const struct pep_path *path)
{
	return !buffer->target.last_bytes && path->bytes >= BEGINNING_BYTES;
}

void flow_buffer_after(struct flow *flow, enum pep_direction direction, uint64_t read_bytes)
{
	struct flow_buffer *buffer = &flow->buffer[direction];
	const struct pep_path *path = &flow->path[direction];

	if (path->eof)
		return;
	if (buffer->leg.bytes && !buffer->leg.settled && read_bytes)
		apply(flow, direction, read_bytes);
	pep_target_waiting(&buffer->target, path->held_bytes > 0, flow->active_ns);
	if (!buffer->leg.bytes && (path->held_bytes > 0 || is_beginning(buffer, path)))
		freeze(flow, direction);
	else if (buffer->leg.bytes && pep_target_due(&buffer->target, flow->active_ns))
		update(flow, direction, flow->active_ns);
}

/* A flow that rests, or is stuck, has no events. */
void flow_buffer_tick(struct flow *flow, enum pep_direction direction, uint64_t now_ns)
{
	struct flow_buffer *buffer = &flow->buffer[direction];

	if (flow->state == FLOW_OPEN && !flow->path[direction].eof && buffer->leg.bytes &&
	    pep_target_due(&buffer->target, now_ns))
		update(flow, direction, now_ns);
}
