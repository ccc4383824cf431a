/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CHAN_FADING_H
#define PEP_CHAN_FADING_H

/* The gain of a tapped delay line over frequency and time, mean power 1. */

#include "tests/lab/linkemu/rng.h"

enum {
	PEP_FADING_TAPS = 9,
	PEP_FADING_WAVES = 16,  /* sinusoids that make up a tap */
	PEP_FADING_POINTS = 25, /* frequencies looked at: every second resource block */
};

struct pep_fading {
	double doppler_hz;
	double amplitude[PEP_FADING_TAPS];
	double shift[PEP_FADING_TAPS][PEP_FADING_WAVES]; /* Hz */
	double phase[PEP_FADING_TAPS][PEP_FADING_WAVES];
	double turn_re[PEP_FADING_TAPS][PEP_FADING_POINTS]; /* e^(-j 2 pi f tau) */
	double turn_im[PEP_FADING_TAPS][PEP_FADING_POINTS];
};

/** Draws an EVA channel with this greatest Doppler shift. */
void pep_fading_init(struct pep_fading *f, double doppler_hz, struct pep_rng *rng);

/** Power gain at every frequency at a time in seconds, added to @gain. */
void pep_fading_add(const struct pep_fading *f, double seconds, double gain[PEP_FADING_POINTS]);

#endif
