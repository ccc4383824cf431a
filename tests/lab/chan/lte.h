/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CHAN_LTE_H
#define PEP_CHAN_LTE_H

/*
 * An LTE downlink of 10 MHz to one UE that always has data: fading, link adaptation with old
 * reports, HARQ and in-order release, one value for each TTI of 1 ms.
 */

#include <stdint.h>

enum pep_lte_profile {
	PEP_LTE_STATIC, /* no fading */
	PEP_LTE_EVA,    /* Extended Vehicular A, TS 36.101 Annex B.2, classical Doppler */
	PEP_LTE_HST,    /* high-speed train, TS 36.101 Annex B.3: one tap, changing Doppler */
};

struct pep_lte {
	enum pep_lte_profile profile;
	double speed_kmh;
	double carrier_ghz;
	double sinr_db;      /* at time 0, mean over the fading */
	double ramp_db_s;    /* change of it: negative away from the cell, positive towards */
	double estimate_ms;  /* age of the receiver's channel estimate, which Doppler makes wrong */
	double tracked;      /* share of an HST tap's Doppler that the receiver corrects, 0..1 */
	double margin_db;    /* a block fails when the channel is worse than reported by more */
	unsigned int cqi_ms; /* age of the report a block is sent by */
	uint64_t seed;
};

/** Settings that meet the published averages: see doc/EVALUATION.md. */
void pep_lte_defaults(struct pep_lte *lte);

/**
 * Bits that leave the receiver in order, in each of @ttis milliseconds, into @bits (owned by the
 * caller). 0 or -ENOMEM.
 */
int pep_lte_run(const struct pep_lte *lte, unsigned int ttis, double *bits);

/** Mean rate of @ttis in bit/s. */
double pep_lte_mean(const double *bits, unsigned int ttis);

#endif
