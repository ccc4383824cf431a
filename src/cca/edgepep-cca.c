/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepep-cca: puts our congestion controls into the kernel and takes them out again. */
#include "cca/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option_id {
	OPTION_JSON = PEP_USAGE_LONG,
	OPTION_REPLACE,
	OPTION_PIN_DIR,
};

static const struct pep_usage_option options[] = {
	{'c', "config", "FILE", "read FILE in place of " PEP_CONF_FILE},
	{'p', "param", "KEY=VALUE",
	 "load: set a parameter, over the configuration; may be repeated"},
	{OPTION_REPLACE, "replace", NULL,
	 "load: replace a control that sockets use; they keep the old one"},
	{OPTION_PIN_DIR, "pin-dir", "DIR",
	 "where observers find the state of connections (" PEP_CCA_PIN_DIR ");\nnone: nowhere"},
	{OPTION_JSON, "json", NULL, "print the result as JSON"},
	{'v', "verbose", NULL, "on failure also print what libbpf and the verifier said"},
	{0},
};

static const struct pep_usage usage = {
	"edgepep-cca",
	"[OPTION...] COMMAND [NAME...]",
	"Loads congestion controls into the kernel, where any socket may select them by name.",
	options,
	"\nCommands:\n"
	"  load [NAME...]    load the controls named, or all\n"
	"  unload [NAME...]  take them out; sockets that use one keep it until they close\n"
	"  list              show what is loaded, with parameters and users\n"
	"  params [NAME...]  show every parameter with range and default\n"
	"  flows             show the state of every connection that one drives\n"
	"  probe             say what this kernel can do; exit 0 if the controls run, 3 if not\n"
	"\nNames: pep_bbr, pep_bbr_acd, pep_bbr_a, pep_bbr_d, pep_bwe\n"
	"\nExit codes: 0 done, 1 failed, 2 bad input, 3 the kernel cannot, 4 in use (see "
	"--replace)\n",
	false,
};

static const struct {
	const char *name;
	int (*run)(struct cli *cli, int n, char **names);
	bool takes_names;
} commands[] = {
	{"load", cli_load, true},     {"unload", cli_unload, true}, {"list", cli_list, false},
	{"params", cli_params, true}, {"flows", cli_flows, false},  {"probe", cli_probe, false},
};

void cli_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("edgepep-cca: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

void cli_error_log(const struct cli *cli)
{
	if (cli->verbose && *pep_cca_load_log())
		fprintf(stderr, "%s\n", pep_cca_load_log());
}

void cli_print_json(json_t *object)
{
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

json_t *cli_params_json(const struct pep_cca_config *config)
{
	enum pep_cca_kind kind = (enum pep_cca_kind)config->kind;
	const struct pep_cca_param_def *def;
	json_t *object = json_object();
	char text[32];

	for (size_t i = 0; (def = pep_cca_param_get(kind, i)); i++) {
		uint32_t value = pep_cca_param_value(def, config);

		pep_cca_param_format(def, value, text, sizeof(text));
		json_object_set_new(object, def->key,
				    strchr(def->unit, '|') ? json_string(text)
							   : json_integer(value));
	}
	return object;
}

int cli_kinds(int n, char **names, bool ret[PEP_CCA_KIND_COUNT_])
{
	enum pep_cca_kind kind;

	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++)
		ret[i] = n == 0;
	for (int i = 0; i < n; i++) {
		if (pep_cca_kind_parse(names[i], &kind) < 0) {
			cli_error("no control \"%s\"; there are pep_bbr, pep_bbr_acd, pep_bbr_a, "
				  "pep_bbr_d and pep_bwe",
				  names[i]);
			return -EINVAL;
		}
		ret[kind] = true;
	}
	return 0;
}

static int run(struct cli *cli, int argc, char **argv)
{
	if (argc == 0)
		return pep_usage_error(&usage, "a command is missing");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (argc > 1 && !commands[i].takes_names)
			return pep_usage_error(&usage, "%s takes no \"%s\"", argv[0], argv[1]);
		if (cli->n_params && commands[i].run != cli_load)
			return pep_usage_error(&usage, "%s takes no parameters", argv[0]);
		return commands[i].run(cli, argc - 1, argv + 1);
	}
	return pep_usage_error(&usage, "no command \"%s\"", argv[0]);
}

int main(int argc, char **argv)
{
	struct cli cli = {.conf_path = PEP_CONF_FILE, .pin_dir = PEP_CCA_PIN_DIR};
	int option, code;

	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		switch (option) {
		case 'c':
			cli.conf_path = optarg;
			cli.conf_given = true;
			break;
		case 'p':
			if (cli.n_params == CLI_PARAMS_MAX)
				return pep_usage_error(&usage, "more than %d parameters",
						       CLI_PARAMS_MAX);
			cli.params[cli.n_params++] = optarg;
			break;
		case OPTION_REPLACE:
			cli.replace = true;
			break;
		case OPTION_PIN_DIR:
			cli.pin_dir = strcmp(optarg, "none") == 0 ? NULL : optarg;
			break;
		case OPTION_JSON:
			cli.json = true;
			break;
		case 'v':
			cli.verbose = true;
			break;
		case PEP_USAGE_DONE:
			return CLI_EXIT_OK;
		default:
			return CLI_EXIT_USAGE;
		}
	}
	pep_cca_load_quiet();
	code = run(&cli, argc - optind, argv + optind);
	if (fflush(stdout) != 0 && code == CLI_EXIT_OK)
		code = CLI_EXIT_FAILURE;
	return code;
}
