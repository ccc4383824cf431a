/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_BELIEFS_H
#define PEP_PROXY_BELIEFS_H

/*
 * What our congestion controls believe of a leg, for its flow record. The controls are loaded by
 * another program, before us, after us or never; without them there is nothing to read.
 */

#include "base/stats.h"

struct pep_beliefs;

/** Looks for the controls' state at once. Returns 0 or -ENOMEM. */
int pep_beliefs_new(struct pep_beliefs **ret);
void pep_beliefs_free(struct pep_beliefs *beliefs); /* NULL is a no-op */

/** Looks again, if nothing was found so far. Main thread. */
void pep_beliefs_refresh(struct pep_beliefs *beliefs);

/** Reads what the control of @fd believes. Returns 0, or a negative errno; any thread. */
int pep_beliefs_read(const struct pep_beliefs *beliefs, int fd, struct pep_stats_belief *ret);

#endif
