/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_CONTROL_CLIENT_H
#define PEP_BASE_CONTROL_CLIENT_H

/* Asks the daemon over its control socket: one line out, one JSON object back. Blocking. */

#include <jansson.h>
#include <stddef.h>

#define PEP_CONTROL_SOCKET      "control.sock"
#define PEP_CONTROL_REQUEST_MAX 4096      /* bytes of a request, with its newline */
#define PEP_CONTROL_REPLY_MAX   (1 << 20) /* bytes of a reply that are read */

/** The socket's path in @run_dir. Returns 0, or -ENAMETOOLONG when it does not fit an address. */
int pep_control_path(const char *run_dir, char *path, size_t size);

/**
 * Sends @request (without newline) to the socket @path and waits at most @timeout_ms for all of it.
 *
 * Returns 0 and stores the reply in @ret (json_decref it): an object that has "ok", true or false.
 * -ENOENT or -ECONNREFUSED: no daemon; -EACCES: not allowed; -ETIMEDOUT; -EPROTO: the answer was no
 * JSON object with "ok", too long, or cut; -EINVAL: the request is too long or has a newline in it.
 */
int pep_control_call(const char *path, const char *request, unsigned int timeout_ms, json_t **ret);

#endif
