/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/policy.h"

#include "base/stats.h"

#include <errno.h>
#include <stdlib.h>

static void resolve_class(struct pep_policy_class *class, const struct pep_leg_conf *legs,
			  struct pep_stats *stats, const char *name)
{
	class->stats_slot = pep_stats_class(stats, name);
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		(void)pep_leg_setup_resolve(&legs[s], &class->leg[s]);
		class->asked_cca_slot[s] =
			legs[s].congestion_control[0]
				? pep_stats_cca(stats, legs[s].congestion_control)
				: 0;
	}
}

int pep_policy_new(const struct pep_conf *conf, struct pep_stats *stats, struct pep_policy **ret)
{
	struct pep_policy *policy = calloc(1, sizeof(*policy));
	struct pep_policy_class *other;

	if (!policy)
		return -ENOMEM;
	policy->references = 1;
	policy->conf = *conf;
	for (unsigned int i = 0; i < conf->n_classes; i++) {
		const struct pep_class_conf *c = &conf->classes[i];

		policy->classes[i].bypass = c->bypass;
		policy->classes[i].accept = c->accept;
		resolve_class(&policy->classes[i], c->leg, stats, c->name);
	}
	other = &policy->classes[conf->n_classes];
	other->accept = conf->accept;
	resolve_class(other, conf->leg, stats, "default");
	*ret = policy;
	return 0;
}

struct pep_policy *pep_policy_ref(struct pep_policy *policy)
{
	policy->references++;
	return policy;
}

void pep_policy_unref(struct pep_policy *policy)
{
	if (policy && --policy->references == 0)
		free(policy);
}
