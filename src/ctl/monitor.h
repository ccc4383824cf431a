/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_MONITOR_H
#define PEP_CTL_MONITOR_H

/* Asking edgepep-mon, which remembers what the stats segment forgets. */

#include "ctl/ctl.h"

/**
 * Gets @path from the monitor of the configuration and stores its JSON object in @ret (json_decref
 * it). Returns 0, or the exit code after saying why not; what the monitor says of its own refusal
 * is passed on.
 */
int ctl_ask_monitor(const struct ctl *ctl, const char *path, json_t **ret);

#endif
