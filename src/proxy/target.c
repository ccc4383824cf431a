/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/target.h"

#include <string.h>

/* An interval: half a round trip of the reading leg, within these. */
#define INTERVAL_MIN_US 10000u
#define INTERVAL_MAX_US 50000u

/*
 * What the legs' round trip leaves out: the other end and we ourselves take that long to wake up.
 * On a path of microseconds it is what keeps the reading leg from running dry.
 */
#define WAKE_UP_US 4000u

/* The fast rate halves in one round trip (and not faster than this), the slow one in four seconds.
 * Half of the slow one is kept, so that a radio that comes back is served until the server's next
 * bytes are here. */
#define FAST_HALF_US 20000u
#define SLOW_HALF_US 4000000u

/* Below this nothing works any more: a few segments. */
#define LEAST_BYTES 8192u

void pep_budget_init(struct pep_budget *budget, uint64_t bytes)
{
	*budget = (struct pep_budget){.bytes = bytes, .level = UINT32_MAX};
}

static unsigned int bits(uint32_t n)
{
	return n ? 32u - (unsigned int)__builtin_clz(n) : 0;
}

/*
 * The level at which all shares together fill the budget when nobody gets more than he wants:
 * those who want little get it, the others share what is left. To the bit of what is wanted.
 */
static void find_level(struct pep_budget *budget)
{
	uint64_t left = budget->bytes;
	uint32_t sharers = 0;

	for (int i = 0; i <= 32; i++)
		sharers += budget->count[i];
	for (int i = 0; i <= 32; i++) {
		uint64_t fair = sharers ? left / sharers : 0;

		if (budget->wanted[i] > fair * budget->count[i]) {
			budget->level = fair < UINT32_MAX ? (uint32_t)fair : UINT32_MAX;
			return;
		}
		left -= budget->wanted[i];
		sharers -= budget->count[i];
	}
	budget->level = UINT32_MAX;
}

/* Puts the direction's wish into the budget in place of the one before. */
static void budget_wish(struct pep_budget *budget, struct pep_target *t, uint32_t want)
{
	if (t->want_bytes == want)
		return;
	if (t->want_bytes) {
		budget->wanted[bits(t->want_bytes)] -= t->want_bytes;
		budget->count[bits(t->want_bytes)]--;
	}
	t->want_bytes = want;
	if (want) {
		budget->wanted[bits(want)] += want;
		budget->count[bits(want)]++;
	}
	find_level(budget);
}

static uint32_t clamp32(uint64_t n, uint32_t min, uint32_t max)
{
	return n < min ? min : n > max ? max : (uint32_t)n;
}

void pep_target_init(struct pep_target *t, const struct pep_target_conf *conf, uint64_t now_ns)
{
	*t = (struct pep_target){
		.since_ns = now_ns,
		.interval_us = INTERVAL_MIN_US,
		.bytes = conf->max_bytes,
	};
}

void pep_target_start(struct pep_target *t, const struct pep_target_conf *conf, uint32_t bytes,
		      uint64_t sent_bytes, uint64_t now_ns)
{
	t->bytes = clamp32(bytes, conf->min_bytes, conf->max_bytes);
	t->since_ns = now_ns;
	t->since_bytes = sent_bytes;
	t->waiting_since_ns = now_ns;
	t->waiting_ns = 0;
}

void pep_target_fini(struct pep_target *t, struct pep_budget *budget)
{
	budget_wish(budget, t, 0);
}

void pep_target_waiting(struct pep_target *t, bool waiting, uint64_t now_ns)
{
	if (waiting && !t->waiting_since_ns) {
		t->waiting_since_ns = now_ns;
	} else if (!waiting && t->waiting_since_ns) {
		t->waiting_ns += now_ns - t->waiting_since_ns;
		t->waiting_since_ns = 0;
	}
}

/* @rate after @us, when it halves every @half_us (linear within a half). */
static uint64_t decay(uint64_t rate, uint64_t us, uint64_t half_us)
{
	uint64_t halves = us / half_us;

	if (halves >= 64)
		return 0;
	rate >>= halves;
	return rate - rate / 2 * (us % half_us) / half_us;
}

static uint32_t wish(const struct pep_target *t, const struct pep_target_conf *conf)
{
	uint64_t rate = t->fast_rate > t->slow_rate / 2 ? t->fast_rate : t->slow_rate / 2;
	uint64_t bytes;

	/* 2^40 bytes/s and an hour stay below 2^64 by far. */
	if (rate > (uint64_t)1 << 40)
		rate = (uint64_t)1 << 40;
	bytes = rate * (t->rtt_us + WAKE_UP_US) / 1000000u * conf->gain_percent / 100u;
	if (bytes < conf->min_bytes)
		return conf->min_bytes;
	return bytes > conf->max_bytes ? conf->max_bytes : (uint32_t)bytes;
}

bool pep_target_update(struct pep_target *t, struct pep_budget *budget,
		       const struct pep_target_conf *conf, uint64_t sent_bytes, uint32_t rtt_us,
		       uint64_t now_ns)
{
	uint64_t us = (now_ns - t->since_ns) / 1000u, waited, rate;
	uint32_t before = t->bytes;
	bool waiting = t->waiting_since_ns != 0;

	if (us == 0)
		return false;
	if (waiting) {
		t->waiting_ns += now_ns - t->waiting_since_ns;
		t->waiting_since_ns = now_ns;
	}
	waited = t->waiting_ns / 1000u;
	rate = (sent_bytes - t->since_bytes) * 1000000u / us;
	if (rtt_us)
		t->rtt_us = clamp32(rtt_us, 1, 10000000);
	t->fast_rate = decay(t->fast_rate, us, t->rtt_us > FAST_HALF_US ? t->rtt_us : FAST_HALF_US);
	t->slow_rate = decay(t->slow_rate, us, SLOW_HALF_US);
	if (rate > t->fast_rate)
		t->fast_rate = rate;
	if (rate > t->slow_rate)
		t->slow_rate = rate;

	if (2 * waited >= us) {
		budget_wish(budget, t, wish(t, conf));
		t->bytes = t->want_bytes;
	} else {
		/* Nothing is queued here: what the sending leg could do is not known, only that it
		 * is more. A sender's slow start doubles in a round trip, the target is faster. */
		uint64_t grown = t->bytes + 2 * (uint64_t)t->bytes * us / (t->rtt_us + WAKE_UP_US);

		budget_wish(budget, t, 0);
		t->bytes = clamp32(grown, conf->min_bytes, conf->max_bytes);
	}
	if (t->want_bytes && t->bytes > budget->level)
		t->bytes = budget->level > LEAST_BYTES ? budget->level : LEAST_BYTES;
	t->since_ns = now_ns;
	t->since_bytes = sent_bytes;
	t->waiting_ns = 0;
	t->interval_us = clamp32(t->rtt_us / 2, INTERVAL_MIN_US, INTERVAL_MAX_US);
	return t->bytes != before;
}
