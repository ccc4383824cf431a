/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every value here comes from the tables of the core; only the text is ours. */
#include "cca/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct pep_cca_info infos[PEP_CCA_KIND_COUNT_] = {
	[PEP_CCA_BBR] = {"pep_bbr", "bbr", "BBR version 1, as the kernel's, with parameters"},
	[PEP_CCA_BBR_ACD] = {"pep_bbr_acd", "bbr",
			     "BBR that halves its window when a loss comes with a standing queue"},
	[PEP_CCA_BBR_A] = {"pep_bbr_a", "bbr",
			   "the same, and then paces slower for a round; for radio"},
	[PEP_CCA_BBR_D] = {"pep_bbr_d", "bbr", "BBR that paces slower while a queue stands"},
	[PEP_CCA_BWE] = {"pep_bwe", "cubic",
			 "loss-based; a loss sets the window to bandwidth x least RTT"},
};

#define BBR_DEF(field_, key_, unit_, min_, max_, bbr_, acd_, a_, d_, help_) \
	{.key = (key_),                                                     \
	 .unit = (unit_),                                                   \
	 .help = (help_),                                                   \
	 .offset = offsetof(struct pep_cca_config, bbr.field_),             \
	 .min = (min_),                                                     \
	 .max = (max_),                                                     \
	 .defaults = {[PEP_CCA_BBR] = (bbr_),                               \
		      [PEP_CCA_BBR_ACD] = (acd_),                           \
		      [PEP_CCA_BBR_A] = (a_),                               \
		      [PEP_CCA_BBR_D] = (d_)}},
#define BWE_DEF(field_, key_, unit_, min_, max_, default_, help_) \
	{.key = (key_),                                           \
	 .unit = (unit_),                                         \
	 .help = (help_),                                         \
	 .offset = offsetof(struct pep_cca_config, bwe.field_),   \
	 .min = (min_),                                           \
	 .max = (max_),                                           \
	 .defaults = {[PEP_CCA_BWE] = (default_)}},

static const struct pep_cca_param_def bbr_defs[] = {PEP_BBR_PARAMS(BBR_DEF)};
static const struct pep_cca_param_def bwe_defs[] = {PEP_BWE_PARAMS(BWE_DEF)};

const struct pep_cca_info *pep_cca_info_get(enum pep_cca_kind kind)
{
	return kind < PEP_CCA_KIND_COUNT_ ? &infos[kind] : NULL;
}

int pep_cca_kind_parse(const char *name, enum pep_cca_kind *ret)
{
	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++) {
		if (strcmp(name, infos[i].name) == 0) {
			*ret = (enum pep_cca_kind)i;
			return 0;
		}
	}
	return -ENOENT;
}

const struct pep_cca_param_def *pep_cca_param_get(enum pep_cca_kind kind, size_t i)
{
	if (kind == PEP_CCA_BWE)
		return i < sizeof(bwe_defs) / sizeof(bwe_defs[0]) ? &bwe_defs[i] : NULL;
	if (kind >= PEP_CCA_KIND_COUNT_)
		return NULL;
	return i < sizeof(bbr_defs) / sizeof(bbr_defs[0]) ? &bbr_defs[i] : NULL;
}

void pep_cca_config_init(enum pep_cca_kind kind, struct pep_cca_config *ret)
{
	const struct pep_cca_param_def *def;

	memset(ret, 0, sizeof(*ret));
	ret->magic = PEP_CCA_MAGIC;
	ret->layout = PEP_CCA_LAYOUT;
	ret->kind = kind;
	for (size_t i = 0; (def = pep_cca_param_get(kind, i)); i++)
		memcpy((char *)ret + def->offset, &def->defaults[kind], sizeof(uint32_t));
}

/* The place of @value in the words of @unit, or -EINVAL. */
static int word_parse(const char *unit, const char *value, uint32_t *ret)
{
	size_t length = strlen(value), n;
	uint32_t i = 0;

	for (const char *word = unit;; word += n + 1, i++) {
		n = strcspn(word, "|");
		if (length && n == length && strncmp(word, value, n) == 0) {
			*ret = i;
			return 0;
		}
		if (!word[n])
			return -EINVAL;
	}
}

static int number_parse(const char *value, uint32_t min, uint32_t max, uint32_t *ret)
{
	unsigned long long number;
	char *end;

	if (value[0] < '0' || value[0] > '9') /* strtoull takes signs and spaces */
		return -EINVAL;
	errno = 0;
	number = strtoull(value, &end, 10);
	if (errno || *end || number < min || number > max)
		return -EINVAL;
	*ret = (uint32_t)number;
	return 0;
}

static const struct pep_cca_param_def *find_def(enum pep_cca_kind kind, const char *key)
{
	const struct pep_cca_param_def *def;

	for (size_t i = 0; (def = pep_cca_param_get(kind, i)); i++) {
		if (strcmp(def->key, key) == 0)
			return def;
	}
	return NULL;
}

int pep_cca_param_set(struct pep_cca_config *config, const char *key, const char *value,
		      char why[PEP_CCA_WHY_SIZE])
{
	enum pep_cca_kind kind = (enum pep_cca_kind)config->kind;
	const struct pep_cca_param_def *def = find_def(kind, key);
	uint32_t number;

	if (!def) {
		snprintf(why, PEP_CCA_WHY_SIZE,
			 "%s has no parameter \"%s\"; \"edgepep-cca params %s\" lists them",
			 infos[kind].name, key, infos[kind].name);
		return -ENOENT;
	}
	if (strchr(def->unit, '|')) {
		if (word_parse(def->unit, value, &number) == 0)
			goto set;
		snprintf(why, PEP_CCA_WHY_SIZE, "%s: %s = \"%s\": expected one of %s",
			 infos[kind].name, key, value, def->unit);
		return -EINVAL;
	}
	if (number_parse(value, def->min, def->max, &number) < 0) {
		snprintf(why, PEP_CCA_WHY_SIZE,
			 "%s: %s = \"%s\": expected a whole number from %u to %u (unit %s)",
			 infos[kind].name, key, value, def->min, def->max, def->unit);
		return -EINVAL;
	}
set:
	memcpy((char *)config + def->offset, &number, sizeof(number));
	return 0;
}

uint32_t pep_cca_param_value(const struct pep_cca_param_def *def,
			     const struct pep_cca_config *config)
{
	uint32_t value;

	memcpy(&value, (const char *)config + def->offset, sizeof(value));
	return value;
}

void pep_cca_param_format(const struct pep_cca_param_def *def, uint32_t value, char *text,
			  size_t size)
{
	const char *word = def->unit;

	if (!strchr(def->unit, '|')) {
		snprintf(text, size, "%u", value);
		return;
	}
	for (uint32_t i = 0; i < value && *word; i++) {
		word += strcspn(word, "|");
		word += *word == '|';
	}
	snprintf(text, size, "%.*s", (int)strcspn(word, "|"), word);
}

void pep_cca_params_print(enum pep_cca_kind kind, FILE *out)
{
	const struct pep_cca_param_def *def;
	char text[32], range[64];

	fprintf(out, "%s: %s\n", infos[kind].name, infos[kind].help);
	for (size_t i = 0; (def = pep_cca_param_get(kind, i)); i++) {
		pep_cca_param_format(def, def->defaults[kind], text, sizeof(text));
		if (strchr(def->unit, '|'))
			snprintf(range, sizeof(range), "%s", def->unit);
		else
			snprintf(range, sizeof(range), "%u..%u %s", def->min, def->max, def->unit);
		fprintf(out, "  %-20s %-28s default %-9s %s\n", def->key, range, text, def->help);
	}
}
