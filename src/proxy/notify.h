/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_NOTIFY_H
#define PEP_PROXY_NOTIFY_H

/* The service manager's notification protocol (sd_notify(3)), without its library. */

#include <stdint.h>

/** Sends @state, e.g. "READY=1\nSTATUS=...". No-op without NOTIFY_SOCKET. 0 or negative errno. */
int pep_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The watchdog's period in microseconds as WATCHDOG_USEC asks of this process; 0: none. */
uint64_t pep_notify_watchdog_us(void);

#endif
