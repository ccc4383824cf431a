/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Order: everything is tried before anything is changed; what will have to be put back is on disk
 * before it is changed; what fails after that takes all of it back.
 */
#include "ctl/rules_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void warn_forwarding(struct rules_report *report)
{
	char value[8];

	if (rules_sysctl_read("net.ipv4.ip_forward", value, sizeof(value)) == 0 &&
	    strcmp(value, "0") == 0)
		rules_warn(report, "net.ipv4.ip_forward is 0, so this host forwards no IPv4: "
				   "'sysctl -w net.ipv4.ip_forward=1'");
	if (!report->families[RULES_FAMILY_IPV6])
		rules_warn(report,
			   "IPv6 is disabled on the wireless interfaces: only IPv4 is steered");
	else if (rules_sysctl_read("net.ipv6.conf.all.forwarding", value, sizeof(value)) == 0 &&
		 strcmp(value, "0") == 0)
		rules_warn(report,
			   "net.ipv6.conf.all.forwarding is 0, so this host forwards no IPv6: "
			   "'sysctl -w net.ipv6.conf.all.forwarding=1'");
}

/* Everything that one "up" holds. */
struct up {
	const struct pep_conf *conf;
	struct rules_report *report;
	struct rules_state before; /* what an earlier up left, if any */
	struct rules_state state;  /* what will be there */
	char *text[RULES_FAMILY_COUNT_];
	bool by_port[RULES_FAMILY_COUNT_]; /* the text uses xt_u32 */
};

static int up_sets(struct up *up)
{
	int err = 0;

	for (int f = 0; f < RULES_FAMILY_COUNT_ && !err; f++) {
		if (!up->report->families[f] || !up->report->sets)
			continue;
		err = rules_set_create((enum rules_family)f);
		up->state.sets[f] = !err;
	}
	if (err == -EOPNOTSUPP) {
		up->report->sets = false;
		rules_warn(up->report, "this kernel has no ip sets (ip_set_hash_ipportip, xt_set): "
				       "a direct connection"
				       " that meets a TIME_WAIT socket of a split one is delayed "
				       "by a retransmission");
		return 0;
	}
	if (err)
		rules_fail(up->report, "ip set '%s' could not be made: %s",
			   rules_set_name(RULES_FAMILY_IPV4), strerror(-err));
	return err;
}

static int up_route_tables(struct up *up)
{
	uint32_t table = up->conf->steering.table;
	bool foreign = false;
	int err = 0;

	for (int f = 0; f < RULES_FAMILY_COUNT_; f++) {
		if (!up->report->families[f])
			continue;
		err = rules_route_table_foreign((enum rules_family)f, table, &foreign,
						up->report->error);
		if (err)
			return err;
		if (foreign) {
			rules_fail(up->report,
				   "routing table %u already holds other %s routes: choose a free "
				   "number with"
				   " steering { table = ... }",
				   table, rules_family_name((enum rules_family)f));
			return -EBUSY;
		}
		up->state.route_table[f] = table;
		rules_route_wanted(up->conf, (enum rules_family)f, up->state.rules,
				   &up->state.n_rules);
	}
	return 0;
}

static int make_text(struct up *up, enum rules_family family, const struct rules_save *old,
		     bool by_port)
{
	struct rules_text_options options = {
		.sets = up->report->sets,
		.by_port = by_port,
		.nat = family == RULES_FAMILY_IPV6 && old->nat,
		.old = old,
	};
	FILE *out;
	size_t size;

	free(up->text[family]);
	up->text[family] = NULL;
	out = open_memstream(&up->text[family], &size);
	if (out)
		rules_text_up(out, up->conf, family, &options);
	if (!out || fclose(out) != 0) {
		rules_fail(up->report, "out of memory");
		return -ENOMEM;
	}
	return rules_host_restore(family, up->text[family], true, up->report);
}

/* The text without xt_u32. @old is what is loaded now. */
static int up_text_plain(struct up *up, enum rules_family family, const struct rules_save *old)
{
	int err = make_text(up, family, old, false);

	if (!err)
		rules_warn(up->report,
			   "this kernel has no xt_u32: all flows between a client and a "
			   "server are one worker's");
	up->by_port[family] = false;
	return err;
}

static int up_text(struct up *up, enum rules_family family)
{
	struct rules_save save;
	int err = rules_host_save(family, &save, up->report);

	if (err)
		return err;
	for (int t = 0; t < RULES_TABLE_COUNT_; t++)
		up->state.created[family][t] = up->before.created[family][t] || !save.present[t];
	up->by_port[family] = up->conf->workers > 1;
	err = make_text(up, family, &save, up->by_port[family]);
	/* It may only be that xt_u32 is missing. */
	if (err == -EIO && up->by_port[family])
		err = up_text_plain(up, family, &save);
	rules_save_fini(&save);
	return err;
}

/* iptables-nft learns only now what the kernel lacks of the old kind of matches. */
static int up_restore(struct up *up, enum rules_family family)
{
	struct rules_save save;
	int err = rules_host_restore(family, up->text[family], false, up->report);

	if (err != -EIO || !up->by_port[family])
		return err;
	err = rules_host_save(family, &save, up->report);
	if (err)
		return err;
	err = up_text_plain(up, family, &save);
	if (!err)
		err = rules_host_restore(family, up->text[family], false, up->report);
	rules_save_fini(&save);
	return err;
}

static int up_sysctls_remember(struct up *up)
{
	for (size_t i = 0; rules_sysctls[i].name; i++) {
		char *old = up->state.sysctl_old[i];
		int err = 0;

		(void)memcpy(old, up->before.sysctl_old[i], sizeof(up->before.sysctl_old[i]));
		if (!*old)
			err = rules_sysctl_read(rules_sysctls[i].name, old,
						sizeof(up->state.sysctl_old[i]));
		if (err) {
			rules_fail(up->report, "sysctl %s cannot be read: %s",
				   rules_sysctls[i].name, strerror(-err));
			return err;
		}
	}
	return 0;
}

/* Everything that can fail without leaving a trace. The sets are traces, but nothing uses them. */
static int up_prepare(struct up *up)
{
	int err = up_sets(up);

	if (!err)
		err = up_route_tables(up);
	if (!err)
		err = up_sysctls_remember(up);
	for (int f = 0; f < RULES_FAMILY_COUNT_ && !err; f++)
		if (up->report->families[f])
			err = up_text(up, (enum rules_family)f);
	return err;
}

/* Rules and routes of an earlier configuration that this one does not have. */
static int up_drop_old_routes(struct up *up)
{
	struct rules_state old = up->before;
	int err = 0;

	for (size_t i = 0; i < old.n_rules;) {
		bool kept = false;

		for (size_t k = 0; k < up->state.n_rules; k++)
			kept = kept || memcmp(&old.rules[i], &up->state.rules[k],
					      sizeof(old.rules[i])) == 0;
		if (kept)
			old.rules[i] = old.rules[--old.n_rules];
		else
			i++;
	}
	for (int f = 0; f < RULES_FAMILY_COUNT_ && !err; f++) {
		if (old.route_table[f] == up->state.route_table[f])
			old.route_table[f] = 0;
		if (old.route_table[f] || old.n_rules)
			err = rules_route_down(&old, (enum rules_family)f, up->report->error);
	}
	return err;
}

static int up_sysctls(struct up *up)
{
	for (size_t i = 0; rules_sysctls[i].name; i++) {
		int err = rules_sysctl_write(rules_sysctls[i].name, rules_sysctls[i].value);

		if (err) {
			rules_fail(up->report, "sysctl %s could not be set to %s: %s%s",
				   rules_sysctls[i].name, rules_sysctls[i].value, strerror(-err),
				   err == -EROFS ? " (a container? set it from the host)" : "");
			return err;
		}
	}
	return 0;
}

static int up_load(struct up *up)
{
	int err = up_sysctls(up);

	for (int f = 0; f < RULES_FAMILY_COUNT_ && !err; f++)
		if (up->report->families[f])
			err = rules_route_up(&up->state, (enum rules_family)f, up->report->error);
	for (int f = 0; f < RULES_FAMILY_COUNT_ && !err; f++)
		if (up->report->families[f])
			err = up_restore(up, (enum rules_family)f);
	return err;
}

/* Leaves the rules of an earlier up alone: nothing was changed yet. */
static void up_abandon(struct up *up)
{
	for (int f = 0; f < RULES_FAMILY_COUNT_; f++)
		if (up->state.sets[f] && !up->before.sets[f])
			(void)rules_set_destroy((enum rules_family)f);
}

/* From here on a failure takes everything back. */
static int up_change(struct up *up)
{
	int err = up_drop_old_routes(up);

	if (!err) {
		err = rules_state_store(up->conf->run_dir, &up->state);
		if (err)
			rules_fail(up->report, "'%s/rules.state' could not be written: %s",
				   up->conf->run_dir, strerror(-err));
	}
	if (!err)
		err = up_load(up);
	if (err) {
		char error[RULES_ERROR_SIZE];

		(void)memcpy(error, up->report->error, sizeof(error));
		if (rules_host_clear(&up->state, up->report) == 0)
			rules_state_remove(up->conf->run_dir);
		(void)memcpy(up->report->error, error, sizeof(error));
	}
	return err;
}

int rules_up(const struct pep_conf *conf, struct rules_report *report)
{
	struct up up = {.conf = conf, .report = report};
	int lock, err;

	err = rules_families(conf, report);
	if (err)
		return err;
	warn_forwarding(report);
	lock = rules_host_lock(conf->run_dir, report);
	if (lock < 0)
		return lock;
	rules_host_state(conf->run_dir, &up.before, report);
	err = up_prepare(&up);
	if (err)
		up_abandon(&up);
	else
		err = up_change(&up);
	free(up.text[RULES_FAMILY_IPV4]);
	free(up.text[RULES_FAMILY_IPV6]);
	(void)close(lock);
	return err;
}
