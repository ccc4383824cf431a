/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A build with --disable-bpf: no objects, and everything else says so. */
#include "cca/objects.h"

#include <errno.h>

bool pep_cca_objects_built(void)
{
	return false;
}

int pep_cca_object_get(enum pep_cca_kind kind, enum pep_cca_variant variant,
		       struct pep_cca_object *ret)
{
	(void)kind, (void)variant, (void)ret;
	return -ENOENT;
}

int pep_cca_object_flows(struct pep_cca_object *ret)
{
	(void)ret;
	return -ENOENT;
}
