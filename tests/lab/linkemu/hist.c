/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hist.h"

#define SUB (1u << PEP_HIST_SUB_BITS)

/* Values below SUB have a slot each; above, the slot is (exponent, the SUB_BITS after the top bit).
 */
static unsigned int slot_of(uint64_t value)
{
	unsigned int exponent;

	if (value < SUB)
		return (unsigned int)value;
	exponent = 63u - (unsigned int)__builtin_clzll(value) - PEP_HIST_SUB_BITS;
	return ((exponent + 1) << PEP_HIST_SUB_BITS) + (unsigned int)((value >> exponent) - SUB);
}

/* The largest value of a slot. */
static uint64_t slot_top(unsigned int slot)
{
	unsigned int exponent;

	if (slot < SUB)
		return slot;
	exponent = (slot >> PEP_HIST_SUB_BITS) - 1;
	return ((uint64_t)(SUB + (slot & (SUB - 1)) + 1) << exponent) - 1;
}

void pep_hist_add(struct pep_hist *hist, uint64_t value)
{
	hist->slots[slot_of(value)]++;
	hist->count++;
	hist->sum += value;
	if (value > hist->max)
		hist->max = value;
}

uint64_t pep_hist_quantile(const struct pep_hist *hist, double q)
{
	uint64_t want = (uint64_t)(q * (double)hist->count);
	uint64_t seen = 0;
	unsigned int i;

	if (want >= hist->count)
		return hist->max;
	for (i = 0; i < PEP_HIST_SLOTS; i++) {
		seen += hist->slots[i];
		if (seen > want)
			return slot_top(i) < hist->max ? slot_top(i) : hist->max;
	}
	return hist->max;
}
