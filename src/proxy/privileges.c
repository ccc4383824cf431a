/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

int pep_user_lookup(const char *name, uid_t *ret_uid, gid_t *ret_gid)
{
	const struct passwd *pw = getpwnam(name);

	if (!pw)
		return -ENOENT;
	*ret_uid = pw->pw_uid;
	*ret_gid = pw->pw_gid;
	return 0;
}

int pep_group_lookup(const char *name, gid_t *ret_gid)
{
	const struct group *gr = getgrnam(name);

	if (!gr)
		return -ENOENT;
	*ret_gid = gr->gr_gid;
	return 0;
}

/* Proves that what was given up is gone. */
static bool can_regain(uid_t uid)
{
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_ADMIN) == 0 &&
	    capng_apply(CAPNG_SELECT_CAPS) == 0)
		return true;
	return uid != 0 && setuid(0) == 0;
}

int pep_privileges_drop(uid_t uid, gid_t gid)
{
	const capng_type_t keep = CAPNG_EFFECTIVE | CAPNG_PERMITTED;

	if (capng_get_caps_process() < 0)
		return -errno;
	if (!capng_have_capability(CAPNG_PERMITTED, CAP_NET_ADMIN) ||
	    !capng_have_capability(CAPNG_PERMITTED, CAP_NET_RAW))
		return -EPERM;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	if (geteuid() == 0) {
		capng_clear(CAPNG_SELECT_BOTH);
		capng_updatev(CAPNG_ADD, keep, CAP_NET_ADMIN, CAP_NET_RAW, -1);
		if (uid != 0) {
			if (capng_change_id((int)uid, (int)gid,
					    CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_BOUNDING) < 0)
				return -EPERM;
		} else if (capng_apply(CAPNG_SELECT_BOTH) < 0) {
			return -EPERM;
		}
	} else {
		/* Without CAP_SETPCAP the bounding set stays; no_new_privs makes it moot. */
		capng_clear(CAPNG_SELECT_CAPS);
		capng_updatev(CAPNG_ADD, keep, CAP_NET_ADMIN, CAP_NET_RAW, -1);
		if (capng_apply(CAPNG_SELECT_CAPS) < 0)
			return -EPERM;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (can_regain(uid))
		return -ENOTRECOVERABLE;
	/* The failed attempt left the library's own idea of our sets wrong; the kernel's is right.
	 */
	return capng_get_caps_process() < 0 ? -EIO : 0;
}
