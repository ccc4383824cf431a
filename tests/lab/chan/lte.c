/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lte.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "fading.h"

#define BANDWIDTH_HZ 10e6
#define SYMBOL_S     66.7e-6
#define CAP          4.4 /* bit/s/Hz of the best modulation and coding */
#define EFFICIENCY   0.6 /* of Shannon's bound */
#define LIGHT_KMH    1.0792528488e9

enum {
	HARQ_MS = 8,    /* until a failed block is sent again */
	HARQ_TRIES = 4, /* the first and three more */
	ANTENNAS = 2,   /* of the UE, combined: what every LTE UE has */
};

/* A block on its way; one may wait in each of the next HARQ_MS TTIs. */
struct block {
	double bits;   /* 0: none */
	double sinr;   /* collected over its attempts */
	double needed; /* what decodes it */
	unsigned int tries;
	unsigned int number; /* TTI of its first attempt */
};

void pep_lte_defaults(struct pep_lte *lte)
{
	*lte = (struct pep_lte){
		.profile = PEP_LTE_STATIC,
		.speed_kmh = 60,
		.carrier_ghz = 2.1,
		.sinr_db = 20,
		.estimate_ms = 0.15,
		.tracked = 0.3,
		.margin_db = 4,
		.cqi_ms = 8,
		.seed = 1,
	};
}

static double efficiency(double sinr)
{
	if (sinr < 0.1)
		return 0;
	return fmin(CAP, EFFICIENCY * log2(1 + sinr));
}

static double doppler_hz(const struct pep_lte *lte)
{
	return lte->speed_kmh * lte->carrier_ghz * 1e9 / LIGHT_KMH;
}

/* Shift of the train's only tap: sites every 300 m, 2 m beside the track. */
static double train_shift(const struct pep_lte *lte, double seconds)
{
	const double between = 300, beside = 2;
	double v = fmax(lte->speed_kmh / 3.6, 0.1);
	double t = fmod(seconds, 2 * between / v);
	double along = t <= between / v ? between / 2 - v * t : -1.5 * between + v * t;

	return doppler_hz(lte) * along / sqrt(beside * beside + along * along);
}

/*
 * Noise that motion adds, relative to the signal: between carriers, and by a channel estimate that
 * is a fraction of a millisecond old.
 */
static double motion_noise(const struct pep_lte *lte, double seconds)
{
	double age = 2 * M_PI * lte->estimate_ms * 1e-3;
	double left;

	switch (lte->profile) {
	case PEP_LTE_STATIC:
		break;
	case PEP_LTE_EVA:
		/* All shifts up to the greatest at once. */
		left = doppler_hz(lte);
		return pow(M_PI * left * SYMBOL_S, 2) / 6 + 2 * (1 - j0(left * age));
	case PEP_LTE_HST:
		left = (1 - lte->tracked) * train_shift(lte, seconds);
		return pow(M_PI * left * SYMBOL_S, 2) / 3 + 2 * (1 - cos(left * age));
	}
	return 0;
}

/* What one flat channel would need to carry as much as all frequencies together. */
static double effective_sinr(const struct pep_lte *lte, const struct pep_fading *antennas,
			     double seconds)
{
	double snr = pow(10, (lte->sinr_db + lte->ramp_db_s * seconds) / 10);
	double noise = motion_noise(lte, seconds);
	double gain[PEP_FADING_POINTS] = {0}, sum = 0;
	int i;

	if (lte->profile != PEP_LTE_EVA)
		return 1 / (1 / snr + noise);
	for (i = 0; i < ANTENNAS; i++)
		pep_fading_add(&antennas[i], seconds, gain);
	for (i = 0; i < PEP_FADING_POINTS; i++) {
		double point = snr * gain[i] / ANTENNAS;

		sum += log2(1 + 1 / (1 / fmax(point, 1e-6) + noise));
	}
	return exp2(sum / PEP_FADING_POINTS) - 1;
}

/* What is sent in a TTI: the block that waits for it, or a new one by the report that is there. */
static void send_block(const struct pep_lte *lte, struct block *b, double reported,
		       unsigned int tti)
{
	if (b->bits > 0)
		return;
	b->bits = efficiency(reported) * BANDWIDTH_HZ / 1000;
	/* The best coding needs no more than what gives it. */
	b->needed = fmin(reported, exp2(CAP / EFFICIENCY) - 1) * pow(10, -lte->margin_db / 10);
	b->sinr = 0;
	b->tries = 0;
	b->number = tti;
}

/* Blocks leave in order: none before all sent earlier have come or were given up. */
static void release(const double *got, const unsigned int *done, unsigned int ttis, double *bits)
{
	unsigned int number, latest = 0;

	for (number = 0; number < ttis; number++)
		bits[number] = 0;
	for (number = 0; number < ttis; number++) {
		if (done[number] > latest)
			latest = done[number];
		if (latest < ttis)
			bits[latest] += got[number];
	}
}

int pep_lte_run(const struct pep_lte *lte, unsigned int ttis, double *bits)
{
	struct block blocks[HARQ_MS] = {{0}};
	struct pep_fading antennas[ANTENNAS];
	double *sinr = calloc(ttis, sizeof(*sinr));
	double *got = calloc(ttis, sizeof(*got));
	unsigned int *done = calloc(ttis, sizeof(*done));
	struct pep_rng rng;
	unsigned int tti;
	int err = -ENOMEM;

	if (!sinr || !got || !done)
		goto out;
	pep_rng_seed(&rng, lte->seed);
	for (int i = 0; i < ANTENNAS; i++)
		pep_fading_init(&antennas[i], doppler_hz(lte), &rng);
	for (tti = 0; tti < ttis; tti++)
		sinr[tti] = effective_sinr(lte, antennas, tti * 1e-3);
	for (tti = 0; tti < ttis; tti++) {
		struct block *b = &blocks[tti % HARQ_MS];

		send_block(lte, b, sinr[tti < lte->cqi_ms ? 0 : tti - lte->cqi_ms], tti);
		b->sinr += sinr[tti];
		b->tries++;
		done[b->number] = tti;
		if (b->sinr >= b->needed)
			got[b->number] = b->bits;
		if (b->sinr >= b->needed || b->tries == HARQ_TRIES)
			b->bits = 0;
	}
	release(got, done, ttis, bits);
	err = 0;
out:
	free(sinr);
	free(got);
	free(done);
	return err;
}

double pep_lte_mean(const double *bits, unsigned int ttis)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < ttis; i++)
		sum += bits[i];
	return ttis ? sum * 1000 / ttis : 0;
}
