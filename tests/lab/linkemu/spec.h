/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_SPEC_H
#define PEP_LINKEMU_SPEC_H

/* The text of --link and of the commands on standard input. */

#include <stdio.h>

#include "link.h"

/**
 * Reads "queue=1,rate=500Mbit,..." into @ret (free its trace with pep_trace_fini). What is wrong
 * goes to @errors as one line. Returns 0 or -EINVAL (or what a trace file gave), @ret untouched.
 */
int pep_spec_link(const char *text, FILE *errors, struct pep_link_conf *ret);

/** Reads "rate 500Mbit", "loss 1%", "delay 5ms", "block" or "unblock". Returns 0 or -EINVAL. */
int pep_spec_change(const char *text, struct pep_link_change *ret);

/** The keys and what they mean, for --help. */
void pep_spec_help(FILE *out);

#endif
