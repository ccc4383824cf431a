/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steering rules: what the kernel must have for them, and whether they are there as they
 * should. */
#include "config.h"

#include "ctl/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/rules_host.h"
#include "ctl/run.h"

/* ---- features -----------------------------------------------------------------------------------
 */

/* Kernel module names are those of Debian's kernels. */
static const struct feature {
	const char *name, *rules, *module;
	enum doctor_severity severity;
} features[] = {
	{"iptables tables", "*raw\nCOMMIT\n*mangle\nCOMMIT\n*filter\nCOMMIT\n",
	 "nft_compat, or iptable_raw iptable_mangle iptable_filter", DOCTOR_ERROR},
	{"match socket", "*raw\n-A PREROUTING -m socket --transparent --restore-skmark\nCOMMIT\n",
	 "xt_socket", DOCTOR_ERROR},
	{"target TPROXY",
	 "*mangle\n-A PREROUTING -p tcp -j TPROXY --on-port 1 --tproxy-mark 1/1\nCOMMIT\n",
	 "xt_TPROXY", DOCTOR_ERROR},
	{"target NFQUEUE", "*raw\n-A PREROUTING -j NFQUEUE --queue-num 1 --queue-bypass\nCOMMIT\n",
	 "xt_NFQUEUE", DOCTOR_ERROR},
	{"target CT", "*raw\n-A PREROUTING -j CT --notrack\nCOMMIT\n", "xt_CT", DOCTOR_ERROR},
	{"target MARK", "*mangle\n-A PREROUTING -j MARK --set-xmark 1/1\nCOMMIT\n", "xt_mark",
	 DOCTOR_ERROR},
	{"match addrtype", "*raw\n-A PREROUTING -m addrtype ! --dst-type LOCAL\nCOMMIT\n",
	 "xt_addrtype", DOCTOR_ERROR},
	{"match dscp", "*mangle\n-A INPUT -m dscp ! --dscp 0\nCOMMIT\n", "xt_dscp", DOCTOR_ERROR},
	{"target REJECT", "*filter\n-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n",
	 "ipt_REJECT ip6t_REJECT", DOCTOR_ERROR},
	{"match u32 (a client's flows all go to one worker)",
	 "*raw\n-A PREROUTING -m u32 --u32 \"0=0\"\nCOMMIT\n", "xt_u32", DOCTOR_WARNING},
	{"ip sets (TIME_WAIT may delay direct flows)", NULL, "ip_set_hash_ipportip xt_set",
	 DOCTOR_WARNING},
};

/* Whether it is there. */
static bool check_feature(struct doctor *d, enum rules_family family, const struct feature *feature)
{
	char set_rule[128], fix[160], error[RULES_ERROR_SIZE];
	const char *rules = feature->rules;

	(void)snprintf(set_rule, sizeof(set_rule),
		       "*raw\n-A PREROUTING -m set --match-set %s src,src,dst\nCOMMIT\n",
		       rules_set_name(family));
	if (!rules)
		rules = set_rule;
	if (doctor_probe_rules(family, rules, NULL, error) != DOCTOR_PROBE_REFUSED)
		return true;
	(void)snprintf(fix, sizeof(fix), "modprobe %s, or a kernel that has it", feature->module);
	doctor_say(d, feature->severity, "features", fix, "%s: no %s: %s",
		   rules_family_name(family), feature->name, error);
	return false;
}

static char *make_text(const struct doctor *d, enum rules_family family,
		       const struct rules_text_options *options)
{
	struct rules_print print;
	char *text;

	if (rules_print_make(d->conf, options, &print))
		return NULL;
	text = print.rules[family];
	print.rules[family] = NULL;
	rules_print_fini(&print);
	return text;
}

static void check_features(struct doctor *d, enum rules_family family)
{
	const struct rules_text_options all = {.sets = true, .by_port = true};
	const char *name = rules_family_name(family);
	char *text = make_text(d, family, &all);
	enum doctor_probe probe = DOCTOR_PROBE_NO_NAMESPACE;
	char error[RULES_ERROR_SIZE];
	bool good = true;

	if (text)
		probe = doctor_probe_rules(family, text, NULL, error);
	free(text);
	if (probe == DOCTOR_PROBE_OK)
		doctor_say(d, DOCTOR_OK, "features", "", "%s: this kernel takes all rules", name);
	else if (probe == DOCTOR_PROBE_NO_NAMESPACE)
		doctor_say(d, DOCTOR_NOTE, "features", "run it as root",
			   "%s: no network namespace to try the rules in", name);
	if (probe != DOCTOR_PROBE_REFUSED)
		return;
	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
		good = check_feature(d, family, &features[i]) && good;
	if (good) /* each of them alone is there */
		doctor_say(d, DOCTOR_ERROR, "features", "", "%s: %s", name, error);
}

void doctor_features(struct doctor *d)
{
	for (int f = 0; f < RULES_FAMILY_COUNT_; f++)
		if (d->families[f])
			check_features(d, (enum rules_family)f);
}

/* ---- what is loaded
 * ------------------------------------------------------------------------------ */

struct own {
	char *line; /* "raw -A EDGEPEP-GATE ..." */
	size_t chain_len, number;
};

/* A rule in one of our chains, or a jump to one, which is the last word of its rule. */
static bool is_own(const char *line, size_t len)
{
	const char *last = memrchr(line, ' ', len);

	return strncmp(line, "-A " RULES_CHAIN_PREFIX, strlen("-A " RULES_CHAIN_PREFIX)) == 0 ||
	       (strncmp(line, "-A ", 3) == 0 && last && last < line + len &&
		strncmp(last + 1, RULES_CHAIN_PREFIX, strlen(RULES_CHAIN_PREFIX)) == 0);
}

/* By table and chain; within a chain the order is the rules' own. */
static int compare_own(const void *a, const void *b)
{
	const struct own *x = a, *y = b;
	size_t len = x->chain_len < y->chain_len ? x->chain_len : y->chain_len;
	int order = strncmp(x->line, y->line, len);

	if (order == 0 && x->chain_len != y->chain_len)
		order = x->chain_len < y->chain_len ? -1 : 1;
	return order ? order : x->number < y->number ? -1 : 1;
}

static size_t collect_own(const char *save, struct own *lines, size_t room)
{
	char table[16] = "";
	size_t n = 0;

	for (const char *line = save; *line && n < room;) {
		const char *end = strchrnul(line, '\n');
		size_t len = (size_t)(end - line);

		if (*line == '*') {
			(void)snprintf(table, sizeof(table), "%.*s", (int)len - 1, line + 1);
		} else if (is_own(line, len)) {
			struct own *own = &lines[n];

			if (asprintf(&own->line, "%s %.*s", table, (int)len, line) < 0)
				break;
			own->chain_len = strlen(table) + 4 + strcspn(line + 3, " \n");
			own->number = n++;
		}
		line = *end ? end + 1 : end;
	}
	return n;
}

/* The lines of @save that are ours, in an order that does not depend on history. */
static char *own_lines(const char *save)
{
	const size_t room = 4096;
	struct own *lines = calloc(room, sizeof(*lines));
	size_t n = lines ? collect_own(save, lines, room) : 0, size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (lines)
		qsort(lines, n, sizeof(*lines), compare_own);
	for (size_t i = 0; i < n; i++) {
		if (out)
			fprintf(out, "%s\n", lines[i].line);
		free(lines[i].line);
	}
	free(lines);
	if (out && fclose(out) != 0) {
		free(text);
		text = NULL;
	}
	return text;
}

static char *loaded_save(enum rules_family family)
{
	char program[32], *text = NULL;
	const char *const save[] = {program, NULL};
	struct pep_run run;

	(void)snprintf(program, sizeof(program), "%s-save", rules_family_tool(family));
	if (pep_run(save, NULL, 20, &run))
		return NULL;
	if (run.status == 0) {
		text = run.out;
		run.out = NULL;
	}
	pep_run_fini(&run);
	return text;
}

/* Within one chain our jumps must come before everybody else's rules. */
static void check_first(struct doctor *d, enum rules_family family, const char *save)
{
	char chain[64] = "", table[16] = "", foreign[256] = "";

	for (const char *line = save; *line;) {
		const char *end = strchrnul(line, '\n');
		size_t len = (size_t)(end - line), n = strcspn(line + 3, " \n");
		bool ours = is_own(line, len);

		if (*line == '*')
			(void)snprintf(table, sizeof(table), "%.*s", (int)len - 1, line + 1);
		if (*line == '*')
			chain[0] = '\0';
		if (strncmp(line, "-A ", 3) == 0) {
			if (strlen(chain) != n || strncmp(chain, line + 3, n) != 0) {
				(void)snprintf(chain, sizeof(chain), "%.*s", (int)n, line + 3);
				foreign[0] = '\0';
			}
			if (ours && foreign[0] && strncmp(chain, RULES_CHAIN_PREFIX, 8) != 0) {
				doctor_say(d, DOCTOR_WARNING, "order", "edgepepctl rules up",
					   "%s table %s: '%s' comes before our rules and may take "
					   "their packets",
					   rules_family_name(family), table, foreign);
				return;
			}
			if (!ours)
				(void)snprintf(foreign, sizeof(foreign), "%.*s", (int)len, line);
		}
		line = *end ? end + 1 : end;
	}
}

static void compare(struct doctor *d, enum rules_family family, const char *have)
{
	const struct rules_text_options options = {
		.sets = strstr(have, rules_set_name(family)) != NULL,
		.by_port = strstr(have, "--u32") != NULL,
	};
	char *text = make_text(d, family, &options), *wanted_save = NULL, *wanted = NULL;
	char error[RULES_ERROR_SIZE];

	if (text && doctor_probe_rules(family, text, &wanted_save, error) == DOCTOR_PROBE_OK)
		wanted = own_lines(wanted_save);
	if (wanted && strcmp(wanted, have) != 0)
		doctor_say(d, DOCTOR_ERROR, "rules", "edgepepctl rules up",
			   "%s: the rules are not those of this configuration (or of this version)",
			   rules_family_name(family));
	else if (wanted)
		doctor_say(d, DOCTOR_OK, "rules", "", "%s: loaded as configured",
			   rules_family_name(family));
	free(text);
	free(wanted_save);
	free(wanted);
}

static void check_family(struct doctor *d, enum rules_family family)
{
	char *save = loaded_save(family);
	char *have = save ? own_lines(save) : NULL;

	if (!have) {
		doctor_say(d, DOCTOR_ERROR, "rules", "install iptables, and run as root",
			   "'%s-save' does not work here", rules_family_tool(family));
	} else if (!strstr(have, RULES_CHAIN_PREFIX "GATE")) {
		doctor_say(d, DOCTOR_ERROR, "rules", "systemctl start edgepep-rules",
			   "%s: the rules are not loaded: nothing is split",
			   rules_family_name(family));
	} else {
		compare(d, family, have);
		check_first(d, family, save);
	}
	free(save);
	free(have);
}

void doctor_rules(struct doctor *d)
{
	char value[16];

	for (int f = 0; f < RULES_FAMILY_COUNT_; f++)
		if (d->families[f])
			check_family(d, (enum rules_family)f);
	for (size_t i = 0; rules_sysctls[i].name; i++) {
		char fix[96];

		(void)snprintf(fix, sizeof(fix), "sysctl -w %s=%s", rules_sysctls[i].name,
			       rules_sysctls[i].value);
		if (rules_sysctl_read(rules_sysctls[i].name, value, sizeof(value)) ||
		    strcmp(value, rules_sysctls[i].value) != 0)
			doctor_say(d, DOCTOR_WARNING, "early_demux", fix, "%s is not %s: %s",
				   rules_sysctls[i].name, rules_sysctls[i].value,
				   rules_sysctls[i].why);
		else
			doctor_say(d, DOCTOR_OK, "early_demux", "", "%s is %s",
				   rules_sysctls[i].name, rules_sysctls[i].value);
	}
}
