/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A line is composed in one buffer and leaves in one write(2), so threads never mix lines; control
 * characters become '?', so that it stays one line.
 */
#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

static const char *const level_names[PEP_LOG_LEVEL_COUNT_] = {
	"error", "warning", "notice", "info", "debug",
};

/* syslog(3) priorities, as the journal reads them from "<N>". */
static const char level_priority[PEP_LOG_LEVEL_COUNT_] = {'3', '4', '5', '6', '7'};

static const char *log_program = "edgepep";
static bool log_priorities;
static _Atomic int log_max = PEP_LOG_LEVEL_NOTICE;
static _Atomic uint64_t log_counts[PEP_LOG_LEVEL_COUNT_];

void pep_log_init(const char *program, enum pep_log_level max)
{
	log_program = program;
	log_priorities = getenv("JOURNAL_STREAM") != NULL;
	atomic_store(&log_max, (int)max);
}

void pep_log_set_level(enum pep_log_level max)
{
	atomic_store(&log_max, (int)max);
}

bool pep_log_enabled(enum pep_log_level level)
{
	return (int)level <= atomic_load_explicit(&log_max, memory_order_relaxed);
}

const char *pep_log_level_name(enum pep_log_level level)
{
	return level < PEP_LOG_LEVEL_COUNT_ ? level_names[level] : "?";
}

int pep_log_level_parse(const char *text, enum pep_log_level *ret)
{
	for (int i = 0; i < PEP_LOG_LEVEL_COUNT_; i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*ret = (enum pep_log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

void pep_log(enum pep_log_level level, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;
	int head, body;
	size_t length;
	ssize_t written;

	atomic_fetch_add_explicit(&log_counts[level], 1, memory_order_relaxed);
	if (!pep_log_enabled(level))
		return;

	if (log_priorities)
		head = snprintf(line, sizeof(line), "<%c>%s: ", level_priority[level],
				level_names[level]);
	else
		head = snprintf(line, sizeof(line), "%s: %s: ", log_program, level_names[level]);

	va_start(args, format);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, format, args);
	va_end(args);
	if (body < 0)
		return;

	length = (size_t)head + (size_t)body;
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	/* names and addresses come from outside: none of them begins a line of its own */
	for (size_t i = (size_t)head; i < length; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
	line[length++] = '\n';
	do
		written = write(STDERR_FILENO, line, length);
	while (written < 0 && errno == EINTR);
}

uint64_t pep_log_count(enum pep_log_level level)
{
	return atomic_load_explicit(&log_counts[level], memory_order_relaxed);
}

bool pep_log_limit_ok(struct pep_log_limit *limit, uint64_t now_ms, uint32_t interval_ms,
		      uint32_t *ret_suppressed)
{
	if (now_ms < limit->next_ms) {
		limit->suppressed++;
		return false;
	}
	limit->next_ms = now_ms + interval_ms;
	*ret_suppressed = limit->suppressed;
	limit->suppressed = 0;
	return true;
}
