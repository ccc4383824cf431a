/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the gate tells: SYNs are admitted, bypassed or refused here. Invariant: a SYN that enters
 * pep_flows_on_syn leaves with its verdict given, or as the ticket of a flow, whose end gives it.
 */
#include "proxy/flow_internal.h"

#include "proxy/clients.h"
#include "proxy/local_addrs.h"
#include "proxy/probation.h"
#include "proxy/recent.h"

#include <errno.h>

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

void flow_bypass(struct pep_flows *set, const struct pep_gate_ticket *ticket,
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

static void refuse(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		   enum pep_refuse reason)
{
	pep_stats_refused(set->stats, reason);
	pep_gate_mark(set->gate, ticket, PEP_MARK_KIND_REFUSE);
}

/* Whether the kernel has already ended the client's connection, unseen by us so far. */
static bool wireless_leg_is_dead(const struct flow *flow)
{
	int fd = flow->leg[PEP_SEGMENT_WIRELESS].fd;

	return fd >= 0 && pep_leg_is_dead(fd);
}

/* A SYN whose tuple has a flow. Returns false when that flow was a dead one and is gone now. */
static bool on_known_syn(struct pep_flows *set, struct flow *flow,
			 const struct pep_gate_ticket *ticket, const struct pep_syn *syn)
{
	if (flow->state == FLOW_CONNECTING && syn->sequence != flow->syn_sequence) {
		/* Our own SYN has come round to the radio side, or a client has changed its mind:
		 * the first connection fails, and the second must not be. */
		pep_stats_refused(set->stats, PEP_REFUSE_LOOP);
		pep_gate_drop(set->gate, ticket);
		flow_connect_failed(flow, ECONNREFUSED);
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
		flow_split(set, ticket, syn, &tuple, class);
		break;
	case ADMIT_BYPASS:
		flow_bypass(set, ticket, &tuple, syn->sequence, bypass_reason);
		break;
	case ADMIT_REFUSE:
		refuse(set, ticket, refuse_reason);
		break;
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
