/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_REGISTRY_H
#define PEP_CCA_REGISTRY_H

/*
 * What is registered with the kernel. A control stays registered when its loader ends, so there is
 * no state of ours to trust: everything is found again among the kernel's own objects, which takes
 * CAP_SYS_ADMIN.
 */

#include "cca/host.h"
#include "cca/params.h"

/** A control of ours that is registered now. */
struct pep_cca_loaded {
	enum pep_cca_kind kind;
	uint32_t map_id;   /* of its struct_ops map */
	uint32_t sockets;  /* using it, listening ones too */
	bool same_version; /* loaded by a program with our layout: ->config is valid */
	struct pep_cca_config config;
};

/**
 * Finds @kind among the registered controls. Returns 0, -ENOENT, or -EPERM when the kernel does not
 * let us look.
 */
int pep_cca_registry_find(const struct pep_cca_host *host, enum pep_cca_kind kind,
			  struct pep_cca_loaded *ret);

/**
 * Takes the control with struct_ops map @map_id out of the kernel's list. Sockets that use it keep
 * it until they close. Returns 0 or a negative errno.
 */
int pep_cca_registry_remove(uint32_t map_id);

/**
 * Finds the storage map that loaded controls keep their state in. Returns a file descriptor (the
 * caller's), -ENOENT or -EPERM.
 */
int pep_cca_registry_state_map(void);

/** Whether sockets of this host can select @name now; needs no privilege. */
bool pep_cca_registry_has_name(const char *name);

#endif
