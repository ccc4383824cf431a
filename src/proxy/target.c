/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/target.h"

/* An interval: a quarter of a round trip of the reading leg, within these. Shorter ones measure the
 * lumps in which a socket takes bytes. */
#define INTERVAL_MIN_US 20000u
#define INTERVAL_MAX_US 50000u

/*
 * The fast rate halves in one round trip (and not faster than this), the slow one in four seconds.
 * Of the slow one a part is kept, so that a radio that comes back is served until the server's next
 * bytes are here.
 */
#define FAST_HALF_US      20000u
#define SLOW_HALF_US      4000000u
#define SLOW_KEPT_PERCENT 36u

/*
 * A byte that is lost on the reading leg comes a round trip later, and its sender takes up to a
 * quarter more to notice. What comes behind it is held until then, and the sending leg lives on
 * what was held before. As long as such holes are seen, there is room for it, and for the next one
 * that begins before the first is made good.
 */
#define HOLE_PERCENT 200u
#define HOLE_KEPT_US 4000000u

/* No bound any more once nothing waited while the target grew so many times. */
#define FREE_FACTOR 4u

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

void pep_target_init(struct pep_target *t, uint64_t now_ns)
{
	*t = (struct pep_target){
		.since_ns = now_ns,
		.interval_us = INTERVAL_MIN_US,
		.bytes = UINT32_MAX,
	};
}

void pep_target_start(struct pep_target *t, uint32_t bytes, uint64_t delivered_bytes,
		      uint64_t now_ns)
{
	t->bytes = t->last_bytes = bytes;
	t->since_ns = t->grown_ns = now_ns;
	t->since_bytes = delivered_bytes;
	t->waiting_ns = 0;
}

void pep_target_fini(struct pep_target *t, struct pep_budget *budget)
{
	budget_wish(budget, t, 0);
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
	uint64_t kept = t->slow_rate * SLOW_KEPT_PERCENT / 100u;
	uint64_t rate = t->fast_rate > kept ? t->fast_rate : kept;
	uint32_t percent = conf->gain_percent + (t->hole_us ? HOLE_PERCENT : 0);
	uint64_t us = (uint64_t)t->rtt_us * percent / 100u + PEP_TARGET_SLACK_US;

	/* 2^36 bytes/s and 100 seconds stay below 2^64. */
	if (rate > (uint64_t)1 << 36)
		rate = (uint64_t)1 << 36;
	return clamp32(rate * us / 1000000u, conf->min_bytes, conf->max_bytes);
}

/* No more than the share that the budget has for everybody. */
static uint32_t at_most_level(const struct pep_budget *budget, uint32_t bytes)
{
	if (bytes <= budget->level)
		return bytes;
	return budget->level > LEAST_BYTES ? budget->level : LEAST_BYTES;
}

static uint32_t share(struct pep_target *t, struct pep_budget *budget,
		      const struct pep_target_conf *conf)
{
	budget_wish(budget, t, wish(t, conf));
	return at_most_level(budget, t->want_bytes);
}

/* Bytes waited through most of the interval: what was delivered is what the sending leg can do. */
static void follow(struct pep_target *t, struct pep_budget *budget,
		   const struct pep_target_conf *conf, uint64_t now_ns)
{
	uint32_t before = t->bytes;

	t->bytes = t->last_bytes = share(t, budget, conf);
	if (t->bytes > before)
		t->grown_ns = now_ns;
}

/*
 * The sending leg ran dry: what it could do is not known, only that it is more than what it did.
 * The target doubles, as a sender's slow start does, and waits for what comes of it.
 */
static void grow(struct pep_target *t, struct pep_budget *budget,
		 const struct pep_target_conf *conf, uint64_t now_ns)
{
	uint64_t answer_us = t->rtt_us + PEP_TARGET_SLACK_US;
	uint32_t least = share(t, budget, conf);

	budget_wish(budget, t, 0);
	if (t->bytes == UINT32_MAX)
		return;
	if (t->bytes < least) {
		t->bytes = t->last_bytes = least;
		t->grown_ns = now_ns;
	}
	if (now_ns - t->grown_ns < answer_us * 1000u)
		return;
	t->grown_ns = now_ns;
	if ((uint64_t)t->bytes * 2 < (uint64_t)t->last_bytes * FREE_FACTOR)
		t->bytes *= 2;
	else
		t->bytes = UINT32_MAX;
}

/* The rates of the interval. What a sending leg did that starved at a hole is no news. */
static void learn_rates(struct pep_target *t, const struct pep_target_seen *seen, uint64_t us,
			bool starved)
{
	uint64_t rate = (seen->delivered_bytes - t->since_bytes) * 1000000u / us;

	if (!starved)
		t->fast_rate = decay(t->fast_rate, us,
				     t->rtt_us > FAST_HALF_US ? t->rtt_us : FAST_HALF_US);
	t->slow_rate = decay(t->slow_rate, us, SLOW_HALF_US);
	if (rate > t->fast_rate)
		t->fast_rate = rate;
	if (rate > t->slow_rate)
		t->slow_rate = rate;
}

static void learn_hole(struct pep_target *t, bool hole, uint64_t us)
{
	if (hole)
		t->hole_us = HOLE_KEPT_US;
	else
		t->hole_us -= us < t->hole_us ? (uint32_t)us : t->hole_us;
}

void pep_target_update(struct pep_target *t, struct pep_budget *budget,
		       const struct pep_target_conf *conf, const struct pep_target_seen *seen,
		       uint64_t now_ns)
{
	uint64_t us = (now_ns - t->since_ns) / 1000u;
	bool waited;

	if (us == 0)
		return;
	if (t->waiting_since_ns) {
		t->waiting_ns += now_ns - t->waiting_since_ns;
		t->waiting_since_ns = now_ns;
	}
	waited = t->waiting_ns / 1000u >= us / 2;
	if (seen->rtt_us)
		t->rtt_us = clamp32(seen->rtt_us, 1, 10000000);
	learn_hole(t, seen->hole, us);
	learn_rates(t, seen, us, seen->hole && !waited);
	if (waited)
		follow(t, budget, conf, now_ns);
	else if (seen->dry)
		grow(t, budget, conf, now_ns);
	else if (t->want_bytes)
		t->bytes = at_most_level(budget, t->bytes);
	t->since_ns = now_ns;
	t->since_bytes = seen->delivered_bytes;
	t->waiting_ns = 0;
	t->interval_us = clamp32(t->rtt_us / 4, INTERVAL_MIN_US, INTERVAL_MAX_US);
}
