/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_LOG_H
#define PEP_BASE_LOG_H

/*
 * Logging to stderr, one line per event, key=value at the end. Under systemd each line carries its
 * priority. Library code does not log; the layer that decides does, once, and counts.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum pep_log_level {
	PEP_LOG_LEVEL_ERROR,   /* service impaired, act */
	PEP_LOG_LEVEL_WARNING, /* one flow or one feature impaired */
	PEP_LOG_LEVEL_NOTICE,  /* a change of state an operator wants to see */
	PEP_LOG_LEVEL_INFO,
	PEP_LOG_LEVEL_DEBUG,
	PEP_LOG_LEVEL_COUNT_,
};

/** Sets the program's name and the highest level printed. Call before threads start. */
void pep_log_init(const char *program, enum pep_log_level max);

/** Changes the highest level printed; any thread. */
void pep_log_set_level(enum pep_log_level max);
bool pep_log_enabled(enum pep_log_level level);

const char *pep_log_level_name(enum pep_log_level level);

/** Reads "error".."debug"; returns 0 or -EINVAL. */
int pep_log_level_parse(const char *text, enum pep_log_level *ret);

/** Prints one line; longer than 1 KiB is cut. Any thread. */
void pep_log(enum pep_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define pep_error(...)   pep_log(PEP_LOG_LEVEL_ERROR, __VA_ARGS__)
#define pep_warning(...) pep_log(PEP_LOG_LEVEL_WARNING, __VA_ARGS__)
#define pep_notice(...)  pep_log(PEP_LOG_LEVEL_NOTICE, __VA_ARGS__)
#define pep_info(...)    pep_log(PEP_LOG_LEVEL_INFO, __VA_ARGS__)
#define pep_debug(...)   pep_log(PEP_LOG_LEVEL_DEBUG, __VA_ARGS__)

/** How many lines of @level were asked for since the start, printed or not. */
uint64_t pep_log_count(enum pep_log_level level);

/** State of one repeated message: at most one line in @interval_ms, the others counted. */
struct pep_log_limit {
	uint64_t next_ms;
	uint32_t suppressed;
};

/**
 * True when the caller may print now; *@ret_suppressed then says how many lines were swallowed
 * since the last one. Not shared between threads.
 */
bool pep_log_limit_ok(struct pep_log_limit *limit, uint64_t now_ms, uint32_t interval_ms,
		      uint32_t *ret_suppressed);

#endif
