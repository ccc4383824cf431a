/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory is bounded by the limit, not by the number of flows: the worse half is dropped as it
 * grows. */
#include "config.h"

#include "ctl/flowlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const sort_names[FLOW_SORT_COUNT_] = {"rate", "bytes", "age",
							 "held", "rtt",   "retrans"};

const char *flow_sort_name(enum flow_sort sort)
{
	return sort < FLOW_SORT_COUNT_ ? sort_names[sort] : "?";
}

int flow_sort_parse(const char *name, enum flow_sort *ret)
{
	for (int i = 0; i < FLOW_SORT_COUNT_; i++) {
		if (strcmp(name, sort_names[i]) == 0) {
			*ret = (enum flow_sort)i;
			return 0;
		}
	}
	return -EINVAL;
}

static double sort_key(const struct pep_stats_flow *f, enum flow_sort sort)
{
	const struct pep_stats_path *down = &f->path[PEP_DIRECTION_DOWNLINK];
	const struct pep_stats_path *up = &f->path[PEP_DIRECTION_UPLINK];
	const struct pep_stats_tcp *tcp = &f->leg[PEP_SEGMENT_WIRELESS].tcp;

	switch (sort) {
	case FLOW_SORT_RATE:
		return (double)down->rate + (double)up->rate;
	case FLOW_SORT_BYTES:
		return (double)down->bytes + (double)up->bytes;
	case FLOW_SORT_AGE:
		return -(double)f->start_ns;
	case FLOW_SORT_HELD:
		return (double)down->held_bytes + (double)up->held_bytes;
	case FLOW_SORT_RTT:
		return tcp->srtt_us;
	case FLOW_SORT_RETRANS:
		return tcp->bytes_sent ? (double)tcp->bytes_retrans / (double)tcp->bytes_sent : 0;
	case FLOW_SORT_COUNT_:
		break;
	}
	return 0;
}

/* A walk over the segment. */
struct walk {
	const struct flow_pick *pick;
	struct flow_list list;
	size_t room;
	bool failed;
};

static int compare(const void *a, const void *b, void *data)
{
	const struct pep_stats_flow *x = a, *y = b;
	const struct flow_pick *pick = data;
	double kx = sort_key(x, pick->sort), ky = sort_key(y, pick->sort);

	if (kx != ky)
		return kx < ky ? 1 : -1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void sort_and_cut(struct walk *walk)
{
	struct flow_list *list = &walk->list;

	qsort_r(list->flows, list->n, sizeof(*list->flows), compare, (void *)walk->pick);
	if (walk->pick->limit && list->n > walk->pick->limit)
		list->n = walk->pick->limit;
}

static bool take(const struct pep_stats_flow *flow, void *user)
{
	struct walk *walk = user;
	struct flow_list *list = &walk->list;

	if (walk->pick->client.bits && !pep_prefix_contains(&walk->pick->client, &flow->client))
		return true;
	list->matched++;
	if (list->n == walk->room && walk->pick->limit && walk->room >= 2 * walk->pick->limit)
		sort_and_cut(walk);
	if (list->n == walk->room) {
		size_t room = walk->room ? 2 * walk->room : 64;
		struct pep_stats_flow *grown = reallocarray(list->flows, room, sizeof(*grown));

		if (!grown) {
			walk->failed = true;
			return false;
		}
		list->flows = grown;
		walk->room = room;
	}
	memcpy(&list->flows[list->n++], flow, sizeof(*flow));
	return true;
}

int flow_list_read(const struct pep_stats_reader *reader, const struct flow_pick *pick,
		   struct flow_list *ret)
{
	struct walk walk = {.pick = pick};

	walk.list.skipped = pick->closed ? pep_stats_each_closed(reader, take, &walk)
					 : pep_stats_each_flow(reader, take, &walk);
	if (walk.failed) {
		free(walk.list.flows);
		return -ENOMEM;
	}
	if (walk.list.n)
		sort_and_cut(&walk);
	*ret = walk.list;
	return 0;
}

void flow_list_fini(struct flow_list *list)
{
	free(list->flows);
	*list = (struct flow_list){0};
}
