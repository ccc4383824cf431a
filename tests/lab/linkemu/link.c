/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant: ring[head..sent) waits for its release time, ring[sent..tail) for the transmitter, and
 * the transmitter has been accounted for up to cursor_ns, which never goes back.
 */
#include "link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S   1000000000u
#define NS_PER_MS  1000000u
#define RING_FIRST 1024u
#define RING_MAX   (1u << 21)

struct packet {
	uint64_t arrival_ns, due_ns;
	uint32_t id, bytes;
	enum pep_link_drop drop;
};

struct pep_link {
	struct pep_link_conf conf;                          /* as configured */
	struct pep_link_event events[PEP_LINK_MAX_CHANGES]; /* at_ns moves on when repeated */
	uint64_t script_ns; /* when the script and the trace started */
	uint64_t next_event_ns;
	uint64_t rate_bps, delay_ns; /* in force */
	double loss;
	bool blocked, bad, last_lost;
	struct pep_rng rng;

	struct packet *ring;
	uint32_t ring_mask;
	uint32_t head, sent, tail; /* free running */
	uint64_t cursor_ns;
	uint64_t left;  /* bit-ns at a rate, bytes on a trace, of ring[sent] */
	uint64_t spare; /* bit-ns that the packet before left of its last ns */
	bool started;   /* ring[sent] is being transmitted */
	uint64_t backlog_bytes;
	uint64_t last_due_ns;
	size_t trace_index;     /* next opportunity */
	uint64_t trace_base_ns; /* start of this period of the trace */

	struct pep_link_stats stats;
};

static struct packet *slot(const struct pep_link *link, uint32_t i)
{
	return &link->ring[i & link->ring_mask];
}

static int grow(struct pep_link *link)
{
	uint32_t size = link->ring ? (link->ring_mask + 1) * 2 : RING_FIRST;
	struct packet *ring;
	uint32_t i;

	if (size > RING_MAX)
		return -ENOMEM;
	ring = malloc(size * sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (i = link->head; i != link->tail; i++)
		ring[i & (size - 1)] = *slot(link, i);
	free(link->ring);
	link->ring = ring;
	link->ring_mask = size - 1;
	return 0;
}

/* -- leaving the transmitter ------------------------------------------------------------------- */

static uint64_t draw_delay(struct pep_link *link)
{
	double offset, delay;

	if (!link->conf.jitter_ns)
		return link->delay_ns;
	switch (link->conf.jitter) {
	case PEP_LINK_JITTER_NORMAL:
		offset = pep_rng_normal(&link->rng);
		break;
	case PEP_LINK_JITTER_UNIFORM:
	default:
		offset = 2 * pep_rng_unit(&link->rng) - 1;
		break;
	}
	delay = (double)link->delay_ns + offset * (double)link->conf.jitter_ns;
	return delay > 0 ? (uint64_t)delay : 0;
}

/* ring[sent] left the transmitter, or is to be dropped, at @at_ns. */
static void transmitted(struct pep_link *link, uint64_t at_ns)
{
	struct packet *p = slot(link, link->sent);

	p->due_ns = at_ns;
	if (p->drop == PEP_LINK_DROP_NONE) {
		p->due_ns += draw_delay(link);
		pep_hist_add(&link->stats.queue_delay, at_ns - p->arrival_ns);
		link->backlog_bytes -= p->bytes;
	}
	if (p->due_ns < link->last_due_ns)
		p->due_ns = link->last_due_ns;
	link->last_due_ns = p->due_ns;
	link->started = false;
	link->sent++;
}

/* Packets to be dropped take no time of the transmitter. */
static void skip_drops(struct pep_link *link)
{
	while (link->sent != link->tail && slot(link, link->sent)->drop != PEP_LINK_DROP_NONE)
		transmitted(link, link->cursor_ns);
}

/* -- transmitter at a rate --------------------------------------------------------------------- */

static void serve_rate(struct pep_link *link, uint64_t until_ns)
{
	while (skip_drops(link), link->sent != link->tail) {
		const struct packet *p = slot(link, link->sent);

		if (!link->started) {
			uint64_t need = (uint64_t)p->bytes * 8 * NS_PER_S;

			link->left = need > link->spare ? need - link->spare : 0;
			link->spare = 0;
			link->started = true;
		}
		if (link->left / link->rate_bps > until_ns - link->cursor_ns)
			break;
		/* Whole nanoseconds; what is over is taken off the next packet, so no rate is lost.
		 */
		link->cursor_ns += link->left / link->rate_bps;
		if (link->left % link->rate_bps && link->cursor_ns < until_ns) {
			link->cursor_ns++;
			link->spare = link->rate_bps - link->left % link->rate_bps;
		}
		transmitted(link, link->cursor_ns);
	}
	if (link->sent != link->tail)
		link->left -= (until_ns - link->cursor_ns) * link->rate_bps;
	else
		link->spare = 0;
	link->cursor_ns = until_ns;
}

/* -- transmitter on a trace -------------------------------------------------------------------- */

static uint64_t trace_next_ns(const struct pep_link *link)
{
	return link->trace_base_ns + (uint64_t)link->conf.trace.ms[link->trace_index] * NS_PER_MS;
}

static void trace_step(struct pep_link *link)
{
	if (++link->trace_index == link->conf.trace.count) {
		link->trace_index = 0;
		link->trace_base_ns += (uint64_t)link->conf.trace.period_ms * NS_PER_MS;
	}
}

/* One opportunity: 1500 bytes, shared by the packets that wait; what they leave is lost. */
static void trace_deliver(struct pep_link *link)
{
	uint64_t budget = PEP_TRACE_PACKET_BYTES;

	while (skip_drops(link), link->sent != link->tail && budget) {
		if (!link->started) {
			link->left = slot(link, link->sent)->bytes;
			link->started = true;
		}
		if (link->left > budget) {
			link->left -= budget;
			return;
		}
		budget -= link->left;
		transmitted(link, link->cursor_ns);
	}
}

static void serve_trace(struct pep_link *link, uint64_t until_ns)
{
	uint64_t period_ns = (uint64_t)link->conf.trace.period_ms * NS_PER_MS;

	skip_drops(link);
	if (link->sent == link->tail && until_ns - link->cursor_ns > 2 * period_ns &&
	    until_ns > link->trace_base_ns) /* idle for long: whole periods at once */
		link->trace_base_ns +=
			(until_ns - link->trace_base_ns) / period_ns * period_ns - period_ns;
	for (; trace_next_ns(link) <= until_ns; trace_step(link)) {
		if (trace_next_ns(link) < link->cursor_ns)
			continue;
		link->cursor_ns = trace_next_ns(link);
		if (!link->blocked)
			trace_deliver(link);
	}
	link->cursor_ns = until_ns;
}

/* -- time passes ------------------------------------------------------------------------------- */

static void serve(struct pep_link *link, uint64_t until_ns)
{
	if (until_ns <= link->cursor_ns)
		until_ns = link->cursor_ns;
	if (link->conf.trace.count) {
		serve_trace(link, until_ns);
	} else if (link->blocked) {
		link->cursor_ns = until_ns;
	} else if (link->rate_bps) {
		serve_rate(link, until_ns);
	} else {
		link->cursor_ns = until_ns;
		while (link->sent != link->tail)
			transmitted(link, until_ns);
	}
}

static void apply(struct pep_link *link, const struct pep_link_change *change)
{
	switch (change->what) {
	case PEP_LINK_WHAT_RATE:
		link->rate_bps = change->value;
		link->spare = 0;
		break;
	case PEP_LINK_WHAT_LOSS:
		link->loss = change->share;
		break;
	case PEP_LINK_WHAT_DELAY:
		link->delay_ns = change->value;
		break;
	case PEP_LINK_WHAT_BLOCK:
		link->blocked = change->value;
		break;
	}
}

static void find_next_event(struct pep_link *link)
{
	unsigned int i;

	link->next_event_ns = PEP_LINK_NEVER;
	for (i = 0; i < link->conf.n_events; i++) {
		if (link->events[i].at_ns == PEP_LINK_NEVER)
			continue;
		if (link->script_ns + link->events[i].at_ns < link->next_event_ns)
			link->next_event_ns = link->script_ns + link->events[i].at_ns;
	}
}

static void run_events(struct pep_link *link)
{
	uint64_t now = link->next_event_ns;
	unsigned int i;

	for (i = 0; i < link->conf.n_events; i++) {
		struct pep_link_event *e = &link->events[i];

		if (e->at_ns == PEP_LINK_NEVER || link->script_ns + e->at_ns != now)
			continue;
		apply(link, &e->change);
		e->at_ns = e->every_ns ? e->at_ns + e->every_ns : PEP_LINK_NEVER;
	}
	find_next_event(link);
}

static void advance(struct pep_link *link, uint64_t now_ns)
{
	while (link->next_event_ns <= now_ns) {
		serve(link, link->next_event_ns);
		run_events(link);
	}
	serve(link, now_ns);
}

static void start(struct pep_link *link, uint64_t now_ns)
{
	memcpy(link->events, link->conf.events, sizeof(link->events));
	memset(&link->stats, 0, sizeof(link->stats));
	link->rate_bps = link->conf.rate_bps;
	link->delay_ns = link->conf.delay_ns;
	link->loss = link->conf.loss;
	link->blocked = link->bad = link->last_lost = false;
	pep_rng_seed(&link->rng, link->conf.seed);
	link->script_ns = link->trace_base_ns = now_ns;
	link->trace_index = 0;
	find_next_event(link);
}

/* -- public ------------------------------------------------------------------------------------ */

int pep_link_new(const struct pep_link_conf *conf, uint64_t now_ns, struct pep_link **ret)
{
	struct pep_link *link = calloc(1, sizeof(*link));

	if (!link || grow(link)) {
		free(link);
		return -ENOMEM;
	}
	link->conf = *conf;
	link->cursor_ns = now_ns;
	start(link, now_ns);
	*ret = link;
	return 0;
}

void pep_link_free(struct pep_link *link)
{
	if (!link)
		return;
	pep_trace_fini(&link->conf.trace);
	free(link->ring);
	free(link);
}

const struct pep_link_conf *pep_link_conf(const struct pep_link *link)
{
	return &link->conf;
}

const struct pep_link_stats *pep_link_stats(const struct pep_link *link)
{
	return &link->stats;
}

uint64_t pep_link_backlog_bytes(const struct pep_link *link)
{
	return link->backlog_bytes;
}

void pep_link_restart(struct pep_link *link, uint64_t now_ns)
{
	advance(link, now_ns);
	start(link, now_ns);
}

void pep_link_change(struct pep_link *link, const struct pep_link_change *change, uint64_t now_ns)
{
	advance(link, now_ns);
	apply(link, change);
}

static enum pep_link_drop decide(struct pep_link *link, uint32_t bytes)
{
	const struct pep_link_conf *c = &link->conf;

	if (c->good_to_bad > 0) {
		if (pep_rng_chance(&link->rng, link->bad ? c->bad_to_good : c->good_to_bad))
			link->bad = !link->bad;
		if (pep_rng_chance(&link->rng, link->bad ? c->loss_bad : c->loss_good))
			return PEP_LINK_DROP_BURST;
	}
	if (pep_rng_chance(&link->rng, link->loss))
		return PEP_LINK_DROP_LOSS;
	/* An empty buffer always takes one packet, however small it is. */
	if (link->backlog_bytes && link->backlog_bytes + bytes > c->buffer_bytes)
		return PEP_LINK_DROP_BUFFER;
	return PEP_LINK_DROP_NONE;
}

int pep_link_input(struct pep_link *link, uint32_t id, uint32_t bytes, uint64_t arrival_ns)
{
	struct pep_link_stats *stats = &link->stats;
	struct packet p = {.arrival_ns = arrival_ns, .id = id, .bytes = bytes};
	bool lost;

	advance(link, arrival_ns);
	if (link->tail - link->head > link->ring_mask && grow(link))
		return -ENOMEM;
	p.drop = decide(link, bytes);

	stats->packets_in++;
	stats->bytes_in += bytes;
	stats->dropped[p.drop]++;
	lost = p.drop == PEP_LINK_DROP_LOSS || p.drop == PEP_LINK_DROP_BURST;
	if (lost && !link->last_lost)
		stats->loss_runs++;
	link->last_lost = lost;
	if (bytes > stats->max_packet_bytes)
		stats->max_packet_bytes = bytes;
	if (p.drop == PEP_LINK_DROP_NONE)
		link->backlog_bytes += bytes;
	if (link->backlog_bytes > stats->max_backlog_bytes)
		stats->max_backlog_bytes = link->backlog_bytes;

	*slot(link, link->tail++) = p;
	return 0;
}

bool pep_link_output(struct pep_link *link, uint64_t until_ns, uint64_t now_ns, uint32_t *ret_id,
		     bool *ret_drop)
{
	struct pep_link_stats *stats = &link->stats;
	const struct packet *p;

	advance(link, until_ns);
	if (link->head == link->sent)
		return false;
	p = slot(link, link->head);
	if (p->due_ns > until_ns)
		return false;
	link->head++;
	*ret_id = p->id;
	*ret_drop = p->drop != PEP_LINK_DROP_NONE;
	if (*ret_drop)
		return true;
	stats->packets_out++;
	stats->bytes_out += p->bytes;
	if (!stats->first_out_ns)
		stats->first_out_ns = now_ns;
	stats->last_out_ns = now_ns;
	pep_hist_add(&stats->lateness, now_ns - p->due_ns);
	return true;
}

/* When ring[sent] will have left the transmitter, if nothing changes. */
static uint64_t transmit_end(const struct pep_link *link)
{
	const struct packet *p = slot(link, link->sent);
	uint64_t left = link->left;

	if (p->drop != PEP_LINK_DROP_NONE)
		return link->cursor_ns;
	if (link->conf.trace.count)
		return trace_next_ns(link);
	if (link->blocked)
		return PEP_LINK_NEVER;
	if (!link->rate_bps)
		return link->cursor_ns;
	if (!link->started)
		left = (uint64_t)p->bytes * 8 * NS_PER_S;
	return link->cursor_ns + left / link->rate_bps + 1;
}

uint64_t pep_link_next(const struct pep_link *link)
{
	uint64_t next, end;

	if (link->head != link->sent)
		return slot(link, link->head)->due_ns;
	if (link->sent == link->tail)
		return PEP_LINK_NEVER;
	end = transmit_end(link);
	if (end == PEP_LINK_NEVER)
		return link->next_event_ns;
	/* With jitter the packet may be due at once; without, not before its delay is over. */
	next = link->conf.jitter_ns ? end : end + link->delay_ns;
	return next < link->next_event_ns ? next : link->next_event_ns;
}
