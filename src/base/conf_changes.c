/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values are compared as they would be written, so that the schema alone decides what there is. */
#include "base/conf_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *text_of(const struct conf_key *key, const struct pep_conf *conf)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	conf_value_print(key, conf, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool is_plain(const struct conf_key *key)
{
	return strcmp(key->doc.section, "class") != 0 && strcmp(key->doc.section, "cca") != 0;
}

int pep_conf_diff(const struct pep_conf *before, const struct pep_conf *after, pep_conf_diff_fn *fn,
		  void *user)
{
	for (size_t i = 0; i < conf_n_keys; i++) {
		const struct conf_key *key = &conf_keys[i];
		char *a, *b, name[96];

		if (!is_plain(key))
			continue;
		a = text_of(key, before);
		b = text_of(key, after);
		if (!a || !b) {
			free(a);
			free(b);
			return -ENOMEM;
		}
		snprintf(name, sizeof(name), "%s%s%s", key->doc.section,
			 key->doc.section[0] ? " " : "", key->doc.key);
		if (strcmp(a, b) != 0)
			fn(name, a, b, key->restart, user);
		free(a);
		free(b);
	}
	if (before->n_classes != after->n_classes ||
	    memcmp(before->classes, after->classes,
		   before->n_classes * sizeof(before->classes[0])) != 0)
		fn("class", "", "", false, user);
	if (before->n_cca_params != after->n_cca_params ||
	    memcmp(before->cca_params, after->cca_params,
		   before->n_cca_params * sizeof(before->cca_params[0])) != 0)
		fn("cca", "", "", true, user);
	return 0;
}
