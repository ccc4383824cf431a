/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes every key, set or not, in the order of the schema: what is in effect, nothing hidden. */
#include "base/conf_internal.h"

#include <string.h>

static void dump_section(const char *section, const void *base, FILE *out)
{
	for (size_t i = 0; i < conf_n_keys; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (strcmp(key->doc.section, section) != 0)
			continue;
		fprintf(out, "%s%s = ", section[0] ? "\t" : "", key->doc.key);
		conf_value_print(key, base, out);
		fputc('\n', out);
	}
}

/* Each congestion control once, at its first parameter. */
static void dump_params(const struct pep_conf *conf, FILE *out)
{
	const struct conf_key *key = conf_key_find("cca", "param");

	for (unsigned int i = 0; i < conf->n_cca_params; i++) {
		const char *cca = conf->cca_params[i].cca;
		bool again = false;

		for (unsigned int j = 0; j < i; j++)
			again = again || strcmp(conf->cca_params[j].cca, cca) == 0;
		if (again)
			continue;
		fprintf(out, "cca \"%s\" {\n\tparam = {", cca);
		for (unsigned int j = i; j < conf->n_cca_params; j++) {
			if (strcmp(conf->cca_params[j].cca, cca) != 0)
				continue;
			fputs(j > i ? ", " : "", out);
			conf_value_print(key, &conf->cca_params[j], out);
		}
		fputs("}\n}\n", out);
	}
}

void pep_conf_dump(const struct pep_conf *conf, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < conf_n_keys; i++) {
		const char *next = conf_keys[i].doc.section;

		if (i > 0 && strcmp(next, section) == 0)
			continue;
		section = next;
		if (strcmp(section, "class") == 0 || strcmp(section, "cca") == 0)
			continue;
		if (section[0] == '\0') {
			dump_section(section, conf, out);
			continue;
		}
		fprintf(out, "%s {\n", section);
		dump_section(section, conf, out);
		fputs("}\n", out);
	}
	for (unsigned int i = 0; i < conf->n_classes; i++) {
		fprintf(out, "class \"%s\" {\n", conf->classes[i].name);
		dump_section("class", &conf->classes[i], out);
		fputs("}\n", out);
	}
	dump_params(conf, out);
}
