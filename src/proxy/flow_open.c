/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From an admitted SYN to a flow with both legs. */
#include "proxy/flow_internal.h"

#include "base/log.h"
#include "proxy/clients.h"
#include "proxy/probation.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void bypass_flow(struct flow *flow, const struct pep_gate_ticket *ticket,
			enum pep_bypass reason)
{
	flow_bypass(flow->set, ticket, &flow->node.tuple, flow->syn_sequence, reason);
}

static const struct pep_policy_class *class_of(const struct flow *flow)
{
	return &flow->policy->classes[flow->class_index];
}

static void fill_record(struct flow *flow)
{
	struct pep_stats_flow *record = flow->record;

	if (!record)
		return;
	pep_stats_flow_begin(record);
	record->client = flow->node.tuple.client;
	record->server = flow->node.tuple.server;
	record->client_port = flow->node.tuple.client_port;
	record->server_port = flow->node.tuple.server_port;
	record->class_slot = flow->class_slot;
	record->dscp = flow->dscp;
	record->state = PEP_STATS_FLOW_CONNECTING;
	pep_stats_flow_end(record);
}

/* The wired leg has a name of its own where the client's port could not be kept. */
static void note_wired_tuple(struct flow *flow, bool fallback)
{
	struct sockaddr_storage sa;
	socklen_t size = sizeof(sa);
	struct pep_tuple *t = &flow->wired_node.tuple;

	if (!fallback && flow->policy->conf.source == PEP_SOURCE_CLIENT)
		return;
	*t = flow->node.tuple;
	if (getsockname(flow->leg[PEP_SEGMENT_WIRED].fd, (struct sockaddr *)&sa, &size) < 0 ||
	    pep_endpoint_from_sockaddr(&sa, &t->client, &t->client_port) < 0)
		return;
	pep_tuple_table_add(flow->set->by_wired_tuple, &flow->wired_node);
	flow->in_wired_table = true;
	if (flow->record) {
		pep_stats_flow_begin(flow->record);
		flow->record->leg[PEP_SEGMENT_WIRED].local_port = t->client_port;
		pep_stats_flow_end(flow->record);
	}
}

static int connect_wired(struct flow *flow)
{
	struct pep_flows *set = flow->set;
	const struct pep_policy_class *class = class_of(flow);
	struct pep_leg_connect request = {
		.tuple = &flow->node.tuple,
		.setup = &class->leg[PEP_SEGMENT_WIRED],
		.source = flow->policy->conf.source,
		.mark = pep_mark_make(flow->policy->conf.steering.mark_mask, PEP_MARK_KIND_WIRED,
				      set->params.worker),
		.dscp = flow->dscp,
	};
	struct pep_leg_connected leg;
	int err;

	pep_stats_add(set->stats, PEP_COUNTER_CONNECT_ATTEMPTS, 1);
	err = pep_leg_connect(&request, &leg);
	if (err)
		return err;
	flow->leg[PEP_SEGMENT_WIRED].fd = leg.fd;
	flow_count_option(set, leg.option_error);
	if (leg.port_fallback)
		pep_stats_add(set->stats, PEP_COUNTER_SOURCE_PORT_FALLBACKS, 1);
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		flow->cca_fallback[s] = class->leg[s].cca_fallback;
		if (flow->cca_fallback[s])
			pep_stats_cca_fallback(set->stats, (enum pep_segment)s,
					       class->asked_cca_slot[s]);
	}
	note_wired_tuple(flow, leg.port_fallback);
	return flow_watch_leg(flow, PEP_SEGMENT_WIRED);
}

/* Keeps the books of server prefixes that do not answer us. */
static void note_answer(struct flow *flow, bool answered)
{
	struct pep_flows *set = flow->set;
	const struct in6_addr *server = &flow->node.tuple.server;
	char text[PEP_ENDPOINT_TEXT];
	uint32_t seconds;

	if (answered) {
		pep_probation_answered(set->probation, server);
		return;
	}
	seconds = pep_probation_failed(set->probation, server, flow_now_ns());
	if (seconds)
		pep_notice("connects to the prefix of a server keep timing out, its flows are "
			   "bypassed, server=%s seconds=%u",
			   pep_endpoint_text(server, flow->node.tuple.server_port, text), seconds);
}

/* What failed before there was a socket to ask the server with is ours, whatever its errno; but for
 * a routing table that knows no way. */
static enum pep_connect_failure failure_of(const struct flow *flow, int error)
{
	enum pep_connect_failure failure = pep_connect_failure_from_errno(error);

	if (flow->leg[PEP_SEGMENT_WIRED].fd < 0 && error != ENETUNREACH && error != EHOSTUNREACH)
		return PEP_CONNECT_FAILURE_LOCAL;
	return failure;
}

void flow_connect_failed(struct flow *flow, int error)
{
	struct pep_flows *set = flow->set;
	struct pep_gate_ticket ticket = flow->ticket;
	bool owed = flow->ticket_held;
	enum pep_connect_failure failure = failure_of(flow, error);
	enum pep_close reason = PEP_CLOSE_CONNECT_FAILED;

	pep_stats_connect_failed(set->stats, failure);
	flow->ticket_held = false;
	switch (failure) {
	case PEP_CONNECT_FAILURE_REFUSED:
		note_answer(flow, true);
		reason = PEP_CLOSE_REFUSED;
		if (owed)
			pep_gate_mark(set->gate, &ticket, PEP_MARK_KIND_REFUSE);
		break;
	case PEP_CONNECT_FAILURE_UNREACHABLE:
		reason = PEP_CLOSE_UNREACHABLE;
		if (owed)
			pep_gate_mark(set->gate, &ticket, PEP_MARK_KIND_UNREACHABLE);
		break;
	case PEP_CONNECT_FAILURE_TIMEOUT:
		note_answer(flow, false);
		reason = PEP_CLOSE_CONNECT_TIMEOUT;
		if (owed)
			pep_gate_drop(set->gate, &ticket);
		break;
	case PEP_CONNECT_FAILURE_LOCAL:
		flow_log_trouble(set, "a wired leg cannot be opened, its flow is not split", error);
		if (owed)
			bypass_flow(flow, &ticket, PEP_BYPASS_RESOURCE);
		break;
	case PEP_CONNECT_FAILURE_OTHER:
	case PEP_CONNECT_FAILURE_COUNT_:
		if (owed)
			pep_gate_mark(set->gate, &ticket, PEP_MARK_KIND_REFUSE);
		break;
	}
	flow_abort(flow, reason);
}

void flow_split(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		const struct pep_syn *syn, const struct pep_tuple *tuple, unsigned int class)
{
	struct flow *flow = flow_alloc(set);
	int err;

	if (!flow) {
		flow_bypass(set, ticket, tuple, syn->sequence, PEP_BYPASS_FLOW_LIMIT);
		return;
	}
	flow->state = FLOW_CONNECTING;
	flow->node.tuple = *tuple;
	flow->policy = pep_policy_ref(set->policy);
	flow->class_index = class;
	flow->class_slot = (uint8_t)class_of(flow)->stats_slot;
	flow->early = class_of(flow)->accept == PEP_ACCEPT_EARLY;
	flow->dscp = syn->dscp;
	flow->syn_sequence = syn->sequence;
	flow->syn_ns = flow->since_ns = flow->active_ns = flow_now_ns();
	flow->record = pep_stats_flow_acquire(set->stats);
	fill_record(flow);
	pep_tuple_table_add(set->by_tuple, &flow->node);
	pep_clients_add(set->params.clients, &tuple->client);
	flow_move_to_list(flow, FLOW_LIST_CONNECTING);

	flow->ticket = *ticket;
	flow->ticket_held = true;
	err = connect_wired(flow);
	if (err) {
		flow_connect_failed(flow, -err);
		return;
	}
	if (flow->early) {
		flow->ticket_held = false;
		pep_gate_mark(set->gate, ticket, PEP_MARK_KIND_SPLIT);
	}
}

void pep_flows_let_go(struct pep_flows *set)
{
	struct flow *flow;

	while ((flow = TAILQ_FIRST(&set->lists[FLOW_LIST_CONNECTING]))) {
		if (flow->ticket_held) {
			flow->ticket_held = false;
			bypass_flow(flow, &flow->ticket, PEP_BYPASS_DRAIN);
		}
		flow_abort(flow, PEP_CLOSE_SHUTDOWN);
	}
}

/* Both legs are up. */
static void join(struct flow *flow)
{
	pep_policy_unref(flow->policy);
	flow->policy = NULL;
	flow->state = FLOW_OPEN;
	flow_move_to_list(flow, FLOW_LIST_OPEN);
	pep_stats_add(flow->set->stats, PEP_COUNTER_FLOWS_SPLIT, 1);
	flow_start(flow);
}

/* An event of a leg while the wired one connects, or while the client is awaited. */
void flow_on_connect_event(struct flow *flow)
{
	struct pep_flows *set = flow->set;
	int wireless = flow->leg[PEP_SEGMENT_WIRELESS].fd;
	int error = pep_leg_take_error(flow->leg[PEP_SEGMENT_WIRED].fd);

	if (flow->state == FLOW_AWAITING) {
		if (error)
			flow_abort(flow, PEP_CLOSE_SERVER_RESET);
		return;
	}
	if (error) {
		flow_connect_failed(flow, error);
		return;
	}
	note_answer(flow, true);
	pep_stats_observe(set->stats, PEP_HISTOGRAM_CONNECT, flow_now_ns() - flow->since_ns);
	if (wireless >= 0) {
		join(flow);
		return;
	}
	flow->state = FLOW_AWAITING;
	flow->since_ns = flow_now_ns();
	flow_move_to_list(flow, FLOW_LIST_AWAITING);
	flow_publish_state(flow);
	if (flow->ticket_held) {
		flow->ticket_held = false;
		pep_gate_mark(set->gate, &flow->ticket, PEP_MARK_KIND_SPLIT);
	}
}

/* The flow that waits for this client, or NULL. */
static struct flow *find_waiting(struct pep_flows *set, int fd, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage local;
	socklen_t size = sizeof(local);
	struct pep_tuple_node *node;
	struct pep_tuple tuple;
	struct flow *flow;

	if (getsockname(fd, (struct sockaddr *)&local, &size) < 0 ||
	    pep_endpoint_from_sockaddr(peer, &tuple.client, &tuple.client_port) < 0 ||
	    pep_endpoint_from_sockaddr(&local, &tuple.server, &tuple.server_port) < 0)
		return NULL;
	node = pep_tuple_table_find(set->by_tuple, &tuple);
	flow = (struct flow *)node;
	if (!flow || flow->leg[PEP_SEGMENT_WIRELESS].fd >= 0 ||
	    (flow->state != FLOW_AWAITING && flow->state != FLOW_CONNECTING))
		return NULL;
	return flow;
}

void pep_flows_on_accept(struct pep_flows *set, int fd, const struct sockaddr_storage *peer)
{
	struct flow *flow = find_waiting(set, fd, peer);
	const struct pep_policy_class *general;

	if (!flow) {
		/* Its server refused or is gone by now: the client must see a reset. */
		pep_stats_add(set->stats, PEP_COUNTER_ACCEPT_ORPHANS, 1);
		pep_leg_close_abort(fd);
		return;
	}
	flow->leg[PEP_SEGMENT_WIRELESS].fd = fd;
	general = pep_policy_default(flow->policy);
	if (class_of(flow) != general)
		flow_count_option(set,
				  pep_leg_reconfigure(fd, &general->leg[PEP_SEGMENT_WIRELESS],
						      &class_of(flow)->leg[PEP_SEGMENT_WIRELESS]));
	if (flow->server_dscp)
		flow_count_option(set, pep_leg_set_dscp(fd, pep_tuple_is_v4(&flow->node.tuple),
							flow->server_dscp));
	if (flow_watch_leg(flow, PEP_SEGMENT_WIRELESS) < 0) {
		flow_abort(flow, PEP_CLOSE_ERROR);
		return;
	}
	if (flow->state == FLOW_AWAITING)
		join(flow);
}

void pep_flows_on_turned_away(struct pep_flows *set, int fd, const struct sockaddr_storage *peer)
{
	struct flow *flow = find_waiting(set, fd, peer);

	pep_leg_close_abort(fd);
	if (flow)
		flow_abort(flow, PEP_CLOSE_ERROR);
}
