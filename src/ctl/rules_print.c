/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What "rules up" would do on a host without rules of ours, for people to read and tools to load.
 */
#include "ctl/rules.h"

#include <errno.h>
#include <stdlib.h>

/* The text that "up" would load for @family on a host without rules of ours. */
static char *make_rules(const struct pep_conf *conf, enum rules_family family,
			const struct rules_text_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	rules_text_up(out, conf, family, options);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void print_ip_rule(FILE *out, const struct rules_ip_rule *rule)
{
	fprintf(out, "ip %s rule add fwmark 0x%x/0x%x lookup %u priority %u iif %s\n",
		rule->family == RULES_FAMILY_IPV4 ? "-4" : "-6", rule->mark, rule->mark,
		rule->table, rule->priority, rule->iif);
}

/* What is not iptables, as commands that a shell would take. */
static void write_commands(FILE *out, const struct pep_conf *conf, bool sets)
{
	struct rules_ip_rule rules[RULES_MAX_ROUTE_RULES];
	size_t n = 0;

	for (size_t i = 0; rules_sysctls[i].name; i++)
		fprintf(out, "# %s\nsysctl -w %s=%s\n", rules_sysctls[i].why, rules_sysctls[i].name,
			rules_sysctls[i].value);
	if (sets)
		fprintf(out,
			"# direct flows whose addresses a TIME_WAIT socket of ours still holds\n");
	for (int f = 0; sets && f < RULES_FAMILY_COUNT_; f++)
		fprintf(out,
			"ipset create %s hash:ip,port,ip family %s timeout 65 maxelem 262144\n",
			rules_set_name((enum rules_family)f),
			f == RULES_FAMILY_IPV4 ? "inet" : "inet6");
	fprintf(out,
		"# packets with the divert bit go to a local socket, whatever their address\n");
	for (int f = 0; f < RULES_FAMILY_COUNT_; f++) {
		rules_route_wanted(conf, (enum rules_family)f, rules, &n);
		fprintf(out, "ip %s route add local default dev lo table %u\n",
			f == RULES_FAMILY_IPV4 ? "-4" : "-6", conf->steering.table);
	}
	for (size_t i = 0; i < n; i++)
		print_ip_rule(out, &rules[i]);
}

static char *make_commands(const struct pep_conf *conf, bool sets)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	write_commands(out, conf, sets);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

int rules_print_make(const struct pep_conf *conf, const struct rules_text_options *options,
		     struct rules_print *ret)
{
	struct rules_print print = {.commands = make_commands(conf, options->sets)};
	bool good = print.commands != NULL;

	for (int f = 0; f < RULES_FAMILY_COUNT_; f++) {
		print.rules[f] = make_rules(conf, (enum rules_family)f, options);
		good = good && print.rules[f];
	}
	if (!good) {
		rules_print_fini(&print);
		return -ENOMEM;
	}
	*ret = print;
	return 0;
}

void rules_print_write(const struct rules_print *print, FILE *out)
{
	fprintf(out, "%s\n# iptables-restore --noflush\n%s\n# ip6tables-restore --noflush\n%s",
		print->commands, print->rules[RULES_FAMILY_IPV4], print->rules[RULES_FAMILY_IPV6]);
}

void rules_print_fini(struct rules_print *print)
{
	free(print->commands);
	for (int f = 0; f < RULES_FAMILY_COUNT_; f++)
		free(print->rules[f]);
	*print = (struct rules_print){0};
}
