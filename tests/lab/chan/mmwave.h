/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CHAN_MMWAVE_H
#define PEP_CHAN_MMWAVE_H

/* A 60 GHz link in line of sight, and what gets into its way. */

#include <stdint.h>

enum {
	PEP_MMWAVE_BLOCKS_MAX = 16
};

/* Something held into the beam: the rate falls at once and returns at once. */
struct pep_mmwave_block {
	double at_s;
	double for_s;
	double left; /* share of the rate that is left */
};

struct pep_mmwave {
	double los_mbit;
	double people_per_s; /* people crossing the beam; 0: none */
	double people_left;  /* share of the rate behind a person */
	struct pep_mmwave_block blocks[PEP_MMWAVE_BLOCKS_MAX];
	unsigned int n_blocks;
	uint64_t seed;
};

void pep_mmwave_defaults(struct pep_mmwave *m);

/** Share of the rate that a material leaves: "metal", "cardboard", "body"; negative: not known. */
double pep_mmwave_material(const char *name);

/** Bits of each of @ms milliseconds into @bits, owned by the caller. */
void pep_mmwave_run(const struct pep_mmwave *m, unsigned int ms, double *bits);

#endif
