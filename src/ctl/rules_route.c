/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ip rules and the local route that bring packets with the divert bit to a local socket. Each
 * rule names its interface: the kernel checks a packet's source with a look-up from "lo", and with
 * src_valid_mark = 1 a rule without an interface would answer that look-up and drop every packet.
 */
#include "ctl/rules.h"

#include <errno.h>
#include <string.h>

#include "base/mark.h"
#include "ctl/run.h"

#define IP_TIMEOUT_S 20

/* For ip's arguments. */
static const char *family_flag(enum rules_family family)
{
	return family == RULES_FAMILY_IPV4 ? "-4" : "-6";
}

int rules_ip(const char *const words[], json_t **ret_json, char error[RULES_ERROR_SIZE])
{
	struct pep_run run;
	char line[512];
	int err = pep_run(words, NULL, IP_TIMEOUT_S, &run);

	if (err == -ENOENT) {
		(void)snprintf(error, RULES_ERROR_SIZE,
			       "there is no program 'ip' on this host: install iproute2");
		return err;
	}
	if (err) {
		(void)snprintf(error, RULES_ERROR_SIZE, "'ip' could not be run: %s",
			       strerror(-err));
		return err;
	}
	if (run.status != 0) {
		(void)snprintf(error, RULES_ERROR_SIZE, "'ip %s %s %s' failed: %s", words[1],
			       words[2], words[3], pep_run_first_line(run.err, line, sizeof(line)));
		err = -EIO;
	} else if (ret_json) {
		*ret_json = json_loads(*run.out ? run.out : "[]", 0, NULL);
		if (!*ret_json)
			*ret_json = json_array();
	}
	pep_run_fini(&run);
	return err;
}

void rules_route_wanted(const struct pep_conf *conf, enum rules_family family,
			struct rules_ip_rule *rules, size_t *n)
{
	struct rules_ip_rule rule = {
		.family = family,
		.mark = pep_mark_divert(conf->steering.mark_mask),
		.table = conf->steering.table,
		.priority = conf->steering.rule_priority,
	};

	for (unsigned int i = 0; i < conf->n_wireless_interfaces + conf->n_wired_interfaces; i++) {
		const char *name =
			i < conf->n_wireless_interfaces
				? conf->wireless_interfaces[i]
				: conf->wired_interfaces[i - conf->n_wireless_interfaces];
		bool known = false;

		for (size_t k = 0; k < *n; k++)
			known = known ||
				(rules[k].family == family && strcmp(rules[k].iif, name) == 0);
		if (known || *n == RULES_MAX_ROUTE_RULES)
			continue;
		(void)snprintf(rule.iif, sizeof(rule.iif), "%s", name);
		rules[(*n)++] = rule;
	}
}

static int rule_command(const struct rules_ip_rule *rule, const char *verb,
			char error[RULES_ERROR_SIZE])
{
	char mark[32], table[16], priority[16];
	const char *words[] = {"ip",       family_flag(rule->family),
			       "rule",     verb,
			       "fwmark",   mark,
			       "lookup",   table,
			       "priority", priority,
			       "iif",      rule->iif,
			       NULL};

	(void)snprintf(mark, sizeof(mark), "0x%x/0x%x", rule->mark, rule->mark);
	(void)snprintf(table, sizeof(table), "%u", rule->table);
	(void)snprintf(priority, sizeof(priority), "%u", rule->priority);
	if (!rule->iif[0])
		words[10] = NULL;
	return rules_ip(words, NULL, error);
}

static bool json_is(const json_t *object, const char *key, const char *want)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && strcmp(text, want) == 0;
}

/* "table" is a number, or a name from rt_tables. */
static bool same_rule(const json_t *have, const struct rules_ip_rule *rule)
{
	const char *mask = json_string_value(json_object_get(have, "fwmask"));
	char text[16];

	(void)snprintf(text, sizeof(text), "0x%x", rule->mark);
	return json_integer_value(json_object_get(have, "priority")) == rule->priority &&
	       json_is(have, "fwmark", text) && mask && strcmp(mask, text) == 0 &&
	       (rule->iif[0] ? json_is(have, "iif", rule->iif) : !json_object_get(have, "iif"));
}

/* How many rules equal to @rule there are. */
static int count_rule(const json_t *have, const struct rules_ip_rule *rule)
{
	const json_t *item;
	int n = 0;
	size_t i;

	json_array_foreach(have, i, item) n += same_rule(item, rule);
	return n;
}

static int list_rules(enum rules_family family, json_t **ret, char error[RULES_ERROR_SIZE])
{
	/* -N: tables as numbers, where rt_tables names them */
	const char *const words[] = {"ip", family_flag(family), "-N", "-json", "rule", "show",
				     NULL};

	return rules_ip(words, ret, error);
}

static int route_command(enum rules_family family, const char *verb, uint32_t table,
			 char error[RULES_ERROR_SIZE])
{
	char number[16];
	int err;
	const char *const words[] = {"ip",    family_flag(family),
				     "route", verb,
				     "local", "default",
				     "dev",   "lo",
				     "table", number,
				     NULL};

	(void)snprintf(number, sizeof(number), "%u", table);
	err = rules_ip(words, NULL, error);
	if (err == -EIO && strstr(error, "not up"))
		(void)snprintf(error, RULES_ERROR_SIZE,
			       "the loopback interface is down: 'ip link set lo up'");
	return err;
}

static int list_table(enum rules_family family, uint32_t table, json_t **ret,
		      char error[RULES_ERROR_SIZE])
{
	char number[16];
	const char *const words[] = {
		"ip", family_flag(family), "-json", "route", "show", "table", number, NULL};
	int err;

	(void)snprintf(number, sizeof(number), "%u", table);
	err = rules_ip(words, ret, error);
	/* A table that nobody has used yet is an error for ip, and simply empty for us. */
	if (err == -EIO && strstr(error, "table does not exist")) {
		*ret = json_array();
		err = 0;
	}
	return err;
}

static bool is_our_route(const json_t *route)
{
	return json_is(route, "type", "local") && json_is(route, "dst", "default") &&
	       json_is(route, "dev", "lo");
}

int rules_route_table_foreign(enum rules_family family, uint32_t table, bool *ret,
			      char error[RULES_ERROR_SIZE])
{
	json_t *routes, *item;
	bool foreign = false;
	size_t i;
	int err = list_table(family, table, &routes, error);

	if (err)
		return err;
	json_array_foreach(routes, i, item) foreign = foreign || !is_our_route(item);
	json_decref(routes);
	*ret = foreign;
	return 0;
}

int rules_route_missing(const struct pep_conf *conf, enum rules_family family, char *what,
			size_t size, char error[RULES_ERROR_SIZE])
{
	struct rules_ip_rule rules[RULES_MAX_ROUTE_RULES];
	json_t *have, *routes, *item;
	bool route = false;
	size_t n = 0, i;
	int err = list_rules(family, &have, error);

	if (err)
		return err;
	what[0] = '\0';
	rules_route_wanted(conf, family, rules, &n);
	for (size_t k = 0; k < n && !what[0]; k++)
		if (count_rule(have, &rules[k]) == 0)
			(void)snprintf(what, size, "the ip rule for interface %s", rules[k].iif);
	json_decref(have);
	err = list_table(family, conf->steering.table, &routes, error);
	if (err)
		return err;
	json_array_foreach(routes, i, item) route = route || is_our_route(item);
	json_decref(routes);
	if (!what[0] && !route)
		(void)snprintf(what, size, "the local route of table %u", conf->steering.table);
	return 0;
}

int rules_route_up(const struct rules_state *state, enum rules_family family,
		   char error[RULES_ERROR_SIZE])
{
	json_t *have;
	int err = route_command(family, "replace", state->route_table[family], error);

	if (!err)
		err = list_rules(family, &have, error);
	if (err)
		return err;
	for (size_t i = 0; i < state->n_rules && !err; i++) {
		const struct rules_ip_rule *rule = &state->rules[i];

		if (rule->family == family && count_rule(have, rule) == 0)
			err = rule_command(rule, "add", error);
	}
	json_decref(have);
	return err;
}

int rules_route_down(const struct rules_state *state, enum rules_family family,
		     char error[RULES_ERROR_SIZE])
{
	json_t *have, *routes, *item;
	uint32_t table = state->route_table[family];
	size_t i;
	int err = list_rules(family, &have, error);

	if (err)
		return err;
	for (size_t k = 0; k < state->n_rules && !err; k++) {
		const struct rules_ip_rule *rule = &state->rules[k];

		if (rule->family != family)
			continue;
		for (int n = count_rule(have, rule); n > 0 && !err; n--)
			err = rule_command(rule, "del", error);
	}
	json_decref(have);
	if (err || !table)
		return err;
	err = list_table(family, table, &routes, error);
	if (err)
		return err;
	json_array_foreach(routes, i, item) if (!err && is_our_route(item)) err =
		route_command(family, "del", table, error);
	json_decref(routes);
	return err;
}
