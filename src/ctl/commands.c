/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The only place that lists the sub-commands; --help and the test of the manual page read it. */
#include "ctl/ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct ctl_command ctl_commands[] = {
	{"status", "", "what the daemon does and has done", ctl_status},
	{"flows", "[show ID|history ID|kill ID]", "list flows, show or end one", ctl_flows},
	{"top", "", "watch flows", ctl_top},
	{"rules", "up|down|print", "load, remove or show the steering rules", ctl_rules},
	{"doctor", "", "look for what keeps it from working", ctl_doctor},
	{"probe", "--server A --client A", "measure each segment with iperf3", ctl_probe},
	{"reload", "", "read the configuration again", ctl_reload},
	{"drain", "[--deadline TIME] [--wait]", "split no more, end after the open flows",
	 ctl_drain},
	{"resume", "", "take drain or bypass back", ctl_resume},
	{"bypass", "on|off", "let new connections go end to end", ctl_bypass},
	{0},
};

int ctl_run(struct ctl *ctl, const struct pep_usage *usage, int argc, char **argv)
{
	if (argc == 0)
		return pep_usage_error(usage, "a command is missing");
	for (const struct ctl_command *command = ctl_commands; command->name; command++) {
		if (strcmp(command->name, argv[0]) == 0) {
			optind = 0; /* getopt_long starts anew, with the sub-command's words */
			return command->run(ctl, argc, argv);
		}
	}
	return pep_usage_error(usage, "there is no command '%s'", argv[0]);
}

char *ctl_commands_text(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "\nCommands (each has its own --help):\n");
	for (const struct ctl_command *command = ctl_commands; command->name; command++)
		fprintf(out, "  %-8s %-26s %s\n", command->name, command->args, command->summary);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
