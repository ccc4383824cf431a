/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_PRIVILEGES_H
#define PEP_MON_PRIVILEGES_H

/**
 * Gives up all that root has: becomes @user, in its own group and in @group (which may read the
 * stats segment), without a capability and without a way back. Started without root it only makes
 * sure that nothing can be gained.
 *
 * Returns 0; -ENOENT when @user does not exist (then root stays root, but without capabilities
 * other than reading files); or another negative errno, upon which the caller must not go on.
 */
int pep_privileges_drop(const char *user, const char *group);

#endif
