/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a SYN at the gate to a flow with both legs. Invariant: a SYN that enters pep_flows_on_syn
 * leaves with its verdict given, or as the ticket of a flow, whose end gives it.
 */
#include "proxy/flow_internal.h"

#include "base/log.h"
#include "proxy/clients.h"
#include "proxy/local_addrs.h"
#include "proxy/probation.h"
#include "proxy/recent.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

enum admission {
	ADMIT_SPLIT,
	ADMIT_BYPASS, /* *ret_bypass says why */
	ADMIT_REFUSE, /* *ret_refuse says why */
};

static enum admission over_limit(const struct pep_flows *set, enum pep_bypass reason,
				 enum pep_bypass *ret_bypass, enum pep_refuse *ret_refuse)
{
	if (set->policy->conf.overload == PEP_OVERLOAD_REFUSE) {
		*ret_refuse = PEP_REFUSE_LIMIT;
		return ADMIT_REFUSE;
	}
	*ret_bypass = reason;
	return ADMIT_BYPASS;
}

static enum admission admit(const struct pep_flows *set, const struct pep_syn *syn,
			    unsigned int *ret_class, enum pep_bypass *ret_bypass,
			    enum pep_refuse *ret_refuse)
{
	const struct pep_conf *conf = &set->policy->conf;

	*ret_bypass = PEP_BYPASS_COUNT_;
	if (set->local_addrs) {
		if (pep_local_addrs_contains(set->local_addrs, &syn->source)) {
			*ret_refuse = PEP_REFUSE_LOOP;
			return ADMIT_REFUSE;
		}
		if (pep_local_addrs_contains(set->local_addrs, &syn->destination))
			*ret_bypass = PEP_BYPASS_LOCAL;
	}
	if (set->intake == PEP_INTAKE_DRAIN)
		*ret_bypass = PEP_BYPASS_DRAIN;
	else if (set->intake == PEP_INTAKE_BYPASS)
		*ret_bypass = PEP_BYPASS_OPERATOR;
	else if (syn->mptcp)
		*ret_bypass = PEP_BYPASS_MPTCP;
	else if (syn->fast_open)
		*ret_bypass = PEP_BYPASS_FAST_OPEN;
	else if (pep_probation_holds(set->probation, &syn->destination, flow_now_ns()))
		*ret_bypass = PEP_BYPASS_PROBATION;
	(void)pep_conf_classify(conf, &syn->source, &syn->destination, syn->destination_port,
				ret_class);
	if (set->policy->classes[*ret_class].bypass ||
	    pep_match_flow(&conf->bypass, &syn->source, &syn->destination, syn->destination_port))
		*ret_bypass = PEP_BYPASS_POLICY;
	if (*ret_bypass != PEP_BYPASS_COUNT_)
		return ADMIT_BYPASS;

	if (set->n_used >= set->params.max_flows)
		return over_limit(set, PEP_BYPASS_FLOW_LIMIT, ret_bypass, ret_refuse);
	if (set->n_pending >= conf->max_pending)
		return over_limit(set, PEP_BYPASS_PENDING_LIMIT, ret_bypass, ret_refuse);
	if (conf->max_flows_per_client &&
	    pep_clients_count(set->params.clients, &syn->source) >= conf->max_flows_per_client)
		return over_limit(set, PEP_BYPASS_CLIENT_LIMIT, ret_bypass, ret_refuse);
	return ADMIT_SPLIT;
}

static void bypass(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		   const struct pep_tuple *tuple, uint32_t sequence, enum pep_bypass reason)
{
	pep_recent_add(set->recent, tuple, sequence, flow_now_ns());
	pep_stats_bypassed(set->stats, reason);
	pep_gate_mark(set->gate, ticket, PEP_MARK_KIND_BYPASS);
}

/* The SYN of a flow that goes end to end comes again: server and client may have met by now. */
static bool on_bypassed_before(struct pep_flows *set, const struct pep_gate_ticket *ticket,
			       const struct pep_tuple *tuple, uint32_t sequence)
{
	uint64_t now = flow_now_ns();

	if (!pep_recent_holds(set->recent, tuple, sequence, now))
		return false;
	pep_recent_add(set->recent, tuple, sequence, now);
	pep_stats_add(set->stats, PEP_COUNTER_SYN_RETRANSMISSIONS, 1);
	pep_gate_mark(set->gate, ticket, PEP_MARK_KIND_BYPASS);
	return true;
}

static void bypass_flow(struct flow *flow, const struct pep_gate_ticket *ticket,
			enum pep_bypass reason)
{
	bypass(flow->set, ticket, &flow->node.tuple, flow->syn_sequence, reason);
}

static void refuse(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		   enum pep_refuse reason)
{
	pep_stats_refused(set->stats, reason);
	pep_gate_mark(set->gate, ticket, PEP_MARK_KIND_REFUSE);
}

/* Whether the kernel has already ended the client's connection, unseen by us so far. */
static bool wireless_leg_is_dead(const struct flow *flow)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);
	int fd = flow->leg[PEP_SEGMENT_WIRELESS].fd;

	return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
	       info.tcpi_state == TCP_CLOSE;
}

/* A SYN whose tuple has a flow. Returns false when that flow was a dead one and is gone now. */
static bool on_known_syn(struct pep_flows *set, struct flow *flow,
			 const struct pep_gate_ticket *ticket, const struct pep_syn *syn)
{
	if (flow->state == FLOW_CONNECTING && syn->sequence != flow->syn_sequence) {
		/* Our own SYN has come round to the radio side, or a client changed its mind: in
		 * both cases the second connection must not be. */
		refuse(set, ticket, PEP_REFUSE_LOOP);
		return true;
	}
	if (flow->ticket_held) {
		pep_stats_add(set->stats, PEP_COUNTER_SYN_RETRANSMISSIONS, 1);
		pep_gate_drop(set->gate, ticket);
		return true;
	}
	if (wireless_leg_is_dead(flow)) {
		flow_abort(flow, PEP_CLOSE_CLIENT_RESET);
		return false;
	}
	pep_gate_mark(set->gate, ticket, PEP_MARK_KIND_SPLIT);
	return true;
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

	if (flow->leg[PEP_SEGMENT_WIRED].fd < 0 && failure != PEP_CONNECT_FAILURE_UNREACHABLE)
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

static void split(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		  const struct pep_syn *syn, const struct pep_tuple *tuple, unsigned int class)
{
	struct flow *flow = flow_alloc(set);
	int err;

	if (!flow) {
		bypass(set, ticket, tuple, syn->sequence, PEP_BYPASS_FLOW_LIMIT);
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

void pep_flows_on_syn(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		      const struct pep_syn *syn)
{
	enum pep_bypass bypass_reason;
	enum pep_refuse refuse_reason;
	struct pep_tuple_node *node;
	struct pep_tuple tuple;
	unsigned int class;

	pep_stats_add(set->stats, PEP_COUNTER_SYNS, 1);
	pep_syn_tuple(syn, &tuple);
	node = pep_tuple_table_find(set->by_tuple, &tuple);
	if (node && on_known_syn(set, (struct flow *)node, ticket, syn))
		return;
	if (on_bypassed_before(set, ticket, &tuple, syn->sequence))
		return;

	switch (admit(set, syn, &class, &bypass_reason, &refuse_reason)) {
	case ADMIT_SPLIT:
		split(set, ticket, syn, &tuple, class);
		break;
	case ADMIT_BYPASS:
		bypass(set, ticket, &tuple, syn->sequence, bypass_reason);
		break;
	case ADMIT_REFUSE:
		refuse(set, ticket, refuse_reason);
		break;
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

void pep_flows_on_synack(struct pep_flows *set, const struct pep_syn *synack)
{
	struct pep_tuple_node *node;
	struct pep_tuple tuple;
	struct flow *flow;

	pep_synack_tuple(synack, &tuple);
	node = pep_tuple_table_find(set->by_tuple, &tuple);
	if (node) {
		flow = (struct flow *)node;
	} else {
		node = pep_tuple_table_find(set->by_wired_tuple, &tuple);
		if (!node)
			return;
		flow = (struct flow *)((char *)node - offsetof(struct flow, wired_node));
	}
	flow->server_dscp = synack->dscp;
	if (flow->leg[PEP_SEGMENT_WIRELESS].fd >= 0)
		flow_count_option(set, pep_leg_set_dscp(flow->leg[PEP_SEGMENT_WIRELESS].fd,
							pep_tuple_is_v4(&flow->node.tuple),
							synack->dscp));
	if (flow->record) {
		pep_stats_flow_begin(flow->record);
		flow->record->server_dscp = synack->dscp;
		pep_stats_flow_end(flow->record);
	}
}

void pep_flows_on_malformed(struct pep_flows *set)
{
	pep_stats_add(set->stats, PEP_COUNTER_SYNS, 1);
	pep_stats_bypassed(set->stats, PEP_BYPASS_MALFORMED);
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
