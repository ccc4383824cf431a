/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepd: command line, configuration, and the daemon's life. */
#include "base/conf.h"
#include "base/log.h"
#include "base/usage.h"
#include "proxy/daemon.h"

#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_CHECK = PEP_USAGE_LONG,
	OPTION_DUMP
};

static const struct pep_usage_option options[] = {
	{'c', "config", "FILE", "read FILE in place of " PEP_CONF_FILE},
	{OPTION_CHECK, "check-config", NULL, "check the configuration and exit: 0 good, 2 bad"},
	{OPTION_DUMP, "dump-config", NULL, "print the configuration in effect and exit"},
	{0},
};

static const struct pep_usage usage = {
	.program = "edgepepd",
	.synopsis = "[OPTION...]",
	.summary =
		"Splits TCP connections at the radio boundary. Stays in the foreground and logs to "
		"stderr.",
	.options = options,
	.more = "Steering rules are loaded with 'edgepepctl rules up'; see edgepepd(8).\n",
};

/* What the library says about failures that we see, count and tell ourselves. */
static void on_library_log(int severity, const char *text)
{
	(void)severity;
	pep_debug("libevent: %s", text);
}

static int run(const char *path, struct pep_conf *conf)
{
	struct pep_daemon *daemon;
	int err;

	event_set_log_callback(on_library_log);
	err = pep_daemon_new(path, conf, &daemon);
	if (err) {
		pep_error("not started: %s", strerror(-err));
		pep_conf_free(conf);
		return EXIT_FAILURE;
	}
	err = pep_daemon_run(daemon);
	pep_daemon_free(daemon);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *path = PEP_CONF_FILE;
	char errors[PEP_CONF_ERRORS_SIZE];
	bool check = false, dump = false;
	struct pep_conf *conf;
	int option, err;

	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		switch (option) {
		case 'c':
			path = optarg;
			break;
		case OPTION_CHECK:
			check = true;
			break;
		case OPTION_DUMP:
			dump = true;
			break;
		case PEP_USAGE_DONE:
			return EXIT_SUCCESS;
		default:
			return PEP_EXIT_USAGE;
		}
	}
	if (optind < argc)
		return pep_usage_error(&usage, "unexpected argument '%s'", argv[optind]);
	err = pep_conf_load_apart(path, !dump, errors, sizeof(errors), &conf);
	if (err) {
		fputs(errors, stderr);
		return err == -ENOMEM || err == -EAGAIN ? EXIT_FAILURE : PEP_EXIT_USAGE;
	}
	if (dump)
		pep_conf_dump(conf, stdout);
	if (check || dump) {
		if (check)
			printf("%s: good\n", path);
		pep_conf_free(conf);
		return EXIT_SUCCESS;
	}
	pep_log_init("edgepepd", (enum pep_log_level)conf->log_level);
	return run(path, conf);
}
