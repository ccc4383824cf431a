/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a configuration: refused with at least one well-formed line, or taken, and then its
 * dump must read back to the same.
 */
#include "base/conf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what, const char *text)
{
	if (holds)
		return;
	fprintf(stderr, "%s:\n%s\n", what, text);
	abort();
}

static FILE *memory_open(char **text, size_t *length)
{
	FILE *out = open_memstream(text, length);

	if (!out)
		abort();
	return out;
}

static void check_errors(const char *errors)
{
	require(errors[0] != '\0', "refused without a word", errors);
	for (const char *line = errors; *line; line = strchr(line, '\n') + 1) {
		require(strncmp(line, "fuzz.conf:", 10) == 0, "a line without its file", line);
		for (const char *at = line; *at != '\n'; at++)
			require((unsigned char)*at >= ' ' && *at != 0x7f, "a control character",
				line);
	}
}

static void check_dump(const struct pep_conf *conf)
{
	struct pep_conf *again = NULL;
	char *text = NULL;
	size_t length;
	FILE *out = memory_open(&text, &length);

	pep_conf_dump(conf, out);
	fclose(out);
	require(pep_conf_parse("fuzz.conf", text, length, stderr, &again) == 0, "a dump is refused",
		text);
	require(memcmp(conf, again, sizeof(*conf)) == 0, "a dump reads back differently", text);
	pep_conf_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pep_conf *conf = NULL;
	char *errors = NULL;
	size_t length;
	FILE *out = memory_open(&errors, &length);
	int err = pep_conf_parse("fuzz.conf", (const char *)data, size, out, &conf);

	fclose(out);
	if (err) {
		require(conf == NULL, "refused, and yet a result", errors);
		check_errors(errors);
	} else {
		require(errors[0] == '\0', "taken, and yet a complaint", errors);
		check_dump(conf);
	}
	pep_conf_free(conf);
	free(errors);
	return 0;
}
