/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_PRIVILEGES_H
#define PEP_PROXY_PRIVILEGES_H

/* What the daemon may do: CAP_NET_ADMIN and CAP_NET_RAW, nothing else, and no way back. */

#include <stdbool.h>
#include <sys/types.h>

/** Looks a user up. Returns 0 or -ENOENT. */
int pep_user_lookup(const char *name, uid_t *ret_uid, gid_t *ret_gid);

/** Looks a group up. Returns 0 or -ENOENT. */
int pep_group_lookup(const char *name, gid_t *ret_gid);

/**
 * Keeps the two capabilities in the permitted and effective sets, empties bounding, inheritable and
 * ambient sets, becomes @uid:@gid when the process is root, sets no_new_privs, and then tries to
 * get more back, which must fail.
 *
 * Returns 0; -EPERM when a needed capability is not there to keep; -ENOTRECOVERABLE when something
 * could be regained.
 */
int pep_privileges_drop(uid_t uid, gid_t gid);

#endif
