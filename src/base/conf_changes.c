/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reload can take over and what it cannot. */
#include "base/conf_internal.h"

#include <string.h>

static bool field_differs(const struct conf_key *key, const void *a, const void *b)
{
	size_t size = key->size;

	if (conf_kind_is_list(key->kind)) {
		/* unused places of a list are zero, so that comparing all of them counts too */
		size *= key->capacity;
	}
	return memcmp((const char *)a + key->offset, (const char *)b + key->offset, size) != 0;
}

unsigned int pep_conf_restart_keys(const struct pep_conf *running, const struct pep_conf *wanted,
				   const struct pep_conf_key **ret, unsigned int size)
{
	unsigned int count = 0;

	for (size_t i = 0; i < conf_n_keys; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (!key->restart || !field_differs(key, running, wanted))
			continue;
		if (count < size)
			ret[count] = &key->doc;
		count++;
	}
	return count;
}
