/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sub-commands of edgepep-cca that only look, and unload. */
#include "cca/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cca/state.h"

/* What keeps us from looking, as one line; returns the exit code. */
static int cannot_look(int err)
{
	if (err == -EPERM)
		cli_error("not permitted to look at what is loaded: needs CAP_SYS_ADMIN");
	else
		cli_error("looking at what is loaded: %s", strerror(-err));
	return CLI_EXIT_FAILURE;
}

static bool has_any(const bool present[PEP_CCA_KIND_COUNT_])
{
	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++) {
		if (present[i])
			return true;
	}
	return false;
}

/* Which controls are still registered afterwards. */
static void still_there(const struct pep_cca_host *host, bool ret[PEP_CCA_KIND_COUNT_])
{
	struct pep_cca_loaded loaded;

	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++)
		ret[i] = pep_cca_registry_find(host, (enum pep_cca_kind)i, &loaded) == 0;
}

int cli_unload(struct cli *cli, int n, char **names)
{
	bool wanted[PEP_CCA_KIND_COUNT_], left[PEP_CCA_KIND_COUNT_];
	json_t *list;
	int code = CLI_EXIT_OK;

	if (cli_kinds(n, names, wanted) < 0)
		return CLI_EXIT_USAGE;
	pep_cca_host_probe(&cli->host);
	list = json_array();
	for (int i = 0; i < PEP_CCA_KIND_COUNT_ && code == CLI_EXIT_OK; i++) {
		const char *name = pep_cca_info_get((enum pep_cca_kind)i)->name;
		struct pep_cca_loaded loaded;
		int err;

		if (!wanted[i])
			continue;
		err = pep_cca_registry_find(&cli->host, (enum pep_cca_kind)i, &loaded);
		if (!err)
			err = pep_cca_registry_remove(loaded.map_id);
		if (err && err != -ENOENT) {
			code = cannot_look(err);
			continue;
		}
		if (!cli->json && !err)
			printf("%s: unloaded%s\n", name,
			       loaded.sockets ? "; sockets that use it keep it" : "");
		else if (!cli->json && n > 0)
			printf("%s: was not loaded\n", name);
		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:I}", "name", name, "unloaded", !err,
						"sockets", (json_int_t)(err ? 0 : loaded.sockets)));
	}
	still_there(&cli->host, left);
	if (code == CLI_EXIT_OK && cli->pin_dir && !has_any(left))
		pep_cca_pin_remove(cli->pin_dir);
	if (cli->json)
		cli_print_json(
			json_pack("{s:b, s:O}", "ok", code == CLI_EXIT_OK, "controls", list));
	json_decref(list);
	return code;
}

/* Parameters that differ from their defaults, as "key=value ...". */
static void print_changed(const struct pep_cca_config *config)
{
	enum pep_cca_kind kind = (enum pep_cca_kind)config->kind;
	const struct pep_cca_param_def *def;
	char text[32];

	for (size_t i = 0; (def = pep_cca_param_get(kind, i)); i++) {
		uint32_t value = pep_cca_param_value(def, config);

		if (value == def->defaults[kind])
			continue;
		pep_cca_param_format(def, value, text, sizeof(text));
		printf(" %s=%s", def->key, text);
	}
}

static void list_one(const struct cli *cli, const struct pep_cca_loaded *loaded, json_t *list)
{
	const char *name = pep_cca_info_get(loaded->kind)->name;

	if (!cli->json) {
		printf("%-12s %6u socket(s)", name, loaded->sockets);
		if (loaded->same_version)
			print_changed(&loaded->config);
		else
			printf(" (of another version)");
		putchar('\n');
		return;
	}
	json_array_append_new(
		list,
		json_pack("{s:s, s:I, s:I, s:b, s:o}", "name", name, "sockets",
			  (json_int_t)loaded->sockets, "map_id", (json_int_t)loaded->map_id,
			  "same_version", loaded->same_version, "params",
			  loaded->same_version ? cli_params_json(&loaded->config) : json_null()));
}

int cli_list(struct cli *cli, int n, char **names)
{
	json_t *list = json_array();
	int code = CLI_EXIT_OK;

	(void)n, (void)names;
	pep_cca_host_probe(&cli->host);
	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++) {
		struct pep_cca_loaded loaded;
		int err = pep_cca_registry_find(&cli->host, (enum pep_cca_kind)i, &loaded);

		if (!err) {
			list_one(cli, &loaded, list);
		} else if (err != -ENOENT) {
			code = cannot_look(err);
			break;
		}
	}
	if (cli->json)
		cli_print_json(
			json_pack("{s:b, s:O}", "ok", code == CLI_EXIT_OK, "controls", list));
	json_decref(list);
	return code;
}

int cli_probe(struct cli *cli, int n, char **names)
{
	const struct pep_cca_host *host = &cli->host;
	bool usable;

	(void)n, (void)names;
	pep_cca_host_probe(&cli->host);
	usable = pep_cca_host_usable(host);
	if (cli->json) {
		cli_print_json(json_pack(
			"{s:b, s:s, s:s, s:s, s:I, s:b, s:b, s:b, s:s?}", "ok", usable, "kernel",
			host->release, "support", pep_cca_support_name(host->support), "text",
			pep_cca_support_text(host->support), "cong_control_arguments",
			(json_int_t)host->arguments, "cwnd_event_tx_start", host->tx_start,
			"app_limited", host->app_limited, "jit", host->jit, "variant",
			usable ? pep_cca_variant_name(host->variant) : NULL));
	} else {
		printf("kernel            %s\nsupport           %s: %s\n", host->release,
		       pep_cca_support_name(host->support), pep_cca_support_text(host->support));
		printf("variant           %s (cong_control has %u arguments%s)\n",
		       usable ? pep_cca_variant_name(host->variant) : "none", host->arguments,
		       host->tx_start ? ", cwnd_event_tx_start" : "");
		printf("BPF compiler      %s\n", host->jit ? "on" : "off");
	}
	return usable ? CLI_EXIT_OK : CLI_EXIT_UNSUPPORTED;
}

static void params_json(enum pep_cca_kind kind, json_t *list)
{
	const struct pep_cca_param_def *def;
	json_t *params = json_array();
	char text[32];

	for (size_t i = 0; (def = pep_cca_param_get(kind, i)); i++) {
		pep_cca_param_format(def, def->defaults[kind], text, sizeof(text));
		json_array_append_new(params,
				      json_pack("{s:s, s:s, s:I, s:I, s:s, s:s}", "key", def->key,
						"unit", def->unit, "min", (json_int_t)def->min,
						"max", (json_int_t)def->max, "default", text,
						"help", def->help));
	}
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "name",
					      pep_cca_info_get(kind)->name, "help",
					      pep_cca_info_get(kind)->help, "fallback",
					      pep_cca_info_get(kind)->fallback, "params", params));
}

int cli_params(struct cli *cli, int n, char **names)
{
	bool wanted[PEP_CCA_KIND_COUNT_];
	json_t *list = json_array();

	if (cli_kinds(n, names, wanted) < 0) {
		json_decref(list);
		return CLI_EXIT_USAGE;
	}
	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++) {
		if (wanted[i] && cli->json)
			params_json((enum pep_cca_kind)i, list);
		else if (wanted[i])
			pep_cca_params_print((enum pep_cca_kind)i, stdout);
	}
	if (cli->json)
		cli_print_json(json_pack("{s:b, s:O}", "ok", true, "controls", list));
	json_decref(list);
	return CLI_EXIT_OK;
}

static void flow_line(uint64_t cookie, const struct pep_cca_view *view, void *user)
{
	(void)user;
	printf("%-10" PRIu64 " %-11s %-9s %10.3f %10.3f %10.3f %6.2f %8" PRIu64 " %8" PRIu64
	       " %6" PRIu64 "%s\n",
	       cookie, pep_cca_info_get(view->kind)->name, view->mode,
	       (double)view->bandwidth * 8 / 1e6, view->min_rtt_us / 1e3,
	       view->standing_rtt_us / 1e3, view->pacing_gain / 256.0, view->congestive_losses,
	       view->radio_losses, view->cuts, view->policed ? " policed" : "");
}

static void flow_json(uint64_t cookie, const struct pep_cca_view *view, void *user)
{
	json_array_append_new(
		user,
		json_pack("{s:I, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:I, s:I, s:I, "
			  "s:I}",
			  "cookie", (json_int_t)cookie, "name", pep_cca_info_get(view->kind)->name,
			  "mode", view->mode, "bandwidth_bytes_per_second",
			  (json_int_t)view->bandwidth, "min_rtt_seconds", view->min_rtt_us / 1e6,
			  "standing_rtt_seconds", view->standing_rtt_us / 1e6, "jitter_seconds",
			  view->jitter_us / 1e6, "pacing_gain", view->pacing_gain / 256.0,
			  "cwnd_gain", view->cwnd_gain / 256.0, "policed", view->policed,
			  "congested", view->congested, "congestive_losses",
			  (json_int_t)view->congestive_losses, "radio_losses",
			  (json_int_t)view->radio_losses, "cuts", (json_int_t)view->cuts,
			  "probe_rtts", (json_int_t)view->probe_rtts));
}

int cli_flows(struct cli *cli, int n, char **names)
{
	json_t *list = json_array();
	int count;

	(void)n, (void)names;
	if (!cli->json)
		printf("%-10s %-11s %-9s %10s %10s %10s %6s %8s %8s %6s\n", "COOKIE", "CONTROL",
		       "MODE", "MBIT/S", "MIN_MS", "STAND_MS", "PACING", "CONGEST", "RADIO",
		       "CUTS");
	count = pep_cca_state_list(cli->pin_dir, cli->json ? flow_json : flow_line, list);
	if (count < 0)
		cli_error("%s/" PEP_CCA_FLOWS_FILE ": %s%s",
			  cli->pin_dir ? cli->pin_dir : PEP_CCA_PIN_DIR, strerror(-count),
			  count == -ENOENT ? " (is a control loaded?)" : "");
	else if (cli->json)
		cli_print_json(json_pack("{s:b, s:O}", "ok", true, "flows", list));
	json_decref(list);
	return count < 0 ? CLI_EXIT_FAILURE : CLI_EXIT_OK;
}
