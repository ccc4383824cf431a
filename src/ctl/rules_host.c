/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/rules_host.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/run.h"

#define RESTORE_TIMEOUT_S 60

const struct rules_sysctl rules_sysctls[] = {
	{"net.ipv4.tcp_early_demux", "0",
	 "a TIME_WAIT socket would take packets of a direct flow with the same addresses"},
	{0},
};

void rules_warn(struct rules_report *report, const char *text)
{
	(void)json_array_append_new(report->warnings, json_string(text));
}

/* "iptables" + "-save"; @input may be NULL. @ret_out gets what it printed when not NULL. */
static int iptables(enum rules_family family, const char *suffix, const char *const arguments[],
		    const char *input, char **ret_out, struct rules_report *report)
{
	const char *argv[8] = {NULL};
	char program[32], line[512];
	struct pep_run run;
	int err;

	(void)snprintf(program, sizeof(program), "%s%s", rules_family_tool(family), suffix);
	argv[0] = program;
	for (size_t i = 0; arguments && arguments[i]; i++)
		argv[i + 1] = arguments[i];
	err = pep_run(argv, input, RESTORE_TIMEOUT_S, &run);
	if (err == -ENOENT) {
		rules_fail(report, "there is no program '%s' on this host: install iptables",
			   program);
		return err;
	}
	if (err) {
		rules_fail(report, "'%s' could not be run: %s", program, strerror(-err));
		return err;
	}
	if (run.status != 0) {
		rules_fail(report, "'%s' failed: %s", program,
			   pep_run_first_line(*run.err ? run.err : run.out, line, sizeof(line)));
		err = -EIO;
	} else if (ret_out) {
		*ret_out = run.out;
		run.out = NULL;
	}
	pep_run_fini(&run);
	return err;
}

int rules_host_save(enum rules_family family, struct rules_save *ret, struct rules_report *report)
{
	char *text;
	int err = iptables(family, "-save", NULL, NULL, &text, report);

	if (err)
		return err;
	err = rules_save_parse(text, ret);
	free(text);
	if (err)
		rules_fail(report, "out of memory");
	return err;
}

int rules_host_restore(enum rules_family family, const char *input, bool test,
		       struct rules_report *report)
{
	const char *const arguments[] = {"--noflush", "-w", "10", test ? "--test" : NULL, NULL};

	return *input ? iptables(family, "-restore", arguments, input, NULL, report) : 0;
}

int rules_host_lock(const char *run_dir, struct rules_report *report)
{
	int fd = rules_state_lock(run_dir);

	if (fd < 0)
		rules_fail(report, "folder '%s' cannot be used: %s%s", run_dir, strerror(-fd),
			   fd == -EACCES || fd == -EPERM ? " (run as root)" : "");
	return fd;
}

void rules_host_state(const char *run_dir, struct rules_state *state, struct rules_report *report)
{
	int err = rules_state_load(run_dir, state);

	if (err && err != -ENOENT)
		rules_warn(
			report,
			"the file rules.state is not readable or damaged: it is not used, so an old"
			" sysctl value or route may stay behind");
}

bool rules_ipv6_usable(const struct pep_conf *conf)
{
	char name[80], value[8];

	for (unsigned int i = 0; i < conf->n_wireless_interfaces; i++) {
		(void)snprintf(name, sizeof(name), "net.ipv6.conf.%s.disable_ipv6",
			       conf->wireless_interfaces[i]);
		for (char *dot = strchr(name + 14, '.'); dot && strcmp(dot, ".disable_ipv6") != 0;
		     dot = strchr(dot, '.'))
			*dot = '/';
		if (rules_sysctl_read(name, value, sizeof(value)) == 0 && strcmp(value, "0") == 0)
			return true;
	}
	return false;
}

static int check_interface(const char *key, const char *name, struct rules_report *report)
{
	if (if_nametoindex(name) != 0)
		return 0;
	rules_fail(
		report,
		"%s: there is no interface '%s' on this host: create it first, or correct the name"
		" ('ip -brief link' lists them)",
		key, name);
	report->bad_conf = true;
	return -ENODEV;
}

int rules_families(const struct pep_conf *conf, struct rules_report *report)
{
	int err = 0;

	for (unsigned int i = 0; i < conf->n_wireless_interfaces && !err; i++)
		err = check_interface("wireless-interfaces", conf->wireless_interfaces[i], report);
	for (unsigned int i = 0; i < conf->n_wired_interfaces && !err; i++)
		err = check_interface("wired-interfaces", conf->wired_interfaces[i], report);
	report->families[RULES_FAMILY_IPV4] = true;
	report->families[RULES_FAMILY_IPV6] = rules_ipv6_usable(conf);
	return err;
}
