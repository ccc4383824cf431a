/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepep-cca load: every parameter is checked before the first control is touched. */
#include "cca/cli.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

/* Splits "KEY=VALUE" and sets it, for each control that is to be loaded. */
static int set_from_option(struct pep_cca_config configs[], const bool wanted[], const char *text)
{
	const char *sign = strchr(text, '=');
	char why[PEP_CCA_WHY_SIZE], key[64];

	if (!sign || sign == text || (size_t)(sign - text) >= sizeof(key)) {
		cli_error("-p \"%s\": expected key=value, as in -p cut-gain=192", text);
		return -EINVAL;
	}
	memcpy(key, text, (size_t)(sign - text));
	key[sign - text] = '\0';
	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++) {
		if (wanted[i] && pep_cca_param_set(&configs[i], key, sign + 1, why) < 0) {
			cli_error("%s", why);
			return -EINVAL;
		}
	}
	return 0;
}

static int set_from_conf(struct pep_cca_config configs[], const struct pep_conf *conf,
			 const char *path)
{
	char why[PEP_CCA_WHY_SIZE];
	enum pep_cca_kind kind;

	for (unsigned int i = 0; i < conf->n_cca_params; i++) {
		const struct pep_cca_param *param = &conf->cca_params[i];

		if (pep_cca_kind_parse(param->cca, &kind) < 0) {
			cli_error("%s: cca \"%s\": no control of that name", path, param->cca);
			return -EINVAL;
		}
		if (pep_cca_param_set(&configs[kind], param->key, param->value, why) < 0) {
			cli_error("%s: %s", path, why);
			return -EINVAL;
		}
	}
	return 0;
}

/* The group that may observe is the one that may use the control socket. */
static int group_of(const char *name)
{
	struct group *group = name && *name ? getgrnam(name) : NULL;

	return group ? (int)group->gr_gid : -1;
}

static int configure(const struct cli *cli, const bool wanted[], struct pep_cca_config configs[],
		     int *ret_group)
{
	struct pep_conf *conf = NULL;
	int err;

	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++)
		pep_cca_config_init((enum pep_cca_kind)i, &configs[i]);
	if (cli->conf_given || access(cli->conf_path, F_OK) == 0) {
		err = pep_conf_load(cli->conf_path, stderr, &conf);
		if (err)
			return err;
	} else {
		err = pep_conf_new(&conf);
		if (err)
			return err;
	}
	*ret_group = group_of(conf->group);
	err = set_from_conf(configs, conf, cli->conf_path);
	for (unsigned int i = 0; i < cli->n_params && !err; i++)
		err = set_from_option(configs, wanted, cli->params[i]);
	pep_conf_free(conf);
	return err;
}

/* One line on stderr for what went wrong; returns the exit code. */
static int explain(const struct cli *cli, enum pep_cca_kind kind, int err,
		   const struct pep_cca_load_report *report)
{
	const char *name = pep_cca_info_get(kind)->name;

	switch (err) {
	case -EBUSY:
		cli_error("%s: %u socket(s) use one with other parameters or of another version; "
			  "--replace gives new sockets the new one and leaves them theirs",
			  name, report->sockets);
		return CLI_EXIT_BUSY;
	case -EEXIST:
		cli_error("%s: registered already, and we may not inspect it (needs CAP_SYS_ADMIN)",
			  name);
		return CLI_EXIT_FAILURE;
	case -EPERM:
		cli_error("%s: not permitted; needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and "
			  "CAP_SYS_ADMIN to inspect what is loaded",
			  name);
		break;
	case -EOPNOTSUPP:
		cli_error("%s: %s", name, pep_cca_support_text(cli->host.support));
		return CLI_EXIT_UNSUPPORTED;
	default:
		cli_error("%s: the kernel did not take it: %s%s", name, strerror(-err),
			  cli->verbose ? "" : " (-v says more)");
		break;
	}
	cli_error_log(cli);
	return CLI_EXIT_FAILURE;
}

static const char *result_name(enum pep_cca_load_result result)
{
	switch (result) {
	case PEP_CCA_LOAD_NEW:
		return "loaded";
	case PEP_CCA_LOAD_SAME:
		return "already loaded";
	case PEP_CCA_LOAD_REPLACED:
		return "replaced";
	}
	return "?";
}

static void report_one(const struct cli *cli, const struct pep_cca_config *config,
		       const struct pep_cca_load_report *report, json_t *list)
{
	const char *name = pep_cca_info_get((enum pep_cca_kind)config->kind)->name;

	if (!cli->json) {
		printf("%s: %s", name, result_name(report->result));
		if (report->result == PEP_CCA_LOAD_REPLACED && report->sockets)
			printf("; %u socket(s) keep the old one", report->sockets);
		putchar('\n');
		return;
	}
	json_array_append_new(list,
			      json_pack("{s:s, s:s, s:s, s:I, s:b, s:o}", "name", name, "result",
					result_name(report->result), "variant",
					pep_cca_variant_name(cli->host.variant), "old_sockets",
					(json_int_t)report->sockets, "app_limited",
					report->app_limited, "params", cli_params_json(config)));
}

int cli_load(struct cli *cli, int n, char **names)
{
	struct pep_cca_config configs[PEP_CCA_KIND_COUNT_];
	struct pep_cca_load_options options = {.replace = cli->replace, .pin_dir = cli->pin_dir};
	struct pep_cca_load_report report;
	bool wanted[PEP_CCA_KIND_COUNT_];
	int code = CLI_EXIT_OK, observe_error = 0;
	json_t *list;

	if (cli_kinds(n, names, wanted) < 0)
		return CLI_EXIT_USAGE;
	if (configure(cli, wanted, configs, &options.group) < 0)
		return CLI_EXIT_USAGE;
	pep_cca_host_probe(&cli->host);
	if (!pep_cca_host_usable(&cli->host)) {
		cli_error("%s", pep_cca_support_text(cli->host.support));
		return CLI_EXIT_UNSUPPORTED;
	}
	list = json_array();
	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++) {
		int err;

		if (!wanted[i])
			continue;
		err = pep_cca_load(&cli->host, &configs[i], &options, &report);
		if (err) {
			int worse = explain(cli, (enum pep_cca_kind)i, err, &report);

			code = code == CLI_EXIT_OK ? worse : code;
			continue;
		}
		observe_error = report.observe_error ? report.observe_error : observe_error;
		report_one(cli, &configs[i], &report, list);
	}
	if (observe_error)
		cli_error("%s: %s: the state of connections cannot be observed", cli->pin_dir,
			  strerror(-observe_error));
	if (cli->json)
		cli_print_json(
			json_pack("{s:b, s:O}", "ok", code == CLI_EXIT_OK, "controls", list));
	json_decref(list);
	return code;
}
