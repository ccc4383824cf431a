/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_DAEMON_H
#define PEP_PROXY_DAEMON_H

/* The main thread of edgepepd: workers, signals, control socket, heartbeat, reload. */

#include "base/conf.h"

struct pep_daemon;

/**
 * Opens everything, drops privileges and starts the workers. Says on the log what is wrong.
 *
 * @conf_path  borrowed; read again on reload.
 * @conf       taken on success only.
 *
 * Returns 0 or a negative errno.
 */
int pep_daemon_new(const char *conf_path, struct pep_conf *conf, struct pep_daemon **ret);

/** Runs until a signal or the end of a drain. Returns 0 or a negative errno. */
int pep_daemon_run(struct pep_daemon *daemon);

/** Ends all flows with RST, removes the socket and the stats file. NULL is a no-op. */
void pep_daemon_free(struct pep_daemon *daemon);

#endif
