/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of the legs and the bytes they move. Events are edge-triggered: every event ends in a pump
 * of the directions it speaks of, and a pump that stops early leaves its flow in a queue.
 */
#include "proxy/flow_internal.h"

#include <errno.h>

/* Tells whether the direction moves without memory, slower than it could. */
static void note_cap(struct flow *flow, enum pep_direction direction, bool capped)
{
	struct pep_attribution_relay *relay = &flow->attribution[direction];

	if (capped) {
		pep_stats_add(flow->set->stats, PEP_COUNTER_RELAY_CAP_HITS, 1);
		pep_attribution_capped(relay, flow_now_ns());
	} else if (relay->capped_since_ns) {
		pep_attribution_uncapped(relay, flow_now_ns());
	}
}

/* Returns false when the flow is gone or has changed its state. */
static bool pump_path(struct flow *flow, enum pep_direction direction, enum flow_queue *queue)
{
	struct pep_path *path = &flow->path[direction];
	struct pep_flows *set = flow->set;
	bool splice = set->policy->conf.relay.splice;
	uint64_t read_before = path->bytes;
	uint64_t written_before = path->bytes - path->held_bytes;
	uint32_t starved_before = path->starved;
	bool eof_before = path->eof;
	enum pep_pump result;
	int error = 0;

	/* The end of the other direction was relayed: the end of this one is that of the flow. */
	path->fin_by_close = flow->state == FLOW_OPEN && flow->path[1 - direction].fin_sent;
	result = pep_path_pump(path, set->params.pool, splice, &error);
	note_cap(flow, direction, path->starved != starved_before && !path->blocked);
	flow_count_moved(flow, direction, path->bytes - read_before,
			 path->bytes - path->held_bytes - written_before);
	flow_buffer_after(flow, direction, path->bytes - read_before);
	if (path->eof && !eof_before)
		flow_publish_state(flow);

	switch (result) {
	case PEP_PUMP_DRAINED:
	case PEP_PUMP_BLOCKED:
	case PEP_PUMP_FINISHED:
		return true;
	case PEP_PUMP_BUDGET:
		*queue = FLOW_QUEUE_READY;
		return true;
	case PEP_PUMP_READ_FAILED:
		flow_leg_broke(flow, pep_direction_reading(direction), error);
		return false;
	case PEP_PUMP_WRITE_FAILED:
		flow_leg_broke(flow, pep_direction_sending(direction), error);
		return false;
	}
	return true;
}

/* After a leg broke, only what it had sent moves on. */
static void pump_flushing(struct flow *flow, enum flow_queue *queue)
{
	enum pep_direction direction = flow->broken_leg == PEP_SEGMENT_WIRED
					       ? PEP_DIRECTION_DOWNLINK
					       : PEP_DIRECTION_UPLINK;

	if (pump_path(flow, direction, queue) && flow->path[direction].fin_sent)
		flow_flush_check(flow);
}

/* The queue for a flow whose pump asked for @queue; a direction left alone keeps its place. */
static void requeue(struct flow *flow, enum flow_queue queue, bool both)
{
	if (both || flow->queue == FLOW_QUEUE_NONE || queue == FLOW_QUEUE_READY)
		flow_enqueue(flow, queue);
}

static void pump(struct flow *flow, bool downlink, bool uplink)
{
	enum flow_queue queue = FLOW_QUEUE_NONE;

	if (flow->state == FLOW_OPEN) {
		if ((downlink && !pump_path(flow, PEP_DIRECTION_DOWNLINK, &queue)) ||
		    (uplink && !pump_path(flow, PEP_DIRECTION_UPLINK, &queue)))
			return;
		if (flow->path[PEP_DIRECTION_DOWNLINK].fin_sent &&
		    flow->path[PEP_DIRECTION_UPLINK].fin_sent) {
			flow_finish(flow);
			return;
		}
		requeue(flow, queue, downlink && uplink);
	} else if (flow->state == FLOW_FLUSHING) {
		pump_flushing(flow, &queue);
		if (flow->state == FLOW_FLUSHING)
			flow_enqueue(flow, queue);
	}
}

void flow_pump(struct flow *flow)
{
	pump(flow, true, true);
}

void flow_start(struct flow *flow)
{
	uint32_t target = flow->set->policy->conf.relay.buffer_max_bytes;
	int wireless = flow->leg[PEP_SEGMENT_WIRELESS].fd, wired = flow->leg[PEP_SEGMENT_WIRED].fd;

	pep_path_init(&flow->path[PEP_DIRECTION_DOWNLINK], wired, wireless, target);
	pep_path_init(&flow->path[PEP_DIRECTION_UPLINK], wireless, wired, target);
	/* What one leg had to say while it waited for the other one is not said again. */
	flow->path[PEP_DIRECTION_DOWNLINK].peer_closed =
		flow->leg[PEP_SEGMENT_WIRED].heard & EV_CLOSED;
	flow->path[PEP_DIRECTION_UPLINK].peer_closed =
		flow->leg[PEP_SEGMENT_WIRELESS].heard & EV_CLOSED;
	flow->active_ns = flow_now_ns();
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		flow_buffer_init(flow, (enum pep_direction)d);
		pep_attribution_init(&flow->attribution[d], flow->active_ns);
	}
	flow_publish_state(flow);
	pump(flow, flow->leg[PEP_SEGMENT_WIRED].heard & (EV_READ | EV_CLOSED),
	     flow->leg[PEP_SEGMENT_WIRELESS].heard & (EV_READ | EV_CLOSED));
}

/*
 * A broken socket reports readable and writable at once. Where the pump reads, it finds the error
 * itself; where it does not read (bytes are held, or the FIN was read), nobody would.
 */
static int hidden_error(const struct flow *flow, enum pep_segment segment, short what)
{
	const struct pep_path *from =
		&flow->path[segment == PEP_SEGMENT_WIRED ? PEP_DIRECTION_DOWNLINK
							 : PEP_DIRECTION_UPLINK];

	if ((what & (EV_READ | EV_WRITE)) != (EV_READ | EV_WRITE))
		return 0;
	if (from->held_bytes == 0 && !from->eof)
		return 0;
	return pep_leg_take_error(flow->leg[segment].fd);
}

/*
 * What was read empty goes on when its leg is readable, what is blocked when the other leg takes
 * more; a writable leg for which nothing waits is no news.
 */
static void on_open_event(struct flow *flow, enum pep_segment segment, short what)
{
	bool wired = segment == PEP_SEGMENT_WIRED;
	enum pep_direction from = wired ? PEP_DIRECTION_DOWNLINK : PEP_DIRECTION_UPLINK;
	enum pep_direction into = wired ? PEP_DIRECTION_UPLINK : PEP_DIRECTION_DOWNLINK;
	bool turn[PEP_DIRECTION_COUNT_];
	int error = hidden_error(flow, segment, what);

	if (what & EV_CLOSED)
		flow->path[from].peer_closed = true;
	if (error) {
		flow_leg_broke(flow, segment, error);
		return;
	}
	turn[from] = what & (EV_READ | EV_CLOSED);
	turn[into] = (what & EV_WRITE) && flow->path[into].blocked;
	if (turn[from] || turn[into])
		pump(flow, turn[PEP_DIRECTION_DOWNLINK], turn[PEP_DIRECTION_UPLINK]);
}

void flow_on_event(evutil_socket_t fd, short what, void *data)
{
	struct flow_leg *leg = data;
	struct flow *flow = leg->flow;
	enum pep_segment segment =
		leg == &flow->leg[PEP_SEGMENT_WIRED] ? PEP_SEGMENT_WIRED : PEP_SEGMENT_WIRELESS;
	int error;

	switch (flow->state) {
	case FLOW_CONNECTING:
	case FLOW_AWAITING:
		leg->heard |= what;
		if (segment == PEP_SEGMENT_WIRED) {
			flow_on_connect_event(flow);
			break;
		}
		/* accept early: the client may leave before the server has answered */
		error = pep_leg_take_error(fd);
		if (error)
			flow_abort(flow, PEP_CLOSE_CLIENT_RESET);
		break;
	case FLOW_OPEN:
		on_open_event(flow, segment, what);
		break;
	case FLOW_FLUSHING:
		if (segment == flow->broken_leg)
			break;
		error = (what & (EV_READ | EV_WRITE)) == (EV_READ | EV_WRITE)
				? pep_leg_take_error(fd)
				: 0;
		if (error)
			flow_leg_broke(flow, segment, error);
		else
			flow_pump(flow);
		break;
	case FLOW_FREE:
		break;
	}
}

/* One turn for each flow that waits now; who waits again waits for the next turn. */
void flow_on_ready(evutil_socket_t fd, short what, void *data)
{
	struct pep_flows *set = data;
	struct flow_tailq *waiting = &set->queues[FLOW_QUEUE_READY];
	struct flow *last = TAILQ_LAST(waiting, flow_tailq), *flow;

	(void)fd;
	(void)what;
	while (last && (flow = TAILQ_FIRST(waiting))) {
		bool was_last = flow == last;

		flow_enqueue(flow, FLOW_QUEUE_NONE);
		flow_pump(flow);
		if (was_last)
			return;
	}
}
