/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only lines that name our chains are kept; everybody else's rules are looked at, never touched. */
#include "config.h"

#include "ctl/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *rules_family_name(enum rules_family family)
{
	return family == RULES_FAMILY_IPV4 ? "ipv4" : "ipv6";
}

const char *rules_family_tool(enum rules_family family)
{
	return family == RULES_FAMILY_IPV4 ? "iptables" : "ip6tables";
}

const char *rules_set_name(enum rules_family family)
{
	return family == RULES_FAMILY_IPV4 ? "edgepep-direct4" : "edgepep-direct6";
}

static const char *const table_names[RULES_TABLE_COUNT_] = {"raw", "mangle", "filter"};

const char *rules_table_name(enum rules_table table)
{
	return table_names[table];
}

bool rules_table_parse(const char *name, enum rules_table *ret)
{
	for (int i = 0; i < RULES_TABLE_COUNT_; i++) {
		if (strcmp(name, table_names[i]) == 0) {
			*ret = (enum rules_table)i;
			return true;
		}
	}
	return false;
}

static int append(struct rules_save_line **lines, size_t *n, enum rules_table table,
		  const char *text, size_t len)
{
	struct rules_save_line *grown = realloc(*lines, (*n + 1) * sizeof(**lines));

	if (!grown)
		return -ENOMEM;
	*lines = grown;
	grown[*n].table = table;
	grown[*n].text = strndup(text, len);
	if (!grown[*n].text)
		return -ENOMEM;
	(*n)++;
	return 0;
}

static bool is_ours(const char *chain)
{
	return strncmp(chain, RULES_CHAIN_PREFIX, strlen(RULES_CHAIN_PREFIX)) == 0;
}

/* ":PREROUTING ACCEPT [0:0]" or ":EDGEPEP-GATE - [0:0]" */
static int parse_chain(struct rules_save *save, enum rules_table table, const char *line)
{
	size_t len = strcspn(line, " \n");

	if (strncmp(line + len, " ACCEPT", 7) != 0)
		save->empty[table] = false;
	if (!is_ours(line))
		return 0;
	return append(&save->chains, &save->n_chains, table, line, len);
}

/* "PREROUTING -i radio0 -j EDGEPEP-GATE" */
static int parse_rule(struct rules_save *save, enum rules_table table, const char *line)
{
	size_t len = strcspn(line, "\n");
	const char *target =
		memmem(line, len, " -j " RULES_CHAIN_PREFIX, strlen(" -j " RULES_CHAIN_PREFIX));

	if (!target)
		target = memmem(line, len, " -g " RULES_CHAIN_PREFIX,
				strlen(" -g " RULES_CHAIN_PREFIX));
	save->empty[table] = false;
	/* A target ends its rule, except for a comment that quotes one. */
	if (!target || is_ours(line) || memchr(target + 4, ' ', len - (size_t)(target + 4 - line)))
		return 0;
	return append(&save->jumps, &save->n_jumps, table, line, len);
}

int rules_save_parse(const char *text, struct rules_save *ret)
{
	enum rules_table table = RULES_TABLE_COUNT_;
	struct rules_save save = {0};
	bool in_nat = false;
	int err = 0;

	for (const char *line = text; *line && !err;) {
		const char *end = strchrnul(line, '\n');

		if (*line == '*') {
			char name[16] = "";

			memcpy(name, line + 1,
			       (size_t)(end - line - 1) < sizeof(name) ? (size_t)(end - line - 1)
								       : sizeof(name) - 1);
			in_nat = strcmp(name, "nat") == 0;
			if (rules_table_parse(name, &table))
				save.present[table] = save.empty[table] = true;
			else
				table = RULES_TABLE_COUNT_;
		} else if (table != RULES_TABLE_COUNT_ && *line == ':') {
			err = parse_chain(&save, table, line + 1);
		} else if (table != RULES_TABLE_COUNT_ && strncmp(line, "-A ", 3) == 0) {
			err = parse_rule(&save, table, line + 3);
		} else if (in_nat && strncmp(line, "-A ", 3) == 0) {
			save.nat = true;
		}
		line = *end ? end + 1 : end;
	}
	if (err) {
		rules_save_fini(&save);
		return err;
	}
	*ret = save;
	return 0;
}

static void free_lines(struct rules_save_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(lines[i].text);
	free(lines);
}

void rules_save_fini(struct rules_save *save)
{
	free_lines(save->jumps, save->n_jumps);
	free_lines(save->chains, save->n_chains);
	*save = (struct rules_save){0};
}
