/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_LEG_INTERNAL_H
#define PEP_PROXY_LEG_INTERNAL_H

/* Shared by leg.c and leg_buffer.c. */

#include <errno.h>
#include <sys/socket.h>

/** Returns 0 or a negative errno. */
static inline int leg_set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

#endif
