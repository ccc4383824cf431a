/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fading.h"

#include <math.h>

#define SPACING_HZ 360e3 /* two resource blocks */

static const double delay_ns[PEP_FADING_TAPS] = {0, 30, 150, 310, 370, 710, 1090, 1730, 2510};
static const double power_db[PEP_FADING_TAPS] = {0, -1.5, -1.4, -3.6, -0.6, -9.1, -7, -12, -16.9};

void pep_fading_init(struct pep_fading *f, double doppler_hz, struct pep_rng *rng)
{
	double total = 0;
	int tap, i;

	f->doppler_hz = doppler_hz;
	for (tap = 0; tap < PEP_FADING_TAPS; tap++)
		total += pow(10, power_db[tap] / 10);
	for (tap = 0; tap < PEP_FADING_TAPS; tap++) {
		f->amplitude[tap] = sqrt(pow(10, power_db[tap] / 10) / total / PEP_FADING_WAVES);
		for (i = 0; i < PEP_FADING_WAVES; i++) {
			/* Spread over the circle, so that few waves give the classical spectrum. */
			double angle = 2 * M_PI * (i + pep_rng_unit(rng)) / PEP_FADING_WAVES;

			f->shift[tap][i] = doppler_hz * cos(angle);
			f->phase[tap][i] = 2 * M_PI * pep_rng_unit(rng);
		}
		for (i = 0; i < PEP_FADING_POINTS; i++) {
			double turn = -2 * M_PI * i * SPACING_HZ * delay_ns[tap] * 1e-9;

			f->turn_re[tap][i] = cos(turn);
			f->turn_im[tap][i] = sin(turn);
		}
	}
}

void pep_fading_add(const struct pep_fading *f, double seconds, double gain[PEP_FADING_POINTS])
{
	double re[PEP_FADING_POINTS] = {0}, im[PEP_FADING_POINTS] = {0};
	int tap, i;

	for (tap = 0; tap < PEP_FADING_TAPS; tap++) {
		double tap_re = 0, tap_im = 0;

		for (i = 0; i < PEP_FADING_WAVES; i++) {
			double at = 2 * M_PI * f->shift[tap][i] * seconds + f->phase[tap][i];

			tap_re += cos(at);
			tap_im += sin(at);
		}
		tap_re *= f->amplitude[tap];
		tap_im *= f->amplitude[tap];
		for (i = 0; i < PEP_FADING_POINTS; i++) {
			re[i] += tap_re * f->turn_re[tap][i] - tap_im * f->turn_im[tap][i];
			im[i] += tap_re * f->turn_im[tap][i] + tap_im * f->turn_re[tap][i];
		}
	}
	for (i = 0; i < PEP_FADING_POINTS; i++)
		gain[i] += re[i] * re[i] + im[i] * im[i];
}
