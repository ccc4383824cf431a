/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order matters: groups while still root, then the user, then the capabilities. */
#include "config.h"

#include "mon/privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

static int become(const struct passwd *pw, const char *group)
{
	const struct group *gr = getgrnam(group);
	gid_t groups[2] = {pw->pw_gid, gr ? gr->gr_gid : pw->pw_gid};

	if (setgroups(gr ? 2 : 1, groups) < 0 || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
		return -errno;
	if (setuid(0) == 0) /* it must not work */
		return -EPERM;
	return 0;
}

int pep_privileges_drop(const char *user, const char *group)
{
	const struct passwd *pw = NULL;
	int missing = 0, err;

	if (getuid() == 0) {
		pw = getpwnam(user);
		missing = pw ? 0 : -ENOENT;
	}
	if (pw) {
		err = become(pw, group);
		if (err)
			return err;
	}
	capng_clear(CAPNG_SELECT_BOTH);
	if (missing)
		(void)capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED,
				   CAP_DAC_READ_SEARCH);
	/* The bounding set can be emptied by root only; no_new_privs covers the others. */
	if (capng_apply(missing ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) < 0)
		return -EPERM;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return missing;
}
