/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the control socket can ask of the daemon. */
#include "proxy/daemon_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "proxy/control.h"
#include "proxy/leg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- status ---------------------------------------------------------------------------------------
 */

static uint64_t sum_counter(const struct pep_daemon *daemon, enum pep_counter counter)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < daemon->n_workers; i++)
		sum += pep_stats_word_get(
			&pep_stats_worker(daemon->stats, i)->block->counters[counter]);
	return sum;
}

/* {"name": sum over workers, ...} of a labelled counter whose words begin at @offset. */
static json_t *sum_labelled(const struct pep_daemon *daemon, size_t offset, unsigned int count,
			    const char *(*name)(unsigned int value))
{
	json_t *object = json_object();

	for (unsigned int value = 0; value < count; value++) {
		uint64_t sum = 0;

		for (unsigned int i = 0; i < daemon->n_workers; i++) {
			const char *block = (const char *)pep_stats_worker(daemon->stats, i)->block;

			sum += pep_stats_word_get((const pep_stats_word *)(block + offset) + value);
		}
		json_object_set_new(object, name(value), json_integer((json_int_t)sum));
	}
	return object;
}

static const char *close_label(unsigned int value)
{
	return pep_close_name((enum pep_close)value);
}

static const char *bypass_label(unsigned int value)
{
	return pep_bypass_name((enum pep_bypass)value);
}

static const char *refuse_label(unsigned int value)
{
	return pep_refuse_name((enum pep_refuse)value);
}

static const char *failure_label(unsigned int value)
{
	return pep_connect_failure_name((enum pep_connect_failure)value);
}

static json_t *interfaces(const char names[][PEP_CONF_NAME_SIZE], unsigned int n)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(list, json_string(names[i]));
	return list;
}

static json_t *controls(const struct pep_conf *conf)
{
	json_t *object = json_object();

	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		struct pep_leg_setup setup;

		(void)pep_leg_setup_resolve(&conf->leg[s], &setup);
		json_object_set_new(object, pep_segment_name((enum pep_segment)s),
				    json_pack("{s:s, s:s, s:b}", "configured",
					      conf->leg[s].congestion_control, "in_use",
					      setup.conf.congestion_control, "fallback",
					      setup.cca_fallback));
	}
	return object;
}

static json_t *counters(const struct pep_daemon *daemon)
{
	static const struct {
		const char *name;
		enum pep_counter counter;
	} plain[] = {
		{"syns", PEP_COUNTER_SYNS},
		{"syn_retransmissions", PEP_COUNTER_SYN_RETRANSMISSIONS},
		{"split", PEP_COUNTER_FLOWS_SPLIT},
		{"connect_attempts", PEP_COUNTER_CONNECT_ATTEMPTS},
		{"source_port_fallbacks", PEP_COUNTER_SOURCE_PORT_FALLBACKS},
		{"accept_orphans", PEP_COUNTER_ACCEPT_ORPHANS},
		{"accept_failures", PEP_COUNTER_ACCEPT_FAILURES},
		{"option_failures", PEP_COUNTER_OPTION_FAILURES},
		{"gate_errors", PEP_COUNTER_GATE_ERRORS},
		{"gate_overruns", PEP_COUNTER_GATE_OVERRUNS},
		{"relay_cap_hits", PEP_COUNTER_RELAY_CAP_HITS},
		{"pipe_failures", PEP_COUNTER_PIPE_FAILURES},
	};
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		json_object_set_new(
			object, plain[i].name,
			json_integer((json_int_t)sum_counter(daemon, plain[i].counter)));
	json_object_set_new(object, "bypassed",
			    sum_labelled(daemon, offsetof(struct pep_stats_block, bypassed),
					 PEP_BYPASS_COUNT_, bypass_label));
	json_object_set_new(object, "refused",
			    sum_labelled(daemon, offsetof(struct pep_stats_block, refused),
					 PEP_REFUSE_COUNT_, refuse_label));
	json_object_set_new(object, "closed",
			    sum_labelled(daemon, offsetof(struct pep_stats_block, closed),
					 PEP_CLOSE_COUNT_, close_label));
	json_object_set_new(object, "connect_failures",
			    sum_labelled(daemon, offsetof(struct pep_stats_block, connect_failures),
					 PEP_CONNECT_FAILURE_COUNT_, failure_label));
	return object;
}

static uint64_t held_bytes(const struct pep_daemon *daemon)
{
	uint64_t held = 0;

	for (unsigned int i = 0; i < daemon->n_workers; i++) {
		const struct pep_stats_block *b = pep_stats_worker(daemon->stats, i)->block;

		held += pep_stats_word_get(&b->gauges[PEP_GAUGE_HELD_DOWNLINK_BYTES]);
		held += pep_stats_word_get(&b->gauges[PEP_GAUGE_HELD_UPLINK_BYTES]);
	}
	return held;
}

static const char *state_name(const struct pep_daemon *daemon)
{
	if (daemon->draining)
		return pep_stats_state_name(PEP_STATS_STATE_DRAINING);
	return pep_stats_state_name(daemon->bypass ? PEP_STATS_STATE_BYPASS
						   : PEP_STATS_STATE_RUNNING);
}

static void run_status(struct pep_control_request *request, int argc, char **argv, void *context)
{
	struct pep_daemon *daemon = context;
	const struct pep_conf *conf = daemon->conf;
	uint64_t pending, flows = daemon_flows(daemon, &pending);
	json_t *reply;

	(void)argc;
	(void)argv;
	reply = json_pack(
		"{s:s, s:s, s:i, s:f, s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "version",
		PACKAGE_VERSION, "state", state_name(daemon), "pid", (int)getpid(),
		"uptime_seconds", (double)(pep_clock_mono_ns() - daemon->start_ns) / 1e9, "workers",
		(int)daemon->n_workers, "accept",
		conf->accept == PEP_ACCEPT_EARLY ? "early" : "verified", "source",
		conf->source == PEP_SOURCE_CLIENT ? "client" : "gateway", "config_file",
		daemon->conf_path, "config_generation", (json_int_t)daemon->generation, "flows",
		(json_int_t)(flows - pending), "pending", (json_int_t)pending, "flows_limit",
		(json_int_t)daemon->max_flows, "held_bytes", (json_int_t)held_bytes(daemon),
		"memory_limit_bytes", (json_int_t)conf->relay.memory_bytes);
	json_object_set_new(reply, "wireless_interfaces",
			    interfaces(conf->wireless_interfaces, conf->n_wireless_interfaces));
	json_object_set_new(reply, "wired_interfaces",
			    interfaces(conf->wired_interfaces, conf->n_wired_interfaces));
	json_object_set_new(reply, "congestion_control", controls(conf));
	json_object_set_new(reply, "guard", json_boolean(daemon->guard_event != NULL));
	json_object_set_new(reply, "counters", counters(daemon));
	pep_control_ok(request, reply);
}

static void run_version(struct pep_control_request *request, int argc, char **argv, void *context)
{
	(void)argc;
	(void)argv;
	(void)context;
	pep_control_ok(request, json_pack("{s:s}", "version", PACKAGE_VERSION));
}

/* -- changes of what happens to new flows ---------------------------------------------------------
 */

static void intake_done(struct pep_daemon *daemon, int result, void *user)
{
	struct pep_control_request *request = user;

	if (result)
		pep_control_fail(request, "the workers did not take it: %s", strerror(-result));
	else
		pep_control_ok(request, json_pack("{s:s}", "state", state_name(daemon)));
}

static void set_intake(struct pep_control_request *request, struct pep_daemon *daemon)
{
	int err = daemon_set_intake(daemon, intake_done, request);

	pep_notice("new flows: state=%s", state_name(daemon));
	if (err)
		pep_control_fail(request, "the workers are busy: %s", strerror(-err));
}

static void run_drain(struct pep_control_request *request, int argc, char **argv, void *context)
{
	struct pep_daemon *daemon = context;
	unsigned long seconds = 0;
	char *end;

	if (argc == 1) {
		errno = 0;
		seconds = strtoul(argv[0], &end, 10);
		if (errno || *end || argv[0][0] == '-' || seconds > 86400) {
			pep_control_fail(request, "'%s' is no number of seconds from 0 to 86400",
					 argv[0]);
			return;
		}
	}
	daemon->draining = true;
	daemon->drain_deadline_ns =
		argc == 1 ? pep_clock_mono_ns() + (uint64_t)seconds * 1000000000u : 0;
	set_intake(request, daemon);
}

static void run_resume(struct pep_control_request *request, int argc, char **argv, void *context)
{
	struct pep_daemon *daemon = context;

	(void)argc;
	(void)argv;
	daemon->draining = false;
	daemon->bypass = false;
	set_intake(request, daemon);
}

static void run_bypass(struct pep_control_request *request, int argc, char **argv, void *context)
{
	struct pep_daemon *daemon = context;

	(void)argc;
	if (strcmp(argv[0], "on") != 0 && strcmp(argv[0], "off") != 0) {
		pep_control_fail(request, "'%s' is neither 'on' nor 'off'", argv[0]);
		return;
	}
	daemon->bypass = strcmp(argv[0], "on") == 0;
	set_intake(request, daemon);
}

/* -- flows ----------------------------------------------------------------------------------------
 */

static void kill_done(struct pep_daemon *daemon, int result, void *user)
{
	(void)daemon;
	if (result)
		pep_control_fail(user, "no such flow");
	else
		pep_control_ok(user, NULL);
}

static void run_kill(struct pep_control_request *request, int argc, char **argv, void *context)
{
	struct pep_daemon *daemon = context;
	struct pep_mail mail = {.type = PEP_MAIL_KILL};
	int err;

	(void)argc;
	if (pep_stats_flow_id_parse(argv[0], &mail.value) < 0) {
		pep_control_fail(request, "'%s' is no flow id (as 'edgepepctl flows' prints it)",
				 argv[0]);
		return;
	}
	err = daemon_ask_all(daemon, &mail, kill_done, request);
	if (err)
		pep_control_fail(request, "the workers are busy: %s", strerror(-err));
}

/* -- reload ---------------------------------------------------------------------------------------
 */

static void add_change(const char *name, const char *before, const char *after, bool restart,
		       void *user)
{
	json_array_append_new(user, json_pack("{s:s, s:s, s:s, s:b}", "key", name, "before", before,
					      "after", after, "needs_restart", restart));
}

static void run_reload(struct pep_control_request *request, int argc, char **argv, void *context)
{
	struct pep_daemon *daemon = context;
	struct pep_conf *before;
	char errors[512];
	json_t *changes;

	(void)argc;
	(void)argv;
	if (daemon_reload(daemon, &before, errors) < 0) {
		errors[strcspn(errors, "\n")] = '\0';
		pep_error("reload refused, the old configuration stays: %s", errors);
		pep_control_fail(request, "%s", errors[0] ? errors : "the file cannot be read");
		return;
	}
	changes = json_array();
	(void)pep_conf_diff(before, daemon->conf, add_change, changes);
	pep_conf_free(before);
	pep_control_ok(request, json_pack("{s:I, s:o}", "config_generation",
					  (json_int_t)daemon->generation, "changes", changes));
}

const struct pep_control_command daemon_commands[] = {
	{"status", "", 0, 0, run_status},        {"version", "", 0, 0, run_version},
	{"flows kill", "ID", 1, 1, run_kill},    {"reload", "", 0, 0, run_reload},
	{"drain", "[SECONDS]", 0, 1, run_drain}, {"resume", "", 0, 0, run_resume},
	{"bypass", "on|off", 1, 1, run_bypass},  {.name = NULL},
};
