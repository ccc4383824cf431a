/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_POLICY_H
#define PEP_PROXY_POLICY_H

/*
 * A configuration as one worker applies it: a copy of the file's values with every congestion
 * control resolved to one the kernel has, and the stats slots of its names. Counted, since flows
 * that are being set up outlive a reload. One thread only.
 */

#include "base/conf.h"
#include "proxy/leg.h"

struct pep_stats;

/** What one class means for a flow. */
struct pep_policy_class {
	bool bypass;
	enum pep_accept accept;
	unsigned int stats_slot;
	struct pep_leg_setup leg[PEP_SEGMENT_COUNT_];
	unsigned int asked_cca_slot[PEP_SEGMENT_COUNT_]; /* for counting fallbacks */
};

struct pep_policy {
	unsigned int references;
	struct pep_conf conf;
	/* conf.n_classes entries, then the one for flows of no class. */
	struct pep_policy_class classes[PEP_CONF_MAX_CLASSES + 1];
};

/** Returns 0 or -ENOMEM; @conf is copied. The caller has the first reference. */
int pep_policy_new(const struct pep_conf *conf, struct pep_stats *stats, struct pep_policy **ret);
struct pep_policy *pep_policy_ref(struct pep_policy *policy);
void pep_policy_unref(struct pep_policy *policy); /* NULL is a no-op */

/** The class of flows that no class names. */
static inline const struct pep_policy_class *pep_policy_default(const struct pep_policy *policy)
{
	return &policy->classes[policy->conf.n_classes];
}

#endif
