/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_LISTEN_H
#define PEP_MON_LISTEN_H

/* Listening sockets: inherited from systemd, or opened by address. */

/**
 * Opens "address:port", "[v6]:port" or "unix:/path" (a stale socket there is removed, a live one or
 * another file is not). Returns a non-blocking close-on-exec descriptor or a negative errno;
 * -EINVAL for text that is none of these.
 */
int pep_listen_open(const char *text);

/** How many sockets systemd passed (descriptors 3, 4, ...); 0 when none. */
int pep_listen_inherited(void);

#endif
