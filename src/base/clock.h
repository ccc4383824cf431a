/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_CLOCK_H
#define PEP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** What @clock shows, in ns. The clocks named in this project cannot fail. */
static inline uint64_t pep_clock_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** CLOCK_MONOTONIC in ns: what all times of the project are, unless their name says real. */
static inline uint64_t pep_clock_mono_ns(void)
{
	return pep_clock_ns(CLOCK_MONOTONIC);
}

#endif
