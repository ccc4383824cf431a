/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_LOAD_H
#define PEP_CCA_LOAD_H

/* Loads a control into the kernel. */

#include "cca/registry.h"

enum pep_cca_load_result {
	PEP_CCA_LOAD_NEW,  /* loaded */
	PEP_CCA_LOAD_SAME, /* the same program with the same parameters was there: nothing done */
	PEP_CCA_LOAD_REPLACED, /* was there with others, or of another version */
};

struct pep_cca_load_options {
	bool replace;        /* also when sockets use the old one; they keep it until they close */
	const char *pin_dir; /* for observers; NULL: none */
	int group;           /* whose members may observe; -1: root alone */
};

struct pep_cca_load_report {
	enum pep_cca_load_result result;
	uint32_t sockets;  /* that use what was there before */
	bool app_limited;  /* false: the kernel refused that store */
	int observe_error; /* 0, or why state cannot be observed without root: negative errno */
};

/**
 * Loads the control that @config describes.
 *
 * Returns 0; -EBUSY when it is loaded with other parameters, or of another version, and in use, and
 * ->replace is not set
 * (@ret->sockets says by how many); -EEXIST when one of that name is registered which we may not
 * inspect or did not make; -EPERM; -EOPNOTSUPP when this kernel cannot; or another negative errno
 * from the kernel. pep_cca_load_log has what libbpf and the verifier said. @ret is filled in every
 * case as far as it is known.
 */
int pep_cca_load(const struct pep_cca_host *host, const struct pep_cca_config *config,
		 const struct pep_cca_load_options *options, struct pep_cca_load_report *ret);

/** The end of what libbpf said since the program started; never NULL. */
const char *pep_cca_load_log(void);

/** Takes libbpf's messages off stderr, for pep_cca_load_log. Call once, before everything. */
void pep_cca_load_quiet(void);

#endif
