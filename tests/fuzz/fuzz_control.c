/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any line at the control socket: refused, or words that are printable, not empty and in order. */
#include "proxy/control.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct pep_control_command commands[] = {
	{"status", "", 0, 0, NULL},
	{"flows", "", 0, 0, NULL},
	{"flows kill", "ID", 1, 1, NULL},
	{"bypass", "on|off", 1, 1, NULL},
	{.name = NULL},
};

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pep_control_command *command;
	char *words[PEP_CONTROL_MAX_WORDS];
	char *line = malloc(size + 1);
	int n, used = -1;

	if (!line)
		abort();
	memcpy(line, data, size);
	line[size] = '\0';
	n = pep_control_split(line, words);
	require(n <= PEP_CONTROL_MAX_WORDS, "too many words");
	for (int i = 0; i < n; i++) {
		require(words[i][0] != '\0', "an empty word");
		require(words[i] >= line && words[i] + strlen(words[i]) <= line + size,
			"a word outside of the line");
		require(i == 0 || words[i] > words[i - 1], "words out of order");
		for (const char *c = words[i]; *c; c++)
			require(*c > ' ' && *c <= '~', "a character that is not printable");
	}
	if (n > 0) {
		command = pep_control_find(commands, n, words, &used);
		require(!command || (used >= 1 && used <= n), "a name longer than the request");
		require(!command || strncmp(command->name, words[0], strlen(words[0])) == 0,
			"another command");
	}
	free(line);
	return 0;
}
