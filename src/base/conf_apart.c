/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libconfuse does not look whether it got memory. So a program that must live reads its file in a
 * child: the configuration is one flat structure, which comes back in memory that both share.
 */
#include "base/conf.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 1 /* a file in a network's folder, or a pipe, may never come */

struct answer {
	int err;
	struct pep_conf conf;
	char errors[PEP_CONF_ERRORS_SIZE];
};

static void child(const char *path, bool for_daemon, struct answer *answer)
{
	const struct itimerval patience = {.it_value.tv_sec = PATIENCE_S};
	struct pep_conf *conf;
	FILE *out;
	int err;

	/* It has copies of the parent's sockets, which must not outlive it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGALRM, SIG_DFL);
	(void)setitimer(ITIMER_REAL, &patience, NULL);
	out = fmemopen(answer->errors, sizeof(answer->errors), "w");
	if (!out)
		return;
	err = pep_conf_load(path, out, &conf);
	if (!err && for_daemon)
		err = pep_conf_require_interfaces(conf, path, out);
	if (!err && for_daemon)
		err = pep_conf_require_descriptors(conf, path, out);
	(void)fclose(out);
	if (!err)
		answer->conf = *conf;
	answer->err = err;
}

/* What became of the child, when it left no answer. */
static int no_answer(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? -ETIMEDOUT : -ENOMEM;
}

static int ask_child(const char *path, bool for_daemon, struct answer *answer)
{
	int status = 0;
	pid_t pid;

	answer->err = -ECHILD;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		child(path, for_daemon, answer);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return answer->err == -ECHILD ? no_answer(status) : answer->err;
}

static void say(const char *path, int err, const char *told, char *errors, size_t size)
{
	if (told[0])
		(void)snprintf(errors, size, "%s", told);
	else
		(void)snprintf(errors, size, "%s: cannot be read: %s\n", path, strerror(-err));
}

int pep_conf_load_apart(const char *path, bool for_daemon, char *errors, size_t size,
			struct pep_conf **ret)
{
	struct pep_conf *conf = malloc(sizeof(*conf));
	struct answer *answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err = -ENOMEM;

	if (conf && answer != MAP_FAILED)
		err = ask_child(path, for_daemon, answer);
	if (!err) {
		*conf = answer->conf;
		*ret = conf;
		conf = NULL;
	} else {
		say(path, err, answer != MAP_FAILED ? answer->errors : "", errors, size);
	}
	free(conf);
	if (answer != MAP_FAILED)
		munmap(answer, sizeof(*answer));
	return err;
}
