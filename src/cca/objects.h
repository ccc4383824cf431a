/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_OBJECTS_H
#define PEP_CCA_OBJECTS_H

/* The BPF objects that are part of the program. */

#include <stddef.h>

#include "cca/flow_state.h"

/** What differs between kernels in tcp_congestion_ops; a kernel takes exactly one of them. */
enum pep_cca_variant {
	PEP_CCA_VARIANT_2,  /* cong_control has two arguments (6.0 - 6.9) */
	PEP_CCA_VARIANT_4,  /* four arguments (6.10 and later) */
	PEP_CCA_VARIANT_4T, /* four arguments and cwnd_event_tx_start (7.1 and later) */
	PEP_CCA_VARIANT_COUNT_,
};

struct pep_cca_object {
	const void *elf;
	size_t size;
};

/** Whether this build holds BPF objects at all. */
bool pep_cca_objects_built(void);

/** The object of @kind for kernels of @variant. Returns 0 or -ENOENT. */
int pep_cca_object_get(enum pep_cca_kind kind, enum pep_cca_variant variant,
		       struct pep_cca_object *ret);

/** The object of the iterator over all connections. Returns 0 or -ENOENT. */
int pep_cca_object_flows(struct pep_cca_object *ret);

/** "2", "4", "4t". */
const char *pep_cca_variant_name(enum pep_cca_variant variant);

#endif
