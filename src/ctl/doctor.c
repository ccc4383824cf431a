/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl doctor */
#include "ctl/doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/control_client.h"
#include "ctl/ctl.h"

#define EXIT_WARNINGS 1
#define EXIT_ERRORS   3 /* 2 is for bad usage */

static const struct pep_usage_option options[] = {CTL_OPTIONS, {0}};

static const struct pep_usage usage = {
	"edgepepctl doctor",
	"[OPTION...]",
	"Looks for what keeps edgepep from working on this host, and names the cure.",
	options,
	"\nExit codes: 0 all is well, 1 warnings, 2 bad usage or configuration, 3 errors\n",
	false,
};

static const char *const severity_names[DOCTOR_SEVERITY_COUNT_] = {"ok", "note", "warning",
								   "error"};

void doctor_say(struct doctor *d, enum doctor_severity severity, const char *check, const char *fix,
		const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (severity > d->worst)
		d->worst = severity;
	(void)json_array_append_new(d->findings,
				    json_pack("{s:s, s:s, s:s, s:s}", "check", check, "severity",
					      severity_names[severity], "text", text, "fix", fix));
}

long doctor_sysctl(const char *name)
{
	char value[32];
	char *end;
	long number;

	if (rules_sysctl_read(name, value, sizeof(value)))
		return -1;
	number = strtol(value, &end, 10);
	return end == value ? -1 : number;
}

bool doctor_has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (*list) {
		size_t n = strcspn(list, " \t\n");

		if (n == len && strncmp(list, word, n) == 0)
			return true;
		list += n + strspn(list + n, " \t\n");
	}
	return false;
}

static void ask_daemon(struct doctor *d)
{
	char path[256];
	json_t *status;

	if (pep_control_path(d->conf->run_dir, path, sizeof(path)) ||
	    pep_control_call(path, "status", 3000, &status))
		return;
	if (json_is_true(json_object_get(status, "ok")))
		d->status = status;
	else
		json_decref(status);
}

static void examine(struct doctor *d)
{
	static void (*const checks[])(struct doctor *) = {
		doctor_kernel, doctor_interfaces, doctor_sysctls, doctor_features, doctor_rules,
		doctor_routes, doctor_firewalls,  doctor_daemon,  doctor_gate,     doctor_syn,
	};

	d->families[RULES_FAMILY_IPV4] = true;
	d->families[RULES_FAMILY_IPV6] = rules_ipv6_usable(d->conf);
	ask_daemon(d);
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		checks[i](d);
}

static void print_findings(const struct doctor *d)
{
	static const char *const verdicts[DOCTOR_SEVERITY_COUNT_] = {
		"all is well", "all is well", "it works, with warnings", "it does not work"};
	json_t *finding;
	size_t i;

	json_array_foreach(d->findings, i, finding)
	{
		const char *fix = json_string_value(json_object_get(finding, "fix"));

		printf("%-8s%-12s%s\n", json_string_value(json_object_get(finding, "severity")),
		       json_string_value(json_object_get(finding, "check")),
		       json_string_value(json_object_get(finding, "text")));
		if (fix && *fix)
			printf("%-20s-> %s\n", "", fix);
	}
	printf("%s\n", verdicts[d->worst]);
}

static int report(struct ctl *ctl, const struct doctor *d)
{
	int code = d->worst == DOCTOR_ERROR     ? EXIT_ERRORS
		   : d->worst == DOCTOR_WARNING ? EXIT_WARNINGS
						: CTL_EXIT_OK;

	if (!ctl->json)
		print_findings(d);
	else if (ctl_print_json(json_pack("{s:b, s:s, s:O}", "ok", d->worst < DOCTOR_ERROR, "worst",
					  severity_names[d->worst], "findings", d->findings)))
		return CTL_EXIT_FAILURE;
	return code;
}

int ctl_doctor(struct ctl *ctl, int argc, char **argv)
{
	struct doctor d = {0};
	struct pep_conf *conf;
	int code;

	if (ctl_options(ctl, &usage, argc, argv, &code))
		return code;
	if (argv[optind])
		return pep_usage_error(&usage, "'%s' is not understood", argv[optind]);
	code = ctl_load_conf(ctl, &conf);
	if (code)
		return code;
	if (pep_conf_require_interfaces(conf, ctl->conf_path, stderr)) {
		pep_conf_free(conf);
		return CTL_EXIT_USAGE;
	}
	d.conf = conf;
	d.findings = json_array();
	if (geteuid() != 0)
		doctor_say(&d, DOCTOR_WARNING, "doctor", "run it as root",
			   "without root it cannot look at rules and namespaces");
	examine(&d);
	code = report(ctl, &d);
	json_decref(d.findings);
	json_decref(d.status);
	pep_conf_free(conf);
	return code;
}
