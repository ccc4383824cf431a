/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All flows come from one array made at start; a flow is in exactly one list or in the free list.
 */
#include "proxy/flow_internal.h"

#include "base/clock.h"
#include "proxy/probation.h"
#include "proxy/recent.h"

#include <errno.h>
#include <stdlib.h>

#define SAMPLE_LEAST_NS 500000000u /* a flow that has just begun waits for its next turn */

uint64_t flow_now_ns(void)
{
	return pep_clock_mono_ns();
}

int pep_flows_new(const struct pep_flows_params *params, struct pep_flows **ret)
{
	struct pep_flows *set = calloc(1, sizeof(*set));
	struct pep_pool_usage usage;
	int err = -ENOMEM;

	if (!set)
		return err;
	set->params = *params;
	set->stats = pep_stats_worker(params->stats, params->worker);
	set->policy = pep_policy_ref(params->policy);
	pep_pool_get_usage(params->pool, &usage);
	pep_budget_init(&set->budget, usage.memory_bytes);
	set->buffer_limit = pep_leg_buffer_limit();
	for (int i = 0; i < FLOW_LIST_COUNT_; i++)
		TAILQ_INIT(&set->lists[i]);
	for (int i = 0; i < FLOW_QUEUE_COUNT_; i++)
		TAILQ_INIT(&set->queues[i]);
	LIST_INIT(&set->free);

	/* Pages of flows that were never used cost nothing. */
	set->all = calloc(params->max_flows, sizeof(*set->all));
	if (!set->all)
		goto fail;
	err = pep_tuple_table_new(params->max_flows, &set->by_tuple);
	if (!err)
		err = pep_tuple_table_new(params->max_flows / 4, &set->by_wired_tuple);
	if (!err)
		err = pep_probation_new(&set->probation);
	if (!err)
		err = pep_recent_new(&set->recent);
	if (err)
		goto fail;
	event_assign(&set->ready_event, params->base, -1, 0, flow_on_ready, set);
	event_assign(&set->flush_event, params->base, -1, 0, flow_on_flush_tick, set);
	*ret = set;
	return 0;

fail:
	pep_flows_free(set);
	return err;
}

void pep_flows_free(struct pep_flows *set)
{
	if (!set)
		return;
	for (int i = FLOW_LIST_CONNECTING; i < FLOW_LIST_COUNT_; i++) {
		struct flow *flow;

		while (set->by_wired_tuple && (flow = TAILQ_FIRST(&set->lists[i])))
			flow_abort(flow, PEP_CLOSE_SHUTDOWN);
	}
	if (set->by_wired_tuple) {
		event_del(&set->ready_event);
		event_del(&set->flush_event);
	}
	pep_tuple_table_free(set->by_tuple);
	pep_tuple_table_free(set->by_wired_tuple);
	pep_probation_free(set->probation);
	pep_recent_free(set->recent);
	pep_policy_unref(set->policy);
	free(set->all);
	free(set);
}

/* A flow in no list, its descriptors -1; NULL at the limit. */
struct flow *flow_alloc(struct pep_flows *set)
{
	struct flow *flow = LIST_FIRST(&set->free);

	if (flow)
		LIST_REMOVE(flow, free_link);
	else if (set->high < set->params.max_flows)
		flow = &set->all[set->high++];
	else
		return NULL;
	*flow = (struct flow){
		.set = set,
		.leg = {{.fd = -1, .flow = flow}, {.fd = -1, .flow = flow}},
	};
	set->n_used++;
	return flow;
}

static bool is_pending(enum flow_list list)
{
	return list == FLOW_LIST_CONNECTING || list == FLOW_LIST_AWAITING;
}

void flow_move_to_list(struct flow *flow, enum flow_list list)
{
	struct pep_flows *set = flow->set;

	if (flow->list != FLOW_LIST_NONE)
		TAILQ_REMOVE(&set->lists[flow->list], flow, list_link);
	set->n_pending += (uint32_t)is_pending(list);
	set->n_pending -= (uint32_t)is_pending(flow->list);
	pep_stats_gauge_add(set->stats, PEP_GAUGE_FLOWS,
			    (list == FLOW_LIST_OPEN) - (flow->list == FLOW_LIST_OPEN));
	pep_stats_gauge_set(set->stats, PEP_GAUGE_PENDING, set->n_pending);
	flow->list = list;
	if (list != FLOW_LIST_NONE)
		TAILQ_INSERT_TAIL(&set->lists[list], flow, list_link);
}

void flow_enqueue(struct flow *flow, enum flow_queue queue)
{
	struct pep_flows *set = flow->set;

	if (flow->queue == queue)
		return;
	if (flow->queue != FLOW_QUEUE_NONE)
		TAILQ_REMOVE(&set->queues[flow->queue], flow, queue_link);
	flow->queue = queue;
	if (queue == FLOW_QUEUE_NONE)
		return;
	TAILQ_INSERT_TAIL(&set->queues[queue], flow, queue_link);
	if (queue == FLOW_QUEUE_READY)
		event_active(&set->ready_event, EV_TIMEOUT, 0);
}

/* Edge-triggered, once for the life of the leg: no epoll_ctl on the data path. */
int flow_watch_leg(struct flow *flow, enum pep_segment segment)
{
	struct flow_leg *leg = &flow->leg[segment];

	if (event_assign(&leg->event, flow->set->params.base, leg->fd, EV_LEG, flow_on_event,
			 leg) ||
	    event_add(&leg->event, NULL))
		return -ENOMEM;
	leg->event_added = true;
	return 0;
}

void pep_flows_set_gate(struct pep_flows *set, struct pep_gate *gate)
{
	set->gate = gate;
}

void pep_flows_set_policy(struct pep_flows *set, struct pep_policy *policy)
{
	pep_policy_ref(policy);
	pep_policy_unref(set->policy);
	set->policy = policy;
}

void pep_flows_set_intake(struct pep_flows *set, enum pep_intake intake)
{
	set->intake = intake;
}

void pep_flows_set_local_addrs(struct pep_flows *set, const struct pep_local_addrs *addrs)
{
	set->local_addrs = addrs;
}

uint32_t pep_flows_count(const struct pep_flows *set)
{
	return set->n_used;
}

int pep_flows_kill(struct pep_flows *set, uint64_t id)
{
	for (uint32_t i = 0; i < set->high; i++) {
		struct flow *flow = &set->all[i];

		if (flow->state != FLOW_FREE && flow->record && flow->record->id == id) {
			flow_abort(flow, PEP_CLOSE_KILLED);
			return 0;
		}
	}
	return -ENOENT;
}

static struct flow *first_older(struct pep_flows *set, enum flow_list list, uint64_t than_ns)
{
	struct flow *flow = TAILQ_FIRST(&set->lists[list]);

	return flow && flow->since_ns < than_ns ? flow : NULL;
}

/* Both lists are in the order of time, so the first is the oldest. */
static void expire_pending(struct pep_flows *set, uint64_t now_ns)
{
	uint64_t connect = now_ns - flow_ms(set->policy->conf.connect_timeout_ms);
	uint64_t handshake = now_ns - flow_ms(FLOW_HANDSHAKE_MS);
	struct flow *flow;

	while ((flow = first_older(set, FLOW_LIST_CONNECTING, connect)))
		flow_connect_failed(flow, ETIMEDOUT);
	while ((flow = first_older(set, FLOW_LIST_AWAITING, handshake)))
		flow_abort(flow, PEP_CLOSE_HANDSHAKE);
}

/* Inactivity of flows in the slice of the array that is sampled now. */
static bool is_idle_too_long(const struct flow *flow, uint64_t now_ns, enum pep_close *ret_reason)
{
	const struct pep_conf *conf = &flow->set->policy->conf;
	bool half = flow->path[0].fin_sent || flow->path[1].fin_sent;
	uint64_t limit_ms = half ? conf->half_close_timeout_ms : conf->idle_timeout_ms;

	if (flow->state != FLOW_OPEN || limit_ms == 0 ||
	    now_ns - flow->active_ns < flow_ms(limit_ms))
		return false;
	*ret_reason = half ? PEP_CLOSE_HALF_CLOSE_TIMEOUT : PEP_CLOSE_IDLE_TIMEOUT;
	return true;
}

static void look_at(struct flow *flow, uint64_t now_ns)
{
	enum pep_close reason;

	if (flow->state == FLOW_FREE)
		return;
	if (is_idle_too_long(flow, now_ns, &reason))
		flow_abort(flow, reason);
	else if ((flow->state == FLOW_OPEN || flow->state == FLOW_FLUSHING) &&
		 now_ns - flow->attribution[0].since_ns >= SAMPLE_LEAST_NS)
		flow_sample(flow, now_ns);
}

/*
 * How many flows are due since the last tick, so that all of them are in a second. Ticks come late
 * when the loop is busy: what was missed is caught up, in portions.
 */
static uint32_t slice_due(struct pep_flows *set, uint64_t now_ns)
{
	uint64_t elapsed = now_ns - set->sampled_ns;
	uint64_t due;

	if (elapsed > flow_ms(1000)) { /* the first tick, or the loop stood still */
		set->sampled_ns = now_ns - flow_ms(1000);
		elapsed = flow_ms(1000);
	}
	due = set->high * elapsed / flow_ms(1000);
	if (due > set->high / 4 + 1)
		due = set->high / 4 + 1;
	if (due)
		set->sampled_ns += due * flow_ms(1000) / set->high;
	return (uint32_t)due;
}

/* Each flow is looked at once a second, spread over the ticks. */
static void tick_slice(struct pep_flows *set, uint64_t now_ns)
{
	uint64_t began = flow_now_ns();

	for (uint32_t n = slice_due(set, now_ns); n > 0; n--) {
		if (set->sample_cursor >= set->high)
			set->sample_cursor = 0;
		look_at(&set->all[set->sample_cursor++], now_ns);
	}
	pep_stats_add(set->stats, PEP_COUNTER_SAMPLE_NS, flow_now_ns() - began);
}

static void publish_pool(struct pep_flows *set)
{
	struct pep_pool_usage usage;

	pep_pool_get_usage(set->params.pool, &usage);
	pep_stats_gauge_set(set->stats, PEP_GAUGE_PIPES_USED, usage.pipes_used);
	pep_stats_gauge_set(set->stats, PEP_GAUGE_PIPES_IDLE, usage.pipes_open - usage.pipes_used);
	pep_stats_word_set(&set->stats->block->counters[PEP_COUNTER_PIPE_FAILURES],
			   usage.pipe_failures);
}

static void publish_gate(struct pep_flows *set)
{
	struct pep_gate_counters counters;

	if (!set->gate)
		return;
	pep_gate_get_counters(set->gate, &counters);
	pep_stats_word_set(&set->stats->block->counters[PEP_COUNTER_GATE_ERRORS],
			   counters.verdict_errors);
	pep_stats_word_set(&set->stats->block->counters[PEP_COUNTER_GATE_OVERRUNS],
			   counters.overruns);
}

void pep_flows_tick(struct pep_flows *set)
{
	uint64_t now = flow_now_ns();

	/* The operator may change it while we run. */
	if (set->n_ticks++ % (1000 / PEP_FLOWS_TICK_MS) == 0)
		set->buffer_limit = pep_leg_buffer_limit();
	expire_pending(set, now);
	tick_slice(set, now);
	publish_pool(set);
	publish_gate(set);
}
