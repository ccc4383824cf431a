/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child in a network namespace of its own loads rules and says how they look then. The host's own
 * rules are not touched, and everything is gone with the child.
 */
#include "config.h"

#include "ctl/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/rules_host.h"
#include "ctl/run.h"

#define SAVE_MAX (4u << 20)

/* In the child: one character of verdict, then the error or what iptables-save printed. */
static void child_work(enum rules_family family, const char *input, FILE *out)
{
	struct rules_report report = {.warnings = json_array()};
	char program[32];
	const char *const save[] = {program, NULL};
	struct pep_run run;

	if (unshare(CLONE_NEWNET) < 0) {
		fputc('n', out);
		return;
	}
	(void)rules_set_create(family);
	if (rules_host_restore(family, input, false, &report)) {
		fprintf(out, "r%s", report.error);
		return;
	}
	(void)snprintf(program, sizeof(program), "%s-save", rules_family_tool(family));
	if (pep_run(save, NULL, 20, &run)) {
		fprintf(out, "r'%s' could not be run", program);
		return;
	}
	fprintf(out, "o%s", run.out);
}

static char *read_all(int fd)
{
	char *text = calloc(1, SAVE_MAX);
	size_t used = 0;

	while (text && used < SAVE_MAX - 1) {
		ssize_t n = read(fd, text + used, SAVE_MAX - 1 - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	return text;
}

static char *run_child(enum rules_family family, const char *input)
{
	char *text = NULL;
	int pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return NULL;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		FILE *out = fdopen(pipes[1], "w");

		if (out) {
			child_work(family, input, out);
			(void)fclose(out);
		}
		_exit(0);
	}
	(void)close(pipes[1]);
	if (pid > 0) {
		text = read_all(pipes[0]);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)close(pipes[0]);
	return text;
}

enum doctor_probe doctor_probe_rules(enum rules_family family, const char *restore_input,
				     char **ret_save, char error[RULES_ERROR_SIZE])
{
	char *text = run_child(family, restore_input);
	enum doctor_probe result = DOCTOR_PROBE_NO_NAMESPACE;

	if (text && text[0] == 'r') {
		(void)snprintf(error, RULES_ERROR_SIZE, "%s", text + 1);
		result = DOCTOR_PROBE_REFUSED;
	} else if (text && text[0] == 'o') {
		result = DOCTOR_PROBE_OK;
		if (ret_save) {
			memmove(text, text + 1, strlen(text));
			*ret_save = text;
			text = NULL;
		}
	}
	free(text);
	return result;
}
