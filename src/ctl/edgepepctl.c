/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct pep_usage_option options[] = {CTL_OPTIONS, {0}};

int main(int argc, char **argv)
{
	struct ctl ctl = {.conf_path = PEP_CONF_FILE};
	char *commands = ctl_commands_text();
	const struct pep_usage usage = {
		"edgepepctl",
		"[OPTION...] COMMAND [ARGUMENT...]",
		"Controls edgepep: the steering rules, the daemon, and what there is to see of it.",
		options,
		commands,
		true,
	};
	int code = CTL_EXIT_FAILURE;

	if (commands && !ctl_options(&ctl, &usage, argc, argv, &code))
		code = ctl_run(&ctl, &usage, argc - optind, argv + optind);
	free(commands);
	return code;
}
