/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ctl_option(struct ctl *ctl, int option, int *ret_exit)
{
	switch (option) {
	case 'c':
		ctl->conf_path = optarg;
		return false;
	case CTL_OPTION_JSON:
		ctl->json = true;
		return false;
	case PEP_USAGE_DONE:
		*ret_exit = CTL_EXIT_OK;
		return true;
	default:
		*ret_exit = CTL_EXIT_USAGE;
		return true;
	}
}

bool ctl_options(struct ctl *ctl, const struct pep_usage *usage, int argc, char **argv,
		 int *ret_exit)
{
	int option;

	while ((option = pep_usage_next(usage, argc, argv)) != PEP_USAGE_END)
		if (ctl_option(ctl, option, ret_exit))
			return true;
	return false;
}

int ctl_fail(const struct ctl *ctl, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "edgepepctl: %s\n", text);
	if (ctl->json)
		(void)ctl_print_json(json_pack("{s:b, s:s}", "ok", 0, "error", text));
	return CTL_EXIT_FAILURE;
}

int ctl_load_conf(const struct ctl *ctl, struct pep_conf **ret)
{
	int err = pep_conf_load(ctl->conf_path, stderr, ret);

	if (!err)
		return CTL_EXIT_OK;
	return err == -EINVAL || err == -ENOENT ? CTL_EXIT_USAGE : CTL_EXIT_FAILURE;
}

int ctl_print_json(json_t *object)
{
	int err = object ? json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) : -1;

	json_decref(object);
	if (err || putchar('\n') == EOF || fflush(stdout) != 0) {
		fprintf(stderr, "edgepepctl: the result could not be written\n");
		return CTL_EXIT_FAILURE;
	}
	return CTL_EXIT_OK;
}
