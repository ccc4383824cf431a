/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How flows end. A leg that broke (RST, time-out) breaks the other one too, but only behind the
 * bytes it had sent before: those are delivered and acknowledged first, as they would have been
 * without us in the path.
 */
#include "proxy/flow_internal.h"

#include "proxy/clients.h"

#include <errno.h>
#include <string.h>

static void start_flush_timer(struct pep_flows *set)
{
	struct timeval tv = {.tv_usec = FLOW_FLUSH_TICK_MS * 1000};

	if (!event_pending(&set->flush_event, EV_TIMEOUT, NULL))
		event_add(&set->flush_event, &tv);
}

static void drop_path(struct flow *flow, enum pep_direction direction)
{
	struct pep_flows *set = flow->set;
	struct pep_path *path = &flow->path[direction];

	pep_stats_gauge_add(set->stats,
			    direction == PEP_DIRECTION_DOWNLINK ? PEP_GAUGE_HELD_DOWNLINK_BYTES
								: PEP_GAUGE_HELD_UPLINK_BYTES,
			    -(int64_t)path->held_bytes);
	pep_path_fini(path, set->params.pool);
	flow_buffer_fini(flow, direction);
}

/* Takes the flow out of everything and frees it; its descriptors are closed by then. */
static void flow_free(struct flow *flow, enum pep_close reason)
{
	struct pep_flows *set = flow->set;

	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++)
		drop_path(flow, (enum pep_direction)d);
	if (flow->ticket_held && set->gate)
		pep_gate_drop(set->gate, &flow->ticket);
	flow_enqueue(flow, FLOW_QUEUE_NONE);
	flow_move_to_list(flow, FLOW_LIST_NONE);
	pep_tuple_table_remove(set->by_tuple, &flow->node);
	if (flow->in_wired_table)
		pep_tuple_table_remove(set->by_wired_tuple, &flow->wired_node);
	pep_clients_remove(set->params.clients, &flow->node.tuple.client);
	pep_policy_unref(flow->policy);
	pep_stats_flow_release(set->stats, flow->record, reason);
	flow->state = FLOW_FREE;
	set->n_used--;
	LIST_INSERT_HEAD(&set->free, flow, free_link);
}

void flow_count_option(struct pep_flows *set, int err)
{
	if (err)
		pep_stats_add(set->stats, PEP_COUNTER_OPTION_FAILURES, 1);
}

void flow_log_trouble(struct pep_flows *set, const char *what, int error)
{
	uint32_t suppressed;

	if (pep_log_limit_ok(&set->trouble_limit, flow_now_ns() / 1000000u, 10000, &suppressed))
		pep_warning("%s (%s), worker=%u suppressed=%u", what, strerror(error),
			    set->params.worker, suppressed);
}

static void close_leg(struct flow_leg *leg, bool orderly)
{
	if (leg->fd < 0)
		return;
	if (leg->event_added)
		event_del(&leg->event);
	if (orderly)
		flow_count_option(leg->flow->set, pep_leg_close_orderly(leg->fd));
	else
		pep_leg_close_abort(leg->fd);
	leg->fd = -1;
}

static void end(struct flow *flow, bool orderly, enum pep_close reason)
{
	bool flushed = flow->state == FLOW_FLUSHING;

	if (flow->state == FLOW_OPEN || flushed)
		flow_sample(flow, flow_now_ns());
	/* What was under way into a leg that broke is lost: a FIN must not make it look whole. */
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++)
		close_leg(&flow->leg[s], orderly && !(flushed && (int)flow->broken_leg == s));
	flow_free(flow, reason);
}

void flow_abort(struct flow *flow, enum pep_close reason)
{
	end(flow, false, reason);
}

void flow_finish(struct flow *flow)
{
	end(flow, true, PEP_CLOSE_FINISHED);
}

static enum pep_close reason_of(enum pep_segment segment, int error)
{
	switch (error) {
	case ECONNRESET:
	case EPIPE:
	case ENOTCONN: /* the kernel has closed the socket, whose error is still to be read */
		return segment == PEP_SEGMENT_WIRELESS ? PEP_CLOSE_CLIENT_RESET
						       : PEP_CLOSE_SERVER_RESET;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
		return segment == PEP_SEGMENT_WIRELESS ? PEP_CLOSE_CLIENT_GONE
						       : PEP_CLOSE_SERVER_GONE;
	default:
		return PEP_CLOSE_ERROR;
	}
}

void flow_leg_broke(struct flow *flow, enum pep_segment segment, int error)
{
	enum pep_direction from =
		segment == PEP_SEGMENT_WIRED ? PEP_DIRECTION_DOWNLINK : PEP_DIRECTION_UPLINK;
	enum pep_direction into =
		segment == PEP_SEGMENT_WIRED ? PEP_DIRECTION_UPLINK : PEP_DIRECTION_DOWNLINK;

	if (flow->state == FLOW_FLUSHING) {
		/* The leg that was to get the rest is broken too. */
		flow_abort(flow, flow->close_reason);
		return;
	}
	flow->close_reason = reason_of(segment, error);
	if (flow->close_reason == PEP_CLOSE_ERROR)
		flow_log_trouble(flow->set, "a leg failed, its flow is reset", error);
	if (!pep_leg_is_dead(flow->leg[segment].fd)) {
		/* The failure is this host's: nobody says how much is still to come. */
		flow_abort(flow, flow->close_reason);
		return;
	}
	flow->state = FLOW_FLUSHING;
	flow->broken_leg = segment;
	flow->clean_end = flow->path[from].eof;
	flow->path[from].no_fin = !flow->clean_end;
	flow->path[from].peer_closed = true;
	flow->flush_unacked = UINT32_MAX;
	flow->since_ns = flow_now_ns();
	drop_path(flow, into);
	flow_move_to_list(flow, FLOW_LIST_FLUSHING);
	flow_publish_state(flow);
	start_flush_timer(flow->set);
	flow_pump(flow);
}

void flow_flush_check(struct flow *flow)
{
	enum pep_segment other =
		flow->broken_leg == PEP_SEGMENT_WIRED ? PEP_SEGMENT_WIRELESS : PEP_SEGMENT_WIRED;
	uint32_t unacked = pep_leg_unacked_bytes(flow->leg[other].fd);
	uint64_t now = flow_now_ns();

	if (unacked < flow->flush_unacked) {
		flow->flush_unacked = unacked;
		flow->since_ns = now;
	}
	/* SIOCOUTQ counts our own FIN as one byte. */
	if (unacked <= (flow->clean_end ? 1u : 0u))
		end(flow, flow->clean_end, flow->close_reason);
	else if (now - flow->since_ns > flow_ms(FLOW_FLUSH_STALL_MS))
		flow_abort(flow, flow->close_reason);
}

void flow_on_flush_tick(evutil_socket_t fd, short what, void *data)
{
	struct pep_flows *set = data;
	struct flow *flow, *next;

	(void)fd;
	(void)what;
	for (flow = TAILQ_FIRST(&set->lists[FLOW_LIST_FLUSHING]); flow; flow = next) {
		enum pep_direction from = flow->broken_leg == PEP_SEGMENT_WIRED
						  ? PEP_DIRECTION_DOWNLINK
						  : PEP_DIRECTION_UPLINK;

		next = TAILQ_NEXT(flow, list_link);
		if (flow->path[from].fin_sent)
			flow_flush_check(flow);
		else if (flow_now_ns() - flow->active_ns > flow_ms(FLOW_FLUSH_STALL_MS) &&
			 flow_now_ns() - flow->since_ns > flow_ms(FLOW_FLUSH_STALL_MS))
			flow_abort(flow, flow->close_reason);
	}
	if (!TAILQ_EMPTY(&set->lists[FLOW_LIST_FLUSHING]))
		start_flush_timer(set);
}
