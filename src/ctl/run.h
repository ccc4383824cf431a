/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_RUN_H
#define PEP_CTL_RUN_H

/* Runs the host's own tools (iptables-restore, ip, iperf3): text in, text out, bounded in time. */

#include <stddef.h>

#define PEP_RUN_OUTPUT_MAX (64u << 20) /* more output than this ends the program */

struct pep_run {
	int status; /* exit status; 128 + signal when a signal ended it */
	char *out;  /* what it printed, NUL-terminated, never NULL */
	char *err;  /* the same for stderr */
};

/**
 * Runs @argv (NULL-terminated; found in PATH and the sbin folders) with @input on its stdin (NULL:
 * empty) and waits at most @timeout_s seconds for it.
 *
 * Returns 0 when it ended by itself, whatever its status, and stores the result in @ret (release it
 * with pep_run_fini); -ENOENT when there is no such program, -ETIMEDOUT, -E2BIG or another negative
 * errno, and leaves @ret untouched.
 */
int pep_run(const char *const argv[], const char *input, unsigned int timeout_s,
	    struct pep_run *ret);

void pep_run_fini(struct pep_run *run);

/** The first line of @text that is not empty, at most @size - 1 bytes of it. Returns @line. */
const char *pep_run_first_line(const char *text, char *line, size_t size);

#endif
