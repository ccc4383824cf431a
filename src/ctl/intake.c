/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl reload, drain, resume, bypass: what happens to new connections. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/control_client.h"
#include "base/units.h"
#include "ctl/ask.h"

#define DEADLINE_MAX_S 86400
#define GRACE_S        5

enum {
	OPTION_DEADLINE = CTL_OPTION_OWN,
	OPTION_WAIT,
};

/* Asks @request; prints the reply as JSON, or @said. */
static int ask_and_say(const struct ctl *ctl, const char *request, const char *said)
{
	json_t *reply;
	int code = ctl_ask(ctl, request, &reply);

	if (code)
		return code;
	if (ctl->json)
		return ctl_print_json(reply);
	json_decref(reply);
	printf("%s\n", said);
	return CTL_EXIT_OK;
}

static const struct pep_usage_option plain_options[] = {CTL_OPTIONS, {0}};

/* ---- reload ------------------------------------------------------------------------------------
 */

static const struct pep_usage reload_usage = {
	"edgepepctl reload",
	"[OPTION...]",
	"Makes the daemon read its configuration again. New flows get it, flows that are open keep "
	"what\n"
	"they have. Says what changed, and what takes a restart.",
	plain_options,
	NULL,
	false,
};

static void print_changes(const json_t *changes)
{
	json_t *change;
	size_t i;

	if (json_array_size(changes) == 0)
		printf("reloaded; nothing changed\n");
	json_array_foreach(changes, i, change)
	{
		const char *key, *before, *after;
		int restart = 0;

		if (json_unpack(change, "{s:s, s:s, s:s, s:b}", "key", &key, "before", &before,
				"after", &after, "needs_restart", &restart) == 0)
			printf("%s: %s -> %s%s\n", key, before, after,
			       restart ? " (takes effect with 'systemctl restart edgepep')" : "");
	}
}

int ctl_reload(struct ctl *ctl, int argc, char **argv)
{
	json_t *reply;
	int code;

	if (ctl_options(ctl, &reload_usage, argc, argv, &code))
		return code;
	if (argv[optind])
		return pep_usage_error(&reload_usage, "'%s' is not understood", argv[optind]);
	code = ctl_ask(ctl, "reload", &reply);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print_json(reply);
	print_changes(json_object_get(reply, "changes"));
	json_decref(reply);
	return CTL_EXIT_OK;
}

/* ---- drain, resume ------------------------------------------------------------------------------
 */

static const struct pep_usage_option drain_options[] = {
	CTL_OPTIONS,
	{OPTION_DEADLINE, "deadline", "TIME", "end at the latest after TIME: 90s, 5min"},
	{OPTION_WAIT, "wait", NULL, "come back when the daemon has ended"},
	{0}};

static const struct pep_usage drain_usage = {
	"edgepepctl drain",
	"[OPTION...]",
	"New connections go end to end from now on; the daemon ends when its flows have ended, or "
	"at the\n"
	"deadline. 'edgepepctl resume' takes it back.",
	drain_options,
	NULL,
	false,
};

/* "90s" to whole seconds, rounded up. */
static int parse_deadline(const char *text, unsigned int *ret)
{
	uint64_t ms;
	int err = pep_units_parse_time(text, &ms);

	if (err == -ENODATA)
		return pep_usage_error(&drain_usage, "--deadline=%s has no unit (ms, s, min, h)",
				       text);
	if (err || ms > DEADLINE_MAX_S * UINT64_C(1000))
		return pep_usage_error(&drain_usage, "--deadline=%s is no time of at most 24h",
				       text);
	*ret = (unsigned int)((ms + 999) / 1000);
	return CTL_EXIT_OK;
}

/* What one drain is about. */
struct drain {
	unsigned int seconds;
	bool has_deadline, wait;
};

/* The daemon's pid, 0 when none answers. */
static json_int_t daemon_pid(const char *path)
{
	json_t *status;
	json_int_t pid;

	if (pep_control_call(path, "status", 1000, &status))
		return 0;
	pid = json_integer_value(json_object_get(status, "pid"));
	json_decref(status);
	return pid;
}

static int wait_for_end(const struct ctl *ctl, const struct drain *drain)
{
	const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
	char run_dir[CTL_RUN_DIR_SIZE], path[256];
	time_t begin = time(NULL);
	json_int_t pid;

	if (ctl_run_dir(ctl, run_dir) || pep_control_path(run_dir, path, sizeof(path)))
		return CTL_EXIT_FAILURE;
	pid = daemon_pid(path);
	while (pid && daemon_pid(path) == pid) {
		if (drain->has_deadline && time(NULL) - begin > (time_t)drain->seconds + GRACE_S)
			return ctl_fail(ctl, "the daemon is still there %d s after the deadline",
					GRACE_S);
		(void)nanosleep(&pause, NULL);
	}
	return CTL_EXIT_OK;
}

static int run_drain(const struct ctl *ctl, const struct drain *drain)
{
	char request[32] = "drain";
	json_t *reply;
	int code;

	if (drain->has_deadline)
		(void)snprintf(request, sizeof(request), "drain %u", drain->seconds);
	code = ctl_ask(ctl, request, &reply);
	if (code)
		return code;
	if (!ctl->json)
		printf("draining: new connections go end to end, the daemon ends after its "
		       "flows\n");
	if (drain->wait)
		code = wait_for_end(ctl, drain);
	if (ctl->json && !code)
		return ctl_print_json(reply);
	json_decref(reply);
	return code;
}

int ctl_drain(struct ctl *ctl, int argc, char **argv)
{
	struct drain drain = {0};
	int option, code;

	while ((option = pep_usage_next(&drain_usage, argc, argv)) != PEP_USAGE_END) {
		if (option == OPTION_DEADLINE) {
			code = parse_deadline(optarg, &drain.seconds);
			if (code)
				return code;
			drain.has_deadline = true;
		} else if (option == OPTION_WAIT) {
			drain.wait = true;
		} else if (ctl_option(ctl, option, &code)) {
			return code;
		}
	}
	if (argv[optind])
		return pep_usage_error(&drain_usage, "'%s' is not understood", argv[optind]);
	return run_drain(ctl, &drain);
}

static const struct pep_usage resume_usage = {
	"edgepepctl resume",
	"[OPTION...]",
	"Ends 'drain' and 'bypass on': new connections are split again.",
	plain_options,
	NULL,
	false,
};

int ctl_resume(struct ctl *ctl, int argc, char **argv)
{
	int code;

	if (ctl_options(ctl, &resume_usage, argc, argv, &code))
		return code;
	if (argv[optind])
		return pep_usage_error(&resume_usage, "'%s' is not understood", argv[optind]);
	return ask_and_say(ctl, "resume", "running: new connections are split");
}

/* ---- bypass -------------------------------------------------------------------------------------
 */

static const struct pep_usage bypass_usage = {
	"edgepepctl bypass",
	"[OPTION...] on|off",
	"on: new connections go end to end; open flows and the daemon stay. off: they are split "
	"again.",
	plain_options,
	NULL,
	false,
};

int ctl_bypass(struct ctl *ctl, int argc, char **argv)
{
	const char *word;
	int code;

	if (ctl_options(ctl, &bypass_usage, argc, argv, &code))
		return code;
	word = argv[optind];
	if (!word || argv[optind + 1] || (strcmp(word, "on") != 0 && strcmp(word, "off") != 0))
		return pep_usage_error(&bypass_usage, "expected on or off");
	return strcmp(word, "on") == 0
		       ? ask_and_say(ctl, "bypass on", "bypass: new connections go end to end")
		       : ask_and_say(ctl, "bypass off", "running: new connections are split");
}
