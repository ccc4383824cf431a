/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon: does it answer, with what rights and limits does it run, what went wrong in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/control_client.h"
#include "ctl/doctor.h"

#define CAPABILITIES 0x3000ull /* CAP_NET_ADMIN, CAP_NET_RAW */
#define FDS_PER_FLOW 2
#define FDS_RESERVE  128

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "?";
}

/* What follows @key in a file of /proc/PID; false when it is not there. */
static bool proc_value(json_int_t pid, const char *name, const char *key, char *value, size_t size)
{
	char path[64], line[256];
	bool found = false;
	FILE *in;

	(void)snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, name);
	in = fopen(path, "r");
	while (in && !found && fgets(line, sizeof(line), in)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		(void)snprintf(value, size, "%s", line + strlen(key));
		found = true;
	}
	if (in)
		(void)fclose(in);
	return found;
}

static void check_capabilities(struct doctor *d, json_int_t pid)
{
	unsigned long long have;
	char value[64];

	if (!proc_value(pid, "status", "CapEff:", value, sizeof(value)))
		return;
	have = strtoull(value, NULL, 16);
	if ((have & CAPABILITIES) != CAPABILITIES)
		doctor_say(d, DOCTOR_ERROR, "capability", "systemctl restart edgepep",
			   "edgepepd lacks CAP_NET_ADMIN or CAP_NET_RAW");
	else if (have != CAPABILITIES)
		doctor_say(d, DOCTOR_WARNING, "capability", "run it through edgepep.service",
			   "edgepepd has more capabilities than it needs (0x%llx)", have);
	else
		doctor_say(d, DOCTOR_OK, "capability", "",
			   "edgepepd has CAP_NET_ADMIN and CAP_NET_RAW, nothing else");
}

static void check_descriptors(struct doctor *d, json_int_t pid)
{
	long long flows = number(d->status, "flows_limit");
	long long need = FDS_PER_FLOW * flows + FDS_RESERVE;
	char value[128], fix[96];
	long long have;

	if (!proc_value(pid, "limits", "Max open files", value, sizeof(value)))
		return;
	have = strtoll(value, NULL, 10);
	(void)snprintf(fix, sizeof(fix),
		       "LimitNOFILE=%lld in edgepep.service, or a lower max-flows", need);
	if (have > 0 && have < need)
		doctor_say(d, DOCTOR_WARNING, "descriptors", fix,
			   "%lld descriptors do not suffice for max-flows %lld", have, flows);
	else
		doctor_say(d, DOCTOR_OK, "descriptors", "", "enough for max-flows %lld", flows);
}

static void check_state(struct doctor *d)
{
	const char *state = text(d->status, "state");

	if (strcmp(state, "running") == 0)
		doctor_say(d, DOCTOR_OK, "daemon", "", "running, %lld flows",
			   (long long)number(d->status, "flows"));
	else
		doctor_say(d, DOCTOR_WARNING, "daemon", "edgepepctl resume",
			   "%s: new connections go end to end", state);
	if (number(d->status, "workers") != d->conf->workers)
		doctor_say(
			d, DOCTOR_ERROR, "daemon", "systemctl restart edgepep",
			"it runs %lld workers, the configuration says %u: rules and daemon do not "
			"fit",
			(long long)number(d->status, "workers"), d->conf->workers);
}

static void check_guard(struct doctor *d)
{
	if (json_is_false(json_object_get(d->status, "guard")) && d->conf->fail == PEP_FAIL_OPEN)
		doctor_say(d, DOCTOR_WARNING, "daemon", "systemctl restart edgepep",
			   "its guard process has ended: new connections wait when the daemon "
			   "hangs");
}

static void check_fallbacks(struct doctor *d)
{
	const json_t *ccas = json_object_get(d->status, "congestion_control");
	const char *segment;
	json_t *cca;

	json_object_foreach((json_t *)ccas, segment, cca)
	{
		if (json_is_true(json_object_get(cca, "fallback")))
			doctor_say(d, DOCTOR_WARNING, "controls",
				   "systemctl start edgepep-cca; edgepepctl reload",
				   "leg %s uses %s in place of %s", segment, text(cca, "in_use"),
				   text(cca, "configured"));
	}
}

static void check_counters(struct doctor *d)
{
	static const struct {
		const char *key, *what, *fix;
	} troubles[] = {
		{"gate_errors", "verdicts could not be given", "see the daemon's log"},
		{"gate_overruns", "times SYNs came faster than they were read",
		 "more workers, or a lower load"},
		{"source_port_fallbacks",
		 "wired legs could not keep their client's port; the server saw another one", ""},
		{"relay_cap_hits", "times the relays' memory was used up",
		 "raise relay { memory }"},
		{"pipe_failures", "pipes were not to be had; bytes were copied",
		 "sysctl -w fs.pipe-user-pages-soft=32768"},
	};
	const json_t *counters = json_object_get(d->status, "counters");
	const json_t *bypassed = json_object_get(counters, "bypassed");
	static const char *const limits[] = {"flow_limit", "client_limit", "pending_limit",
					     "resource"};

	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++)
		if (number(counters, troubles[i].key))
			doctor_say(d, DOCTOR_NOTE, "counters", troubles[i].fix, "%lld %s",
				   (long long)number(counters, troubles[i].key), troubles[i].what);
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (number(bypassed, limits[i]))
			doctor_say(d, DOCTOR_NOTE, "counters", "raise the limit, or add gateways",
				   "%lld connections went end to end by %s",
				   (long long)number(bypassed, limits[i]), limits[i]);
	if (number(bypassed, "probation"))
		doctor_say(d, DOCTOR_NOTE, "counters", "do replies come back through this host?",
			   "%lld connections went end to end since their servers kept failing",
			   (long long)number(bypassed, "probation"));
}

static void say_silent(struct doctor *d)
{
	char path[256];
	json_t *reply = NULL;
	int err = pep_control_path(d->conf->run_dir, path, sizeof(path));

	if (!err)
		err = pep_control_call(path, "version", 1000, &reply);
	json_decref(reply);
	if (err == -EACCES)
		doctor_say(d, DOCTOR_ERROR, "daemon", "run it as root, or as a member of the group",
			   "no permission for '%s'", path);
	else if (err == -ETIMEDOUT)
		doctor_say(d, DOCTOR_ERROR, "daemon", "systemctl restart edgepep",
			   "edgepepd does not answer on '%s': it hangs", path);
	else
		doctor_say(d, DOCTOR_ERROR, "daemon", "systemctl start edgepep",
			   "edgepepd is not running (no answer on '%s'): new connections %s", path,
			   d->conf->fail == PEP_FAIL_OPEN ? "go end to end"
							  : "are dropped (fail = closed)");
}

void doctor_daemon(struct doctor *d)
{
	json_int_t pid;

	if (!d->status) {
		say_silent(d);
		return;
	}
	pid = number(d->status, "pid");
	check_state(d);
	check_guard(d);
	check_capabilities(d, pid);
	check_descriptors(d, pid);
	check_fallbacks(d);
	check_counters(d);
}
