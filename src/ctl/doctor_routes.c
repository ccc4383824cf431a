/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our ip rules and the local route, and ip rules of others that are asked before them. */
#include <string.h>

#include "ctl/doctor.h"

/* What an ip rule of others asks for beside its place. A rule that asks for nothing takes all. */
static bool takes_all(const json_t *rule)
{
	static const char *const plain[] = {"priority", "src", "table", "protocol"};
	const char *src = json_string_value(json_object_get(rule, "src"));
	const char *key;
	json_t *value;

	if (!json_object_get(rule, "table") || (src && strcmp(src, "all") != 0))
		return false;
	json_object_foreach((json_t *)rule, key, value)
	{
		bool known = false;

		for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
			known = known || strcmp(key, plain[i]) == 0;
		if (!known)
			return false;
	}
	return true;
}

static void check_before(struct doctor *d, enum rules_family family)
{
	const char *const words[] = {
		"ip", family == RULES_FAMILY_IPV4 ? "-4" : "-6", "-json", "rule", "show", NULL};
	char error[RULES_ERROR_SIZE];
	json_t *rules, *rule;
	size_t i;

	if (rules_ip(words, &rules, error))
		return;
	json_array_foreach(rules, i, rule)
	{
		json_int_t priority = json_integer_value(json_object_get(rule, "priority"));
		const char *table = json_string_value(json_object_get(rule, "table"));

		if (priority == 0 || priority >= (json_int_t)d->conf->steering.rule_priority ||
		    !takes_all(rule))
			continue;
		doctor_say(
			d, DOCTOR_WARNING, "routes",
			"give steering { rule-priority = ... } a number below it",
			"%s: the ip rule of priority %lld (table %s) is asked before ours and may "
			"answer for our packets",
			rules_family_name(family), (long long)priority, table ? table : "?");
	}
	json_decref(rules);
}

void doctor_routes(struct doctor *d)
{
	char what[128], error[RULES_ERROR_SIZE];
	bool foreign = false;

	for (int f = 0; f < RULES_FAMILY_COUNT_; f++) {
		enum rules_family family = (enum rules_family)f;

		if (!d->families[f])
			continue;
		if (rules_route_missing(d->conf, family, what, sizeof(what), error))
			doctor_say(d, DOCTOR_ERROR, "routes", "", "%s", error);
		else if (*what)
			doctor_say(d, DOCTOR_ERROR, "routes", "edgepepctl rules up",
				   "%s: %s is missing: packets of split flows are lost",
				   rules_family_name(family), what);
		else
			doctor_say(d, DOCTOR_OK, "routes", "",
				   "%s: ip rules and local route are there",
				   rules_family_name(family));
		if (!rules_route_table_foreign(family, d->conf->steering.table, &foreign, error) &&
		    foreign)
			doctor_say(d, DOCTOR_ERROR, "routes",
				   "choose a free number with steering { table = ... }",
				   "%s: routing table %u holds other routes too",
				   rules_family_name(family), d->conf->steering.table);
		check_before(d, family);
	}
}
