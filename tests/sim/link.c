/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: the ring holds the packets still waiting, in order of start_ns, and queued_bytes is
 * their sum; busy_until_ns is when the last accepted packet has left.
 */
#include "link.h"

#include <errno.h>
#include <stdlib.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull

int sim_link_init(struct sim_link *l, const struct sim_link_conf *conf, uint64_t seed)
{
	*l = (struct sim_link){.conf = *conf, .ring_size = 1024};
	sim_prng_seed(&l->prng, seed, 1);
	l->loss_threshold = sim_prng_threshold(conf->loss);
	l->start_threshold = sim_prng_threshold(conf->burst_start);
	l->end_threshold = sim_prng_threshold(conf->burst_end);
	l->bad_threshold = sim_prng_threshold(conf->burst_loss);
	l->ring = malloc(l->ring_size * sizeof(*l->ring));
	return l->ring ? 0 : -ENOMEM;
}

void sim_link_fini(struct sim_link *l)
{
	free(l->ring);
	l->ring = NULL;
}

static int ring_grow(struct sim_link *l)
{
	uint32_t size = l->ring_size * 2;
	struct sim_waiting *ring = malloc(size * sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	for (uint32_t i = l->head; i != l->tail; i++)
		ring[i & (size - 1)] = l->ring[i & (l->ring_size - 1)];
	free(l->ring);
	l->ring = ring;
	l->ring_size = size;
	return 0;
}

static void release(struct sim_link *l, uint64_t now)
{
	while (l->head != l->tail) {
		struct sim_waiting *w = &l->ring[l->head & (l->ring_size - 1)];

		if (w->start_ns > now)
			return;
		l->queued_bytes -= w->bytes;
		l->head++;
	}
}

/* When a service of @bytes that starts at @start ends, over the rate steps on the way. */
static uint64_t serve_rate(struct sim_link *l, uint64_t start, uint64_t bytes)
{
	const struct sim_step *s = l->conf.steps;

	for (;;) {
		uint64_t rate, need, room;

		while (l->step + 1 < l->conf.n_steps && s[l->step + 1].at_ns <= start)
			l->step++;
		rate = s[l->step].rate;
		need = rate ? (bytes * NS_PER_S + rate / 2) / rate : UINT64_MAX / 2;
		if (l->step + 1 == l->conf.n_steps)
			return start + need;
		room = s[l->step + 1].at_ns - start;
		if (need <= room)
			return start + need;
		bytes -= room * rate / NS_PER_S;
		start = s[l->step + 1].at_ns;
	}
}

static uint64_t chance_ns(const struct sim_link *l)
{
	return (l->round_ms + l->conf.trace->ms[l->chance]) * NS_PER_MS;
}

static void next_chance(struct sim_link *l)
{
	if (++l->chance < l->conf.trace->n)
		return;
	l->chance = 0;
	l->round_ms += l->conf.trace->period_ms;
}

/* Packets may share a chance; what is left of one is lost when nobody is there to use it. */
static uint64_t serve_trace(struct sim_link *l, uint64_t start, uint64_t bytes)
{
	uint64_t end = l->busy_until_ns;

	if (start > l->busy_until_ns)
		l->chance_left = 0;
	while (l->chance_left < bytes) {
		bytes -= l->chance_left;
		while (chance_ns(l) < start)
			next_chance(l);
		end = chance_ns(l);
		l->chance_left = SIM_TRACE_CHANCE_BYTES;
		next_chance(l);
	}
	l->chance_left -= (uint32_t)bytes;
	return end;
}

static bool is_lost(struct sim_link *l)
{
	if (l->bad_threshold) {
		l->bad = l->bad ? !sim_prng_chance(&l->prng, l->end_threshold)
				: sim_prng_chance(&l->prng, l->start_threshold);
		if (l->bad && sim_prng_chance(&l->prng, l->bad_threshold))
			return true;
	}
	return sim_prng_chance(&l->prng, l->loss_threshold);
}

static bool is_full(const struct sim_link *l, uint32_t bytes)
{
	return l->queued_bytes + bytes > l->conf.buffer_bytes ||
	       (l->conf.buffer_packets && l->tail - l->head >= l->conf.buffer_packets);
}

int sim_link_send(struct sim_link *l, uint64_t now, uint32_t bytes, uint64_t *ret_depart,
		  uint64_t *ret_wait)
{
	uint64_t start, depart;

	release(l, now);
	start = now > l->busy_until_ns ? now : l->busy_until_ns;
	if (start > now && is_full(l, bytes)) {
		l->dropped++;
		return SIM_FATE_DROPPED;
	}
	depart = l->conf.trace ? serve_trace(l, start, bytes) : serve_rate(l, start, bytes);
	if (l->conf.trace)
		start = depart; /* it waits for its chance */
	if (start > now) {
		if (l->tail - l->head == l->ring_size && ring_grow(l) < 0)
			return -ENOMEM;
		l->ring[l->tail++ & (l->ring_size - 1)] = (struct sim_waiting){start, bytes};
		l->queued_bytes += bytes;
	}
	l->busy_until_ns = depart;
	*ret_depart = depart;
	*ret_wait = start - now;
	if (is_lost(l)) {
		l->lost++;
		return SIM_FATE_LOST;
	}
	l->passed++;
	l->passed_bytes += bytes;
	return SIM_FATE_PASSED;
}

uint64_t sim_link_wait(struct sim_link *l, uint64_t now)
{
	return l->busy_until_ns > now ? l->busy_until_ns - now : 0;
}

static double capacity_until(const struct sim_link *l, uint64_t to)
{
	const struct sim_trace *t = l->conf.trace;
	double sum = 0;

	if (t) {
		uint64_t period = t->period_ms * NS_PER_MS, rest_ms = to % period / NS_PER_MS;
		size_t i = 0;

		while (i < t->n && t->ms[i] < rest_ms)
			i++;
		return ((double)(to / period) * (double)t->n + (double)i) * SIM_TRACE_CHANCE_BYTES;
	}
	for (unsigned int i = 0; i < l->conf.n_steps && l->conf.steps[i].at_ns < to; i++) {
		uint64_t end = i + 1 < l->conf.n_steps ? l->conf.steps[i + 1].at_ns : to;

		end = end < to ? end : to;
		sum += (double)(end - l->conf.steps[i].at_ns) * (double)l->conf.steps[i].rate / 1e9;
	}
	return sum;
}

double sim_link_capacity(const struct sim_link *l, uint64_t from, uint64_t to)
{
	return capacity_until(l, to) - capacity_until(l, from);
}
