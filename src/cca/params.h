/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_PARAMS_H
#define PEP_CCA_PARAMS_H

/*
 * The controls by name, and their parameters as text. Both come from the tables in core/,
 * which are the only place where a parameter exists.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cca/flow_state.h"

#define PEP_CCA_WHY_SIZE 256 /* of a message that says what is wrong */

/** One parameter of a family. A unit with '|' lists words; the value is a word's place in it. */
struct pep_cca_param_def {
	const char *key;
	const char *unit;
	const char *help;
	size_t offset; /* of the uint32_t in struct pep_cca_config */
	uint32_t min, max;
	uint32_t defaults[PEP_CCA_KIND_COUNT_]; /* of the controls that have it */
};

struct pep_cca_info {
	const char *name;     /* as in TCP_CONGESTION */
	const char *fallback; /* the kernel's control that comes nearest */
	const char *help;
};

/** What there is to say of @kind; NULL past the last. */
const struct pep_cca_info *pep_cca_info_get(enum pep_cca_kind kind);

/** Finds a control by @name. Returns 0 or -ENOENT. */
int pep_cca_kind_parse(const char *name, enum pep_cca_kind *ret);

/** Parameter number @i of @kind; NULL past the last. */
const struct pep_cca_param_def *pep_cca_param_get(enum pep_cca_kind kind, size_t i);

/** The configuration a control of @kind has when nothing is set. */
void pep_cca_config_init(enum pep_cca_kind kind, struct pep_cca_config *ret);

/**
 * Sets parameter @key of @config to what @value says. Returns 0; -ENOENT when @config's control has
 * no such parameter, or -EINVAL when the value is none or out of range: @why then says what was
 * expected.
 */
int pep_cca_param_set(struct pep_cca_config *config, const char *key, const char *value,
		      char why[PEP_CCA_WHY_SIZE]);

/** The value of @def in @config. */
uint32_t pep_cca_param_value(const struct pep_cca_param_def *def,
			     const struct pep_cca_config *config);

/** Writes @value as it would be set, into @text. */
void pep_cca_param_format(const struct pep_cca_param_def *def, uint32_t value, char *text,
			  size_t size);

/** Prints every parameter of @kind: key, unit, range, default and meaning. */
void pep_cca_params_print(enum pep_cca_kind kind, FILE *out);

#endif
