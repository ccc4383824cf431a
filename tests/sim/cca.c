/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cca.h"
#include "cca_core.h"
#include "cca_loss.h"

#include <string.h>

static const struct sim_cca *const all[] = {
	&sim_cca_cubic, &sim_cca_reno,  &sim_cca_bbr, &sim_cca_bbr_acd,
	&sim_cca_bbr_a, &sim_cca_bbr_d, &sim_cca_bwe, &sim_cca_fixed,
};

const struct sim_cca *sim_cca_get(size_t i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

const struct sim_cca *sim_cca_find(const char *name)
{
	const struct sim_cca *cca;

	for (size_t i = 0; (cca = sim_cca_get(i)); i++) {
		if (!strcmp(cca->name, name))
			return cca;
	}
	return NULL;
}
