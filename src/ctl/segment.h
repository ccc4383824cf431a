/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_SEGMENT_H
#define PEP_CTL_SEGMENT_H

/* The stats segment as sub-commands use it. */

#include "base/stats_read.h"
#include "ctl/ctl.h"

struct segment {
	struct pep_stats_reader *reader;
	struct pep_stats_info info;
	uint64_t now_real_ns, now_mono_ns;
	char path[160];
};

/** Opens it and reads the header. Returns 0, or the exit code after saying why not. */
int segment_open(const struct ctl *ctl, struct segment *ret);

/** The same without a word: 0 or a negative errno. For programs that try again. */
int segment_try(const char *path, struct segment *ret);

/** Reads header and clocks again. */
void segment_refresh(struct segment *segment);
void segment_close(struct segment *segment);

/** Prints the plain members of @object, a line each. */
void segment_print_values(const json_t *object);

/** Prints two objects with the same members side by side. */
void segment_print_pair(const json_t *left, const json_t *right);

#endif
