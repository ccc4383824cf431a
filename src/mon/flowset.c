/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tick costs one copy of the table and one sort of its ids, whatever is asked afterwards. */
#include "mon/flowset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats_json.h"

#define FASTEST       64 /* flows watched without being asked for */
#define ASKED_SECONDS 120

struct point {
	uint64_t real_ns;
	uint64_t rate[PEP_DIRECTION_COUNT_], held[PEP_DIRECTION_COUNT_];
	uint64_t retransmitted[PEP_SEGMENT_COUNT_];
	uint32_t rtt_us[PEP_SEGMENT_COUNT_], min_rtt_us[PEP_SEGMENT_COUNT_];
	uint32_t cwnd[PEP_SEGMENT_COUNT_];
	uint8_t limit[PEP_DIRECTION_COUNT_];
};

struct watched {
	uint64_t id;          /* 0: unused */
	uint64_t wanted_ns;   /* last time it was among the fastest or asked for */
	unsigned int count;   /* points ever taken */
	struct point *points; /* PEP_FLOWSET_SECONDS of them */
};

struct pep_flowset {
	struct pep_stats_flow *flows;
	struct pep_stats_flow **order; /* by id after a tick; room for sorting */
	size_t n, room;
	bool failed; /* out of memory while copying */
	struct watched watched[PEP_FLOWSET_WATCHED];
	uint64_t tick_ns;
};

struct pep_flowset *pep_flowset_new(void)
{
	return calloc(1, sizeof(struct pep_flowset));
}

void pep_flowset_free(struct pep_flowset *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < PEP_FLOWSET_WATCHED; i++)
		free(set->watched[i].points);
	free(set->flows);
	free(set->order);
	free(set);
}

static bool grow(struct pep_flowset *set)
{
	size_t room = set->room ? set->room * 2 : 256;
	struct pep_stats_flow *flows = realloc(set->flows, room * sizeof(*flows));
	struct pep_stats_flow **order;

	if (!flows)
		return false;
	set->flows = flows;
	order = realloc(set->order, room * sizeof(*order));
	if (!order)
		return false;
	set->order = order;
	set->room = room;
	return true;
}

static bool take_flow(const struct pep_stats_flow *flow, void *user)
{
	struct pep_flowset *set = user;

	if (set->n == set->room && !grow(set)) {
		set->failed = true;
		return false;
	}
	memcpy(&set->flows[set->n++], (const void *)flow, sizeof(*flow));
	return true;
}

static int by_id(const void *a, const void *b)
{
	const struct pep_stats_flow *x = *(struct pep_stats_flow *const *)a;
	const struct pep_stats_flow *y = *(struct pep_stats_flow *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

static const struct pep_stats_flow *find(const struct pep_flowset *set, uint64_t id)
{
	size_t low = 0, high = set->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->order[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->n && set->order[low]->id == id ? set->order[low] : NULL;
}

static uint64_t total_rate(const struct pep_stats_flow *f)
{
	return f->path[PEP_DIRECTION_DOWNLINK].rate + f->path[PEP_DIRECTION_UPLINK].rate;
}

static struct watched *watched_find(struct pep_flowset *set, uint64_t id)
{
	for (size_t i = 0; i < PEP_FLOWSET_WATCHED; i++)
		if (set->watched[i].id == id)
			return &set->watched[i];
	return NULL;
}

/* Watches @id, in the place of the one that has been of no interest for longest. */
static struct watched *watch(struct pep_flowset *set, uint64_t id, uint64_t wanted_ns)
{
	struct watched *w = watched_find(set, id);

	if (!w) {
		w = &set->watched[0];
		for (size_t i = 1; i < PEP_FLOWSET_WATCHED; i++)
			if (set->watched[i].wanted_ns < w->wanted_ns)
				w = &set->watched[i];
		if (!w->points)
			w->points = calloc(PEP_FLOWSET_SECONDS, sizeof(*w->points));
		if (!w->points)
			return NULL;
		w->id = id;
		w->count = 0;
		w->wanted_ns = 0;
	}
	if (wanted_ns > w->wanted_ns)
		w->wanted_ns = wanted_ns;
	return w;
}

static void take_point(struct watched *w, const struct pep_stats_flow *f, uint64_t real_ns)
{
	struct point *p = &w->points[w->count++ % PEP_FLOWSET_SECONDS];

	p->real_ns = real_ns;
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		p->rate[d] = f->path[d].rate;
		p->held[d] = f->path[d].held_bytes;
		p->limit[d] = f->path[d].limit;
	}
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		p->retransmitted[s] = f->leg[s].tcp.bytes_retrans;
		p->rtt_us[s] = f->leg[s].tcp.srtt_us;
		p->min_rtt_us[s] = f->leg[s].tcp.min_rtt_us;
		p->cwnd[s] = f->leg[s].tcp.cwnd;
	}
}

/* The fastest flows of this tick, without sorting all: a short list kept in order. */
static void watch_fastest(struct pep_flowset *set, uint64_t real_ns)
{
	const struct pep_stats_flow *fastest[FASTEST];
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++) {
		const struct pep_stats_flow *f = &set->flows[i];
		size_t at = n;

		if (total_rate(f) == 0 ||
		    (n == FASTEST && total_rate(fastest[n - 1]) >= total_rate(f)))
			continue;
		if (n == FASTEST)
			at = n - 1;
		else
			n++;
		for (; at > 0 && total_rate(fastest[at - 1]) < total_rate(f); at--)
			fastest[at] = fastest[at - 1];
		fastest[at] = f;
	}
	for (size_t i = 0; i < n; i++)
		(void)watch(set, fastest[i]->id, real_ns);
}

int pep_flowset_tick(struct pep_flowset *set, const struct pep_stats_reader *reader,
		     uint64_t real_ns)
{
	set->n = 0;
	set->failed = false;
	(void)pep_stats_each_flow(reader, take_flow, set);
	for (size_t i = 0; i < set->n; i++)
		set->order[i] = &set->flows[i];
	if (set->n)
		qsort(set->order, set->n, sizeof(*set->order), by_id);

	set->tick_ns = real_ns;
	watch_fastest(set, real_ns);
	for (size_t i = 0; i < PEP_FLOWSET_WATCHED; i++) {
		struct watched *w = &set->watched[i];
		const struct pep_stats_flow *f = w->id ? find(set, w->id) : NULL;

		if (f)
			take_point(w, f, real_ns);
	}
	return set->failed ? -ENOMEM : 0;
}

void pep_flowset_clear(struct pep_flowset *set)
{
	set->n = 0;
	for (size_t i = 0; i < PEP_FLOWSET_WATCHED; i++) {
		set->watched[i].id = 0;
		set->watched[i].wanted_ns = 0;
	}
}

size_t pep_flowset_count(const struct pep_flowset *set)
{
	return set->n;
}

uint32_t pep_flowset_min_rtt_us(const struct pep_flowset *set, enum pep_segment segment)
{
	uint32_t least = 0;

	for (size_t i = 0; i < set->n; i++) {
		const struct pep_stats_tcp *t = &set->flows[i].leg[segment].tcp;

		if (t->valid && t->min_rtt_us && t->min_rtt_us != UINT32_MAX &&
		    (!least || t->min_rtt_us < least))
			least = t->min_rtt_us;
	}
	return least;
}

const char *pep_flowset_sort_name(enum pep_flowset_sort sort)
{
	static const char *const names[PEP_FLOWSET_SORT_COUNT_] = {
		[PEP_FLOWSET_SORT_RATE] = "rate",
		[PEP_FLOWSET_SORT_BYTES] = "bytes",
		[PEP_FLOWSET_SORT_AGE] = "age",
		[PEP_FLOWSET_SORT_QUEUED] = "queued",
		[PEP_FLOWSET_SORT_WIRELESS_RTT] = "wireless_rtt",
		[PEP_FLOWSET_SORT_WIRED_RTT] = "wired_rtt",
		[PEP_FLOWSET_SORT_RETRANSMITTED] = "retransmitted",
	};

	return sort < PEP_FLOWSET_SORT_COUNT_ ? names[sort] : "?";
}

static uint64_t key_of(const struct pep_stats_flow *f, enum pep_flowset_sort sort)
{
	const struct pep_stats_path *down = &f->path[PEP_DIRECTION_DOWNLINK];
	const struct pep_stats_path *up = &f->path[PEP_DIRECTION_UPLINK];
	const struct pep_stats_leg *wireless = &f->leg[PEP_SEGMENT_WIRELESS];
	const struct pep_stats_leg *wired = &f->leg[PEP_SEGMENT_WIRED];

	switch (sort) {
	case PEP_FLOWSET_SORT_RATE:
	case PEP_FLOWSET_SORT_COUNT_:
		break;
	case PEP_FLOWSET_SORT_BYTES:
		return down->bytes + up->bytes;
	case PEP_FLOWSET_SORT_AGE:
		return UINT64_MAX - f->start_ns;
	case PEP_FLOWSET_SORT_QUEUED:
		return down->held_bytes + up->held_bytes + wireless->unread_bytes +
		       wireless->tcp.notsent_bytes + wired->unread_bytes + wired->tcp.notsent_bytes;
	case PEP_FLOWSET_SORT_WIRELESS_RTT:
		return wireless->tcp.srtt_us;
	case PEP_FLOWSET_SORT_WIRED_RTT:
		return wired->tcp.srtt_us;
	case PEP_FLOWSET_SORT_RETRANSMITTED:
		return wireless->tcp.bytes_retrans + wired->tcp.bytes_retrans;
	}
	return total_rate(f);
}

struct keyed {
	uint64_t key;
	const struct pep_stats_flow *flow;
};

/* Greatest first; the id settles ties, so that a table does not flicker. */
static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return (x->flow->id > y->flow->id) - (x->flow->id < y->flow->id);
}

json_t *pep_flowset_json(struct pep_flowset *set, const struct pep_stats_info *info,
			 const struct pep_flowset_query *query, uint64_t real_ns)
{
	struct keyed *keyed = malloc((set->n + 1) * sizeof(*keyed));
	json_t *array = json_array();
	size_t n = 0;

	if (!keyed || !array)
		goto fail;
	for (size_t i = 0; i < set->n; i++) {
		const struct pep_stats_flow *f = &set->flows[i];
		uint64_t key = key_of(f, query->sort);

		if (query->by_client &&
		    memcmp(&f->client, &query->client, sizeof(query->client)) != 0)
			continue;
		keyed[n++] = (struct keyed){query->ascending ? ~key : key, f};
	}
	qsort(keyed, n, sizeof(*keyed), by_key);
	for (size_t i = 0; i < n && i < query->limit; i++)
		if (json_array_append_new(array,
					  pep_stats_flow_json(keyed[i].flow, info, real_ns)) < 0)
			goto fail;
	free(keyed);
	return json_pack("{s:I, s:s, s:o}", "total", (json_int_t)n, "sort",
			 pep_flowset_sort_name(query->sort), "flows", array);

fail:
	free(keyed);
	json_decref(array);
	return NULL;
}

enum column {
	COLUMN_TIME,
	COLUMN_RATE,
	COLUMN_HELD,
	COLUMN_LIMIT,
	COLUMN_RTT,
	COLUMN_MIN_RTT,
	COLUMN_CWND,
	COLUMN_RETRANSMITTED,
};

static json_t *cell(const struct point *p, enum column column, int which)
{
	switch (column) {
	case COLUMN_TIME:
		return json_real((double)p->real_ns / 1e9);
	case COLUMN_RATE:
		return json_integer((json_int_t)p->rate[which]);
	case COLUMN_HELD:
		return json_integer((json_int_t)p->held[which]);
	case COLUMN_LIMIT:
		return json_string(pep_limit_name((enum pep_limit)p->limit[which]));
	case COLUMN_RTT:
		return json_real(p->rtt_us[which] / 1e6);
	case COLUMN_MIN_RTT:
		return p->min_rtt_us[which] == UINT32_MAX ? json_null()
							  : json_real(p->min_rtt_us[which] / 1e6);
	case COLUMN_CWND:
		return json_integer((json_int_t)p->cwnd[which]);
	case COLUMN_RETRANSMITTED:
		break;
	}
	return json_integer((json_int_t)p->retransmitted[which]);
}

static json_t *column(const struct watched *w, enum column which, int index)
{
	unsigned int n = w->count < PEP_FLOWSET_SECONDS ? w->count : PEP_FLOWSET_SECONDS;
	json_t *array = json_array();

	for (unsigned int i = w->count - n; array && i != w->count; i++)
		json_array_append_new(array,
				      cell(&w->points[i % PEP_FLOWSET_SECONDS], which, index));
	return array;
}

static json_t *path_columns(const struct watched *w, int d)
{
	return json_pack("{s:o, s:o, s:o}", "bytes_per_second", column(w, COLUMN_RATE, d),
			 "held_bytes", column(w, COLUMN_HELD, d), "limit",
			 column(w, COLUMN_LIMIT, d));
}

static json_t *leg_columns(const struct watched *w, int s)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "rtt_seconds", column(w, COLUMN_RTT, s),
			 "min_rtt_seconds", column(w, COLUMN_MIN_RTT, s), "cwnd",
			 column(w, COLUMN_CWND, s), "retransmitted_bytes",
			 column(w, COLUMN_RETRANSMITTED, s));
}

json_t *pep_flowset_history_json(struct pep_flowset *set, uint64_t id)
{
	const struct watched *w = watched_find(set, id);

	/* A flow asked for stays in front of the merely fast ones for a while. */
	if (id && find(set, id))
		w = watch(set, id, set->tick_ns + ASKED_SECONDS * UINT64_C(1000000000));
	if (!w || !id)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "time", column(w, COLUMN_TIME, 0), "downlink",
			 path_columns(w, PEP_DIRECTION_DOWNLINK), "uplink",
			 path_columns(w, PEP_DIRECTION_UPLINK), "wireless",
			 leg_columns(w, PEP_SEGMENT_WIRELESS), "wired",
			 leg_columns(w, PEP_SEGMENT_WIRED));
}
