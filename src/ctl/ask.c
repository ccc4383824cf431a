/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/control_client.h"

#define PATIENCE_MS 5000

int ctl_run_dir(const struct ctl *ctl, char run_dir[CTL_RUN_DIR_SIZE])
{
	struct pep_conf *conf;
	int err = pep_conf_load(ctl->conf_path, stderr, &conf);

	if (err == -EINVAL) {
		fprintf(stderr, "edgepepctl: warning: '%s' has errors, using run-dir '%s'\n",
			ctl->conf_path, PEP_RUN_DIR);
		(void)snprintf(run_dir, CTL_RUN_DIR_SIZE, "%s", PEP_RUN_DIR);
		return CTL_EXIT_OK;
	}
	if (err)
		return CTL_EXIT_USAGE;
	(void)snprintf(run_dir, CTL_RUN_DIR_SIZE, "%s", conf->run_dir);
	pep_conf_free(conf);
	return CTL_EXIT_OK;
}

static int explain(const struct ctl *ctl, const char *path, int err)
{
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		return ctl_fail(ctl,
				"edgepepd is not running (no answer on '%s'): start it with "
				"'systemctl start edgepep'",
				path);
	case -EACCES:
		return ctl_fail(ctl,
				"no permission to use '%s': run as root or as a member of the "
				"group that owns it",
				path);
	case -ETIMEDOUT:
		return ctl_fail(ctl,
				"edgepepd did not answer on '%s' within %d s: it hangs; "
				"'systemctl restart edgepep' replaces it",
				path, PATIENCE_MS / 1000);
	case -EPROTO:
		return ctl_fail(ctl, "what answers on '%s' is no edgepepd of this version", path);
	default:
		return ctl_fail(ctl, "'%s': %s", path, strerror(-err));
	}
}

int ctl_ask(const struct ctl *ctl, const char *request, json_t **ret)
{
	char run_dir[CTL_RUN_DIR_SIZE], path[256];
	const char *error;
	json_t *reply;
	int err = ctl_run_dir(ctl, run_dir);

	if (err)
		return err;
	err = pep_control_path(run_dir, path, sizeof(path));
	if (!err)
		err = pep_control_call(path, request, PATIENCE_MS, &reply);
	if (err)
		return explain(ctl, path, err);
	if (json_is_true(json_object_get(reply, "ok"))) {
		*ret = reply;
		return CTL_EXIT_OK;
	}
	error = json_string_value(json_object_get(reply, "error"));
	err = ctl_fail(ctl, "%s", error ? error : "refused without a reason");
	json_decref(reply);
	return err;
}
