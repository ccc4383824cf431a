/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_PROBE_H
#define PEP_CTL_PROBE_H

/* One iperf3 measurement of one segment. */

#include <stdbool.h>
#include <stddef.h>

#define PROBE_ERROR_SIZE 512
#define PROBE_MAX_PREFIX 16

struct probe_task {
	const char *host;               /* where "iperf3 -s" runs */
	unsigned int port;              /* of it */
	bool receive;                   /* data come from @host */
	unsigned int seconds, parallel; /* length, number of connections */
	const char *control;            /* congestion control to send with; "" or NULL: default */
	const char *prefix[PROBE_MAX_PREFIX]; /* command that runs iperf3 elsewhere, NULL-ended */
};

struct probe_result {
	double bits_per_second; /* payload received */
	long long retransmits;  /* segments; -1: the sender does not know */
	long long rtt_us;       /* mean at the sender; 0: not known */
	char control[16];       /* what the sender used; "" not known */
};

/** Measures. Returns 0, or a negative errno with one line in @error. */
int probe_run(const struct probe_task *task, struct probe_result *ret,
	      char error[PROBE_ERROR_SIZE]);

/** Reads what "iperf3 -J" printed. The same returns; -EPROTO when it is no such text. */
int probe_parse(const char *text, struct probe_result *ret, char error[PROBE_ERROR_SIZE]);

#endif
