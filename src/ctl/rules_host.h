/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_RULES_HOST_H
#define PEP_CTL_RULES_HOST_H

/* The host as rules_up.c and rules_down.c use it: each call says in report->error what went wrong.
 */

#include "ctl/rules.h"

#define rules_fail(report, ...) \
	((void)snprintf((report)->error, sizeof((report)->error), __VA_ARGS__))

void rules_warn(struct rules_report *report, const char *text);

/** Reads what is loaded now; release with rules_save_fini. */
int rules_host_save(enum rules_family family, struct rules_save *ret, struct rules_report *report);

/** Gives @input to iptables-restore; @test: checks it only. Empty input is a no-op. */
int rules_host_restore(enum rules_family family, const char *input, bool test,
		       struct rules_report *report);

/** Locks run_dir (made when missing) against a second edgepepctl; the descriptor holds the lock. */
int rules_host_lock(const char *run_dir, struct rules_report *report);

/** Reads the state file; a missing one leaves @state alone, a damaged one too, with a warning. */
void rules_host_state(const char *run_dir, struct rules_state *state, struct rules_report *report);

/** Puts back all that @state and the host's tables show; goes on after a failure. */
int rules_host_clear(const struct rules_state *state, struct rules_report *report);

#endif
