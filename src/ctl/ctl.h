/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_CTL_H
#define PEP_CTL_CTL_H

/* What the sub-commands of edgepepctl share. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/conf.h"
#include "base/usage.h"

enum ctl_exit {
	CTL_EXIT_OK = 0,
	CTL_EXIT_FAILURE = 1,            /* it could not be done */
	CTL_EXIT_USAGE = PEP_EXIT_USAGE, /* bad command line or configuration */
};

struct ctl {
	const char *conf_path;
	bool json;
};

struct ctl_command {
	const char *name;
	const char *args;                                   /* as the usage line shows them */
	const char *summary;                                /* one line, lower case, no full stop */
	int (*run)(struct ctl *ctl, int argc, char **argv); /* argv[0] is the name */
};

/** The table of sub-commands, ended by one without a name. */
extern const struct ctl_command ctl_commands[];

/** Runs the sub-command argv[0]; @usage is the program's own. Returns the exit code. */
int ctl_run(struct ctl *ctl, const struct pep_usage *usage, int argc, char **argv);

/** Every sub-command with its arguments, for --help; free it. NULL when there is no memory. */
char *ctl_commands_text(void);

/** The options that every sub-command takes; put first in its table. */
#define CTL_OPTIONS                                                       \
	{'c', "config", "FILE", "read FILE in place of " PEP_CONF_FILE},  \
	{                                                                 \
		CTL_OPTION_JSON, "json", NULL, "print the result as JSON" \
	}

enum ctl_option_id {
	CTL_OPTION_JSON = PEP_USAGE_LONG,
	CTL_OPTION_OWN, /* options of one sub-command start here */
};

/**
 * Takes what pep_usage_next returned for one of CTL_OPTIONS, for help and for an error. True when
 * the caller shall return *@ret_exit.
 */
bool ctl_option(struct ctl *ctl, int option, int *ret_exit);

/** For sub-commands with no option of their own; the words begin at argv[optind]. */
bool ctl_options(struct ctl *ctl, const struct pep_usage *usage, int argc, char **argv,
		 int *ret_exit);

/**
 * Says that it could not be done: one line on stderr, and with --json {"ok": false, "error": ...}
 * on stdout. Returns CTL_EXIT_FAILURE.
 */
int ctl_fail(const struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Loads the configuration, messages to stderr. Returns 0, or the exit code. */
int ctl_load_conf(const struct ctl *ctl, struct pep_conf **ret);

/** Prints @object (taken) as one JSON line and returns CTL_EXIT_OK, or CTL_EXIT_FAILURE. */
int ctl_print_json(json_t *object);

/* The sub-commands, one file each. */
int ctl_bypass(struct ctl *ctl, int argc, char **argv);
int ctl_doctor(struct ctl *ctl, int argc, char **argv);
int ctl_drain(struct ctl *ctl, int argc, char **argv);
int ctl_flows(struct ctl *ctl, int argc, char **argv);
int ctl_probe(struct ctl *ctl, int argc, char **argv);
int ctl_reload(struct ctl *ctl, int argc, char **argv);
int ctl_resume(struct ctl *ctl, int argc, char **argv);
int ctl_rules(struct ctl *ctl, int argc, char **argv);
int ctl_status(struct ctl *ctl, int argc, char **argv);
int ctl_top(struct ctl *ctl, int argc, char **argv);

#endif
