/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CLI_H
#define PEP_CCA_CLI_H

/* What the sub-commands of edgepep-cca share. */

#include <jansson.h>

#include "base/conf.h"
#include "base/usage.h"
#include "cca/host.h"
#include "cca/load.h"
#include "cca/pin.h"

#define CLI_PARAMS_MAX 64 /* -p options of one command */

enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_FAILURE = 1, /* the kernel or the system refused */
	CLI_EXIT_USAGE = PEP_EXIT_USAGE,
	CLI_EXIT_UNSUPPORTED = 3, /* this kernel cannot carry the controls at all */
	CLI_EXIT_BUSY = 4,        /* in use with other parameters, and --replace not given */
};

struct cli {
	const char *conf_path;
	bool conf_given; /* -c: the file must exist */
	const char *pin_dir;
	const char *params[CLI_PARAMS_MAX];
	unsigned int n_params;
	bool json, verbose, replace;
	struct pep_cca_host host;
};

/** Sub-commands; @names are the words behind the command. They return an exit code. */
int cli_load(struct cli *cli, int n, char **names);
int cli_unload(struct cli *cli, int n, char **names);
int cli_list(struct cli *cli, int n, char **names);
int cli_probe(struct cli *cli, int n, char **names);
int cli_params(struct cli *cli, int n, char **names);
int cli_flows(struct cli *cli, int n, char **names);

/**
 * Marks in @ret which controls @names mean; all of them when there are none. Returns 0 or -EINVAL
 * after one line on stderr.
 */
int cli_kinds(int n, char **names, bool ret[PEP_CCA_KIND_COUNT_]);

/** One line "edgepep-cca: ..." on stderr. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** What libbpf and the verifier said, on stderr, when --verbose asks for it. */
void cli_error_log(const struct cli *cli);

/** Prints @object (taken) on one line. */
void cli_print_json(json_t *object);

/** The parameters of @config as a JSON object. */
json_t *cli_params_json(const struct pep_cca_config *config);

#endif
