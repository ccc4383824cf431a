/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl rules up|down|print */
#include "ctl/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"

enum {
	OPTION_NO_SETS = CTL_OPTION_OWN,
};

static const struct pep_usage_option options[] = {
	CTL_OPTIONS,
	{OPTION_NO_SETS, "no-sets", NULL, "do without ip sets, as on a kernel that has none"},
	{0}};

static const struct pep_usage usage = {
	"edgepepctl rules",
	"[OPTION...] up|down|print",
	"Loads (up), removes (down) or shows (print) the rules that steer TCP connections of the\n"
	"wireless interfaces through edgepepd. Both up and down are safe to repeat.",
	options,
	NULL,
	false,
};

static int print_rules(struct ctl *ctl, const struct pep_conf *conf, bool sets)
{
	const struct rules_text_options text_options = {.sets = sets, .by_port = true};
	struct rules_print print;
	int code;

	if (rules_print_make(conf, &text_options, &print))
		return ctl_fail(ctl, "out of memory");
	if (ctl->json) {
		code = ctl_print_json(json_pack(
			"{s:b, s:s, s:s, s:s}", "ok", 1, "commands", print.commands, "ipv4",
			print.rules[RULES_FAMILY_IPV4], "ipv6", print.rules[RULES_FAMILY_IPV6]));
	} else {
		rules_print_write(&print, stdout);
		code = fflush(stdout) == 0 ? CTL_EXIT_OK : CTL_EXIT_FAILURE;
	}
	rules_print_fini(&print);
	return code;
}

static int finish(struct ctl *ctl, struct rules_report *report, int err)
{
	json_t *warning;
	size_t i;

	json_array_foreach(report->warnings, i, warning)
		fprintf(stderr, "edgepepctl: warning: %s\n", json_string_value(warning));
	if (err && report->bad_conf) {
		(void)ctl_fail(ctl, "%s: %s", ctl->conf_path, report->error);
		return CTL_EXIT_USAGE;
	}
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
		code = print_rules(ctl, conf, report->sets);
	else
		code = finish(ctl, report, rules_up(conf, report));
	pep_conf_free(conf);
	return code;
}

int ctl_rules(struct ctl *ctl, int argc, char **argv)
{
	struct rules_report report = {.warnings = json_array(), .sets = true};
	int option, code = CTL_EXIT_USAGE;
	const char *verb;

	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		if (option == OPTION_NO_SETS)
			report.sets = false;
		else if (ctl_option(ctl, option, &code))
			goto out;
	}
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
