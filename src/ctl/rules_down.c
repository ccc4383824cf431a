/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/rules_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int clear_iptables(enum rules_family family, struct rules_report *report)
{
	struct rules_save save;
	char *text = NULL;
	size_t size;
	FILE *out;
	int err = rules_host_save(family, &save, report);

	if (err)
		return err;
	out = open_memstream(&text, &size);
	if (out)
		rules_text_down(out, &save);
	rules_save_fini(&save);
	if (!out || fclose(out) != 0) {
		rules_fail(report, "out of memory");
		return -ENOMEM;
	}
	err = rules_host_restore(family, text, false, report);
	free(text);
	return err;
}

/* Tables that were not there before us and in which nobody has put anything since. */
static int clear_tables(enum rules_family family, const bool created[RULES_TABLE_COUNT_],
			struct rules_report *report)
{
	int err = -EAGAIN;

	for (int tries = 0; tries < 10 && err == -EAGAIN; tries++) {
		struct rules_save save;
		uint32_t generation;

		/* No nftables, no table to remove: iptables-legacy keeps its tables. */
		if (rules_table_generation(&generation) < 0)
			return 0;
		err = rules_host_save(family, &save, report);
		if (err)
			return err;
		for (int t = 0; t < RULES_TABLE_COUNT_ && !err; t++) {
			if (!created[t] || !save.present[t] || !save.empty[t])
				continue;
			err = rules_table_delete(family, (enum rules_table)t, generation);
			if (!err && rules_table_generation(&generation) < 0)
				err = -EAGAIN;
		}
		rules_save_fini(&save);
	}
	if (err)
		rules_fail(report, "empty %s tables could not be removed: %s",
			   rules_family_tool(family), strerror(-err));
	return err;
}

static int clear_sysctls(const struct rules_state *state, struct rules_report *report)
{
	int err = 0;

	for (size_t i = 0; rules_sysctls[i].name && !err; i++) {
		char now[16];

		if (!state->sysctl_old[i][0])
			continue;
		/* Somebody has changed it since: theirs is the newer wish. */
		if (rules_sysctl_read(rules_sysctls[i].name, now, sizeof(now)) == 0 &&
		    strcmp(now, rules_sysctls[i].value) != 0)
			continue;
		err = rules_sysctl_write(rules_sysctls[i].name, state->sysctl_old[i]);
		if (err)
			rules_fail(report, "sysctl %s could not be set back to %s: %s",
				   rules_sysctls[i].name, state->sysctl_old[i], strerror(-err));
	}
	return err;
}

static int clear_step(int step, enum rules_family family, const struct rules_state *state,
		      struct rules_report *report)
{
	int err;

	switch (step) {
	case 0:
		return clear_iptables(family, report);
	case 1:
		return clear_tables(family, state->created[family], report);
	case 2:
		return rules_route_down(state, family, report->error);
	default:
		err = rules_set_destroy(family);
		if (err)
			rules_fail(report, "ip set '%s' could not be removed: %s",
				   rules_set_name(family), strerror(-err));
		return err;
	}
}

int rules_host_clear(const struct rules_state *state, struct rules_report *report)
{
	struct rules_report step_report = *report;
	int first = 0;
	int err;

	for (int step = 0; step < 4; step++) {
		for (int f = 0; f < RULES_FAMILY_COUNT_; f++) {
			if (f == RULES_FAMILY_IPV6 && access("/proc/sys/net/ipv6", F_OK) != 0)
				continue;
			err = clear_step(step, (enum rules_family)f, state, &step_report);
			if (err && !first) {
				first = err;
				(void)memcpy(report->error, step_report.error,
					     sizeof(report->error));
			}
		}
	}
	err = clear_sysctls(state, &step_report);
	if (err && !first) {
		first = err;
		(void)memcpy(report->error, step_report.error, sizeof(report->error));
	}
	return first;
}

int rules_down(const char *run_dir, const struct pep_conf *conf, struct rules_report *report)
{
	struct rules_state state = {0};
	int lock, err;

	lock = rules_host_lock(run_dir, report);
	if (lock < 0)
		return lock;
	rules_host_state(run_dir, &state, report);
	/* Without a state file the configuration tells where the routes would be. */
	if (conf && state.n_rules == 0) {
		for (int f = 0; f < RULES_FAMILY_COUNT_; f++) {
			rules_route_wanted(conf, (enum rules_family)f, state.rules, &state.n_rules);
			state.route_table[f] = conf->steering.table;
		}
	}
	err = rules_host_clear(&state, report);
	if (!err)
		rules_state_remove(run_dir);
	(void)close(lock);
	return err;
}
