/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_STATE_H
#define PEP_CCA_STATE_H

/*
 * What a congestion control of ours believes of a connection, for the daemon and for monitoring.
 *
 * With a socket of one's own: pep_cca_state_open once, pep_cca_state_read for each socket (one
 * system call). Kernels since 5.19 ask for no capability for that, only for the permission to read
 * the pinned map, which "edgepep-cca load" gives to a group. For all connections of the host:
 * pep_cca_state_list, which reads a file and makes no system call bpf(2).
 */

#include "cca/params.h"

/** State of one connection, in base units. */
struct pep_cca_view {
	enum pep_cca_kind kind;
	const char *mode;    /* "startup", "drain", "probe-bw", "probe-rtt"; "start", "avoid" */
	uint64_t bandwidth;  /* believed, bytes/s of payload */
	uint32_t min_rtt_us; /* least RTT, 0: unknown */
	uint32_t jitter_us; /* what jitter is believed to add to it (pep_bbr_d), 0: none, unknown */
	uint32_t standing_rtt_us; /* least RTT of the last two rounds, 0: not tracked or unknown */
	uint32_t pacing_gain;     /* in effect, 1/256; 0: none (pep_bwe) */
	uint32_t cwnd_gain;       /* 1/256; 0: none */
	bool policed;             /* keeps to the rate of a policer */
	bool congested;           /* in the round after a cut */
	uint64_t congestive_losses; /* loss episodes judged congestive */
	uint64_t radio_losses;      /* loss episodes judged not to be */
	uint64_t cuts;              /* times the window was cut for a loss */
	uint64_t probe_rtts;        /* times the least RTT was measured anew */
};

struct pep_cca_state;

/**
 * Opens the state map in @dir (NULL: the default, /run/edgepep-cca). Returns 0 and a reader in
 * @ret, or -ENOENT when no control was loaded for observers, -EACCES, or another negative errno.
 */
int pep_cca_state_open(const char *dir, struct pep_cca_state **ret);

/** NULL is a no-op. */
void pep_cca_state_free(struct pep_cca_state *state);

/**
 * Reads the state of socket @fd. Returns 0, -ENOENT when the socket has no control of ours, -EPROTO
 * when that control is of another version, or another negative errno. Any thread.
 */
int pep_cca_state_read(const struct pep_cca_state *state, int fd, struct pep_cca_view *ret);

/**
 * Calls @fn for every connection of the host that a control of ours drives, with the socket's
 * cookie (SO_COOKIE). Returns their number, or a negative errno.
 */
int pep_cca_state_list(const char *dir,
		       void (*fn)(uint64_t cookie, const struct pep_cca_view *view, void *user),
		       void *user);

/** What @flow says, in base units. Returns 0 or -EPROTO. */
int pep_cca_view_from(const struct pep_cc_flow *flow, struct pep_cca_view *ret);

#endif
