/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_ASK_H
#define PEP_CTL_ASK_H

/* Asking the daemon: the errors that everybody meets get their fix here. */

#include "ctl/ctl.h"

#define CTL_RUN_DIR_SIZE 128

/**
 * The run-dir of the configuration. A file with errors must not keep an operator from the daemon:
 * then a warning is printed and the default is used. Returns 0 or the exit code.
 */
int ctl_run_dir(const struct ctl *ctl, char run_dir[CTL_RUN_DIR_SIZE]);

/**
 * Sends @request and stores the daemon's reply, whose "ok" is true, in @ret (json_decref it).
 * Returns 0, or the exit code when there is no daemon or it refused; that has been said.
 */
int ctl_ask(const struct ctl *ctl, const char *request, json_t **ret);

#endif
