/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_UNITS_H
#define PEP_BASE_UNITS_H

/*
 * Numbers with units, as people write and read them. This is the only place that knows units.
 *
 * Every parser takes the whole text or nothing (no blanks inside), accepts decimal fractions where
 * the result is a whole number, and returns
 *   0         and stores the number in @ret,
 *   -ENODATA  when the unit is missing (a bare 0 too),
 *   -ERANGE   when the number does not fit 64 bits,
 *   -EINVAL   for anything else.
 */

#include <stddef.h>
#include <stdint.h>

#define PEP_UNITS_TEXT_SIZE 32 /* enough for every pep_units_format_*() */

/** B, kB, KiB, MB, MiB, GB, GiB, TB, TiB -> bytes. */
int pep_units_parse_size(const char *text, uint64_t *ret_bytes);

/** ms, s, min, h -> milliseconds. */
int pep_units_parse_time(const char *text, uint64_t *ret_ms);

/** bit/s, kbit/s, Mbit/s, Gbit/s -> bits per second. */
int pep_units_parse_rate(const char *text, uint64_t *ret_bps);

/** % -> whole percent. */
int pep_units_parse_percent(const char *text, uint64_t *ret_percent);

/** A plain decimal count, no sign, no unit. Never returns -ENODATA. */
int pep_units_parse_count(const char *text, uint64_t *ret);

/*
 * For files: the shortest text that reads back to exactly the same number, "256KiB", "5min",
 * "150%". They return @buffer.
 */
const char *pep_units_exact_size(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t bytes);
const char *pep_units_exact_time(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t ms);
const char *pep_units_exact_percent(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t percent);
const char *pep_units_exact_count(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t count);

/*
 * For eyes: about three significant digits, "1.25 MiB", "93.4 Mbit/s", "12.3 ms", "1 h 05 min".
 * They return @buffer.
 */
const char *pep_units_format_bytes(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t bytes);
const char *pep_units_format_rate(char buffer[PEP_UNITS_TEXT_SIZE], double bits_per_second);
const char *pep_units_format_time(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t us);

#endif
