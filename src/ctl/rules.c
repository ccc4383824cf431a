/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl rules up|down|print */
#include "ctl/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"

static const struct pep_usage_option options[] = {CTL_OPTIONS, {0}};

static const struct pep_usage usage = {
	"edgepepctl rules",
	"[OPTION...] up|down|print",
	"Loads (up), removes (down) or shows (print) the rules that steer TCP connections of the\n"
	"wireless interfaces through edgepepd. Both up and down are safe to repeat.",
	options,
	NULL,
	false,
};

/* The text that "up" would load for @family on a host without rules of ours. */
static char *rules_text(const struct pep_conf *conf, enum rules_family family)
{
	const struct rules_text_options text_options = {.sets = true};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	rules_text_up(out, conf, family, &text_options);
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
static void write_commands(FILE *out, const struct pep_conf *conf)
{
	struct rules_ip_rule rules[RULES_MAX_ROUTE_RULES];
	size_t n = 0;

	for (size_t i = 0; rules_sysctls[i].name; i++)
		fprintf(out, "# %s\nsysctl -w %s=%s\n", rules_sysctls[i].why, rules_sysctls[i].name,
			rules_sysctls[i].value);
	fprintf(out, "# direct flows whose addresses a TIME_WAIT socket of ours still holds\n");
	for (int f = 0; f < RULES_FAMILY_COUNT_; f++)
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

static int print_rules(struct ctl *ctl, const struct pep_conf *conf)
{
	char *text[RULES_FAMILY_COUNT_] = {rules_text(conf, RULES_FAMILY_IPV4),
					   rules_text(conf, RULES_FAMILY_IPV6)};
	char *commands = NULL;
	size_t size;
	FILE *out = open_memstream(&commands, &size);
	int code = CTL_EXIT_OK;

	if (out) {
		write_commands(out, conf);
		if (fclose(out) != 0)
			out = NULL;
	}
	if (!out || !text[RULES_FAMILY_IPV4] || !text[RULES_FAMILY_IPV6]) {
		code = ctl_fail(ctl, "out of memory");
	} else if (ctl->json) {
		code = ctl_print_json(json_pack("{s:b, s:s, s:s, s:s}", "ok", 1, "commands",
						commands, "ipv4", text[RULES_FAMILY_IPV4], "ipv6",
						text[RULES_FAMILY_IPV6]));
	} else {
		printf("%s\n# iptables-restore --noflush\n%s\n# ip6tables-restore --noflush\n%s",
		       commands, text[RULES_FAMILY_IPV4], text[RULES_FAMILY_IPV6]);
	}
	free(commands);
	free(text[RULES_FAMILY_IPV4]);
	free(text[RULES_FAMILY_IPV6]);
	return code;
}

static int finish(struct ctl *ctl, struct rules_report *report, int err)
{
	json_t *warning;
	size_t i;

	json_array_foreach(report->warnings, i, warning)
		fprintf(stderr, "edgepepctl: warning: %s\n", json_string_value(warning));
	if (err)
		return ctl_fail(ctl, "%s", report->error);
	if (!ctl->json)
		return CTL_EXIT_OK;
	return ctl_print_json(json_pack("{s:b, s:O, s:b, s:b, s:b}", "ok", 1, "warnings",
					report->warnings, "ipv4",
					report->families[RULES_FAMILY_IPV4], "ipv6",
					report->families[RULES_FAMILY_IPV6], "sets", report->sets));
}

/* A configuration that has become unreadable must not keep the rules from being removed. */
static int run_down(struct ctl *ctl, struct rules_report *report)
{
	struct pep_conf *conf = NULL;
	int err;

	if (ctl_load_conf(ctl, &conf) != CTL_EXIT_OK)
		fprintf(stderr, "edgepepctl: warning: removing what '%s/rules.state' names\n",
			PEP_RUN_DIR);
	err = rules_down(conf ? conf->run_dir : PEP_RUN_DIR, conf, report);
	pep_conf_free(conf);
	return finish(ctl, report, err);
}

static int run_with_conf(struct ctl *ctl, bool print, struct rules_report *report)
{
	struct pep_conf *conf;
	int code = ctl_load_conf(ctl, &conf);

	if (code)
		return code;
	if (pep_conf_require_interfaces(conf, ctl->conf_path, stderr))
		code = CTL_EXIT_USAGE;
	else if (print)
		code = print_rules(ctl, conf);
	else
		code = finish(ctl, report, rules_up(conf, report));
	pep_conf_free(conf);
	return code;
}

int ctl_rules(struct ctl *ctl, int argc, char **argv)
{
	struct rules_report report = {.warnings = json_array()};
	int code = CTL_EXIT_USAGE;
	const char *verb;

	if (ctl_options(ctl, &usage, argc, argv, &code))
		goto out;
	verb = argv[optind];
	if (!verb || argv[optind + 1])
		code = pep_usage_error(&usage, "expected one of up, down, print");
	else if (strcmp(verb, "up") == 0 || strcmp(verb, "print") == 0)
		code = run_with_conf(ctl, strcmp(verb, "print") == 0, &report);
	else if (strcmp(verb, "down") == 0)
		code = run_down(ctl, &report);
	else
		code = pep_usage_error(&usage, "expected up, down or print, not '%s'", verb);
out:
	json_decref(report.warnings);
	return code;
}
