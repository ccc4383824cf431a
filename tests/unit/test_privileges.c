/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives the privileges up in a child process and tries to get them back. Needs root. */
#include "unit/unit.h"

#include "proxy/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static int get_caps(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return (int)syscall(SYS_capget, &header, data);
}

static int set_caps(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return (int)syscall(SYS_capset, &header, data);
}

/* Each attempt, and whether it succeeded: none may. */
static const char *regained(void)
{
	struct __user_cap_data_struct data[2];
	gid_t root = 0;

	if (setuid(0) == 0 || seteuid(0) == 0)
		return "setuid";
	if (setgid(0) == 0 || setgroups(1, &root) == 0)
		return "setgid";
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (cap == CAP_NET_ADMIN || cap == CAP_NET_RAW)
			continue;
		if (get_caps(data) < 0)
			return "capget";
		data[cap / 32].permitted |= 1u << (cap % 32);
		data[cap / 32].effective |= 1u << (cap % 32);
		if (set_caps(data) == 0)
			return "capset";
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0)
			return "ambient";
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		return "no_new_privs off";
	if (prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) == 0)
		return "securebits";
	if (unshare(CLONE_NEWNS) == 0 || mount("none", "/mnt", "tmpfs", 0, NULL) == 0)
		return "mount";
	if (chroot("/") == 0)
		return "chroot";
	if (open("/etc/shadow", O_RDONLY) >= 0)
		return "/etc/shadow";
	return NULL;
}

/* The two that stay must work: SO_MARK wants the one, a raw socket the other. */
static const char *lost(void)
{
	int mark = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		return "SO_MARK";
	if (socket(AF_INET, SOCK_RAW, 255) < 0)
		return "raw socket";
	return NULL;
}

static void child(void)
{
	const char *what;
	int err = pep_privileges_drop(NOBODY, NOBODY);

	if (err) {
		fprintf(stderr, "drop: %s\n", strerror(-err));
		_exit(1);
	}
	what = regained();
	if (what) {
		fprintf(stderr, "regained: %s\n", what);
		_exit(2);
	}
	what = lost();
	if (what) {
		fprintf(stderr, "lost: %s\n", what);
		_exit(3);
	}
	if (getuid() != NOBODY || getgid() != NOBODY || getgroups(0, NULL) != 0)
		_exit(4);
	_exit(0);
}

static void the_user_of_the_daemon_regains_nothing(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_the_capabilities_it_is_refused(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
			_exit(1);
		_exit(pep_privileges_drop(NOBODY, NOBODY) == -EPERM ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void names_are_looked_up(void **state)
{
	uid_t uid = 7;
	gid_t gid = 7;

	(void)state;
	assert_int_equal(pep_user_lookup("root", &uid, &gid), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(gid, 0);
	uid = gid = 7;
	assert_int_equal(pep_user_lookup("no-such-user-here", &uid, &gid), -ENOENT);
	assert_int_equal(pep_group_lookup("no-such-group-here", &gid), -ENOENT);
	assert_int_equal(uid, 7);
	assert_int_equal(gid, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_user_of_the_daemon_regains_nothing),
		cmocka_unit_test(without_the_capabilities_it_is_refused),
		cmocka_unit_test(names_are_looked_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
