/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The child is always waited for: no path leaves a zombie or a program that outlives us. */
#include "config.h"

#include "ctl/run.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STREAM_IN,
	STREAM_OUT,
	STREAM_ERR,
	STREAM_COUNT,
};

/* One run: our ends of the child's streams, and what came out of it so far. */
struct job {
	pid_t pid;
	int fd[STREAM_COUNT];
	const char *input;
	size_t input_left;
	char *text[STREAM_COUNT];
	size_t used[STREAM_COUNT], room[STREAM_COUNT];
};

static long now_ms(void)
{
	return (long)(pep_clock_mono_ns() / 1000000u);
}

/* Administrators often lack the sbin folders in PATH, and cron always does. */
static bool find_program(const char *name, char *path, size_t size)
{
	static const char sbin[] = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";
	const char *env = getenv("PATH");
	const char *lists[] = {env ? env : "", sbin};

	if (strchr(name, '/')) {
		(void)snprintf(path, size, "%s", name);
		return access(path, X_OK) == 0;
	}
	for (size_t i = 0; i < 2; i++) {
		for (const char *dir = lists[i]; *dir;) {
			int len = (int)strcspn(dir, ":");

			(void)snprintf(path, size, "%.*s/%s", len, dir, name);
			if (len && access(path, X_OK) == 0)
				return true;
			dir += len + (dir[len] == ':');
		}
	}
	return false;
}

static void job_close(struct job *job, int stream)
{
	if (job->fd[stream] >= 0)
		(void)close(job->fd[stream]);
	job->fd[stream] = -1;
}

static int job_spawn(struct job *job, const char *path, const char *const argv[])
{
	int pipes[STREAM_COUNT][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
	posix_spawn_file_actions_t actions;
	int err = 0;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	for (int i = 0; i < STREAM_COUNT && !err; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			err = -errno;
		else
			err = -posix_spawn_file_actions_adddup2(
				&actions, pipes[i][i == STREAM_IN ? 0 : 1], i);
	}
	if (!err)
		err = -posix_spawn(&job->pid, path, &actions, NULL, (char *const *)argv, environ);
	for (int i = 0; i < STREAM_COUNT; i++) {
		int ours = i == STREAM_IN ? 1 : 0;

		if (pipes[i][!ours] >= 0)
			(void)close(pipes[i][!ours]);
		job->fd[i] = pipes[i][ours];
		if (job->fd[i] >= 0)
			(void)fcntl(job->fd[i], F_SETFL, O_NONBLOCK);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return err;
}

static void job_feed(struct job *job)
{
	ssize_t n = write(job->fd[STREAM_IN], job->input, job->input_left);

	if (n > 0) {
		job->input += n;
		job->input_left -= (size_t)n;
	}
	if (!job->input_left || (n < 0 && errno != EAGAIN && errno != EINTR))
		job_close(job, STREAM_IN);
}

static int job_collect(struct job *job, int stream)
{
	ssize_t n;

	if (job->used[stream] + 4096 > job->room[stream]) {
		size_t room = job->room[stream] ? 2 * job->room[stream] : 16384;
		char *text;

		if (room > PEP_RUN_OUTPUT_MAX)
			return -E2BIG;
		text = realloc(job->text[stream], room);
		if (!text)
			return -ENOMEM;
		job->text[stream] = text;
		job->room[stream] = room;
	}
	n = read(job->fd[stream], job->text[stream] + job->used[stream],
		 job->room[stream] - job->used[stream] - 1);
	if (n > 0)
		job->used[stream] += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		job_close(job, stream);
	return 0;
}

static int job_pump(struct job *job, long deadline_ms)
{
	while (job->fd[STREAM_OUT] >= 0 || job->fd[STREAM_ERR] >= 0) {
		struct pollfd p[STREAM_COUNT] = {
			{.fd = job->fd[STREAM_IN], .events = POLLOUT},
			{.fd = job->fd[STREAM_OUT], .events = POLLIN},
			{.fd = job->fd[STREAM_ERR], .events = POLLIN},
		};
		long left = deadline_ms - now_ms();
		int err = 0;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(p, STREAM_COUNT, (int)left) < 0 && errno != EINTR)
			return -errno;
		if (p[STREAM_IN].revents)
			job_feed(job);
		for (int i = STREAM_OUT; i <= STREAM_ERR && !err; i++)
			if (p[i].revents)
				err = job_collect(job, i);
		if (err)
			return err;
	}
	return 0;
}

static int job_wait(struct job *job)
{
	int status = 0;

	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* An empty stream is an empty string, so that callers never meet NULL. */
static int job_finish_text(struct job *job)
{
	for (int i = STREAM_OUT; i <= STREAM_ERR; i++) {
		if (!job->text[i])
			job->text[i] = calloc(1, 1);
		if (!job->text[i])
			return -ENOMEM;
		job->text[i][job->used[i]] = '\0';
	}
	return 0;
}

int pep_run(const char *const argv[], const char *input, unsigned int timeout_s,
	    struct pep_run *ret)
{
	struct job job = {.pid = -1, .fd = {-1, -1, -1}};
	void (*old_sigpipe)(int);
	char path[512];
	int status = 0;
	int err;

	if (!find_program(argv[0], path, sizeof(path)))
		return -ENOENT;
	job.input = input ? input : "";
	job.input_left = strlen(job.input);
	old_sigpipe = signal(SIGPIPE, SIG_IGN);

	err = job_spawn(&job, path, argv);
	if (!err && !job.input_left)
		job_close(&job, STREAM_IN);
	if (!err)
		err = job_pump(&job, now_ms() + (long)timeout_s * 1000);
	if (err && job.pid > 0)
		(void)kill(job.pid, SIGKILL);
	for (int i = 0; i < STREAM_COUNT; i++)
		job_close(&job, i);
	if (job.pid > 0)
		status = job_wait(&job);
	(void)signal(SIGPIPE, old_sigpipe);

	if (!err)
		err = job_finish_text(&job);
	if (err) {
		free(job.text[STREAM_OUT]);
		free(job.text[STREAM_ERR]);
		return err;
	}
	*ret = (struct pep_run){status, job.text[STREAM_OUT], job.text[STREAM_ERR]};
	return 0;
}

void pep_run_fini(struct pep_run *run)
{
	free(run->out);
	free(run->err);
	*run = (struct pep_run){0};
}

const char *pep_run_first_line(const char *text, char *line, size_t size)
{
	size_t len;

	text += strspn(text, "\r\n \t");
	len = strcspn(text, "\r\n");
	(void)snprintf(line, size, "%.*s", (int)len, text);
	return line;
}
