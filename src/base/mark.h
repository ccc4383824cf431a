/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_MARK_H
#define PEP_BASE_MARK_H

/*
 * The firewall mark field that the steering rules, the gate and our sockets share.
 *
 * Inside the configured mask (contiguous, at least PEP_MARK_BITS wide; bit 0 is the mask's lowest):
 *
 *   bits 0-5   worker number, for the kinds that belong to a worker
 *   bits 6-9   kind
 *   bit  10    divert: deliver to a local socket (ip rule -> table with the local route)
 *
 * Bits outside the mask belong to others and are kept.
 */

#include <stdint.h>

#define PEP_MARK_BITS        11
#define PEP_MARK_WORKER_MASK 0x3fu
#define PEP_MARK_KIND_SHIFT  6
#define PEP_MARK_KIND_MASK   0x3c0u
#define PEP_MARK_DIVERT      0x400u

enum pep_mark_kind {
	PEP_MARK_KIND_NONE,        /* not seen by the gate yet */
	PEP_MARK_KIND_BYPASS,      /* SYN: goes end to end */
	PEP_MARK_KIND_REFUSE,      /* SYN: answered with a reset */
	PEP_MARK_KIND_UNREACHABLE, /* SYN: answered with ICMP host unreachable */
	PEP_MARK_KIND_SPLIT,       /* SYN: to the listener of the worker in bits 0-5 */
	PEP_MARK_KIND_WIRED,       /* SO_MARK of wired-leg sockets, with their worker */
	PEP_MARK_KIND_WIRELESS,    /* SO_MARK of listeners and wireless-leg sockets */
};

static inline unsigned int pep_mark_shift(uint32_t mask)
{
	return mask ? (unsigned int)__builtin_ctz(mask) : 0;
}

/** The mark value, in place under @mask, of @kind for @worker. */
static inline uint32_t pep_mark_make(uint32_t mask, enum pep_mark_kind kind, unsigned int worker)
{
	uint32_t field = ((uint32_t)kind << PEP_MARK_KIND_SHIFT) | (worker & PEP_MARK_WORKER_MASK);

	return field << pep_mark_shift(mask);
}

/** @mark with our field set to @kind for @worker; the bits of others stay. */
static inline uint32_t pep_mark_set(uint32_t mark, uint32_t mask, enum pep_mark_kind kind,
				    unsigned int worker)
{
	return (mark & ~mask) | pep_mark_make(mask, kind, worker);
}

/** The mask that selects the kind alone, in place. */
static inline uint32_t pep_mark_kind_mask(uint32_t mask)
{
	return PEP_MARK_KIND_MASK << pep_mark_shift(mask);
}

/** The mask that selects kind and worker, in place. */
static inline uint32_t pep_mark_kind_worker_mask(uint32_t mask)
{
	return (PEP_MARK_KIND_MASK | PEP_MARK_WORKER_MASK) << pep_mark_shift(mask);
}

/** The divert bit, in place (value and mask at once). */
static inline uint32_t pep_mark_divert(uint32_t mask)
{
	return PEP_MARK_DIVERT << pep_mark_shift(mask);
}

static inline enum pep_mark_kind pep_mark_kind_of(uint32_t mask, uint32_t mark)
{
	uint32_t field = (mark & mask) >> pep_mark_shift(mask);

	return (enum pep_mark_kind)((field & PEP_MARK_KIND_MASK) >> PEP_MARK_KIND_SHIFT);
}

#endif
