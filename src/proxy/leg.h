/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_LEG_H
#define PEP_PROXY_LEG_H

/* Sockets of the two legs: how they are opened, set up and closed. */

#include "base/conf.h"
#include "proxy/tuple.h"

#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>

/** One leg's settings as they are applied: the congestion control is one that the kernel has. */
struct pep_leg_setup {
	struct pep_leg_conf conf; /* congestion_control: the one in use, "" for the system's */
	bool cca_fallback;        /* it is not the one that was asked for */
};

/**
 * Finds out whether the kernel offers the wanted congestion control to this process; if not, takes
 * the nearest built-in ("bbr" for the pep_ family, then "cubic"; finally the system's default).
 *
 * Returns 0, or the negative errno of the wanted one; @ret is filled in either case.
 */
int pep_leg_setup_resolve(const struct pep_leg_conf *conf, struct pep_leg_setup *ret);

/**
 * Opens the listener of the wireless leg on 127.0.0.1 (@family AF_INET) or ::1 (AF_INET6): only
 * packets that TPROXY assigns can reach it. Accepted sockets inherit all settings, IP_TRANSPARENT,
 * @mark and an abortive SO_LINGER.
 *
 * Returns 0 and the descriptor in @ret_fd, or a negative errno and a word for what failed in
 * @ret_step (a constant string).
 */
int pep_leg_listen(int family, uint16_t port, const struct pep_leg_setup *setup, uint32_t mark,
		   int backlog, int *ret_fd, const char **ret_step);

/** Applies what differs between @from (already in force) and @to. Errors are ignored, the first is
 *  returned as a negative errno. */
int pep_leg_reconfigure(int fd, const struct pep_leg_setup *from, const struct pep_leg_setup *to);

struct pep_leg_connect {
	const struct pep_tuple *tuple;
	const struct pep_leg_setup *setup;
	enum pep_source source;
	uint32_t mark;
	uint8_t dscp;
};

struct pep_leg_connected {
	int fd;             /* connecting */
	bool port_fallback; /* the client's port had to be given up (source client only) */
	int option_error;   /* first setting that the kernel refused, a negative errno, or 0 */
};

/**
 * Starts to connect the wired leg. Returns 0, or a negative errno when no socket could be had or
 * connect failed at once.
 */
int pep_leg_connect(const struct pep_leg_connect *request, struct pep_leg_connected *ret);

/** Copies a DSCP (0..63) to what the socket sends. Returns 0 or a negative errno. */
int pep_leg_set_dscp(int fd, bool v4, uint8_t dscp);

/**
 * Closes with a FIN behind what is still queued, which the kernel goes on delivering. Returns 0, or
 * a negative errno when only RST was possible.
 */
int pep_leg_close_orderly(int fd);

/** Closes with a RST, dropping what is queued (the sockets' SO_LINGER is abortive by default). */
void pep_leg_close_abort(int fd);

/** The pending error of the socket (positive errno), 0 for none; clears it. */
int pep_leg_take_error(int fd);

/** Whether the kernel has ended the connection (reset, time-out); what came before can be read. */
bool pep_leg_is_dead(int fd);

/** Bytes written and not yet acknowledged by the peer; 0 when unknown. */
uint32_t pep_leg_unacked_bytes(int fd);

/*
 * The receive buffer of a leg, taken from the kernel's autotuning and given back. The window alone
 * (TCP_WINDOW_CLAMP) bounds what the peer may have under way, not what piles up unread. All return
 * 0 or a negative errno.
 */
struct pep_leg_buffer {
	uint32_t bytes;    /* of payload, unread and under way together; 0: the kernel tunes it */
	uint32_t cost_256; /* memory that a byte of payload takes, times 256 */
	uint64_t most;     /* the memory that it may take */
	bool settled;      /* it has that size */
	bool hole;         /* told by the caller: segments came behind a missing one, held on top */
};

/** The memory that the system lets a receive buffer grow to (net.ipv4.tcp_rmem), in bytes. */
uint64_t pep_leg_buffer_limit(void);

/** Fixes the buffer at its present size, which is found in @ret. @limit: pep_leg_buffer_limit(). */
int pep_leg_freeze_buffer(int fd, uint64_t limit, struct pep_leg_buffer *ret);

/**
 * Makes room for @bytes. A buffer shrinks by no more than @read_bytes, the bytes that were read
 * just before; until it is settled this is to be called after each read, and reads are to be small:
 * those of up to bytes / PEP_LEG_SHRINK_SHARE leave its window shut.
 */
int pep_leg_bound_buffer(int fd, uint32_t bytes, uint64_t read_bytes,
			 struct pep_leg_buffer *buffer);

/* The kernel offers no room below this share of the buffer. */
#define PEP_LEG_SHRINK_SHARE 16u

/** What the peer's window can be at most; 0: what the kernel says. */
uint32_t pep_leg_buffer_window(const struct pep_leg_buffer *buffer);

/** Lets the kernel tune the buffer again. */
int pep_leg_free_buffer(int fd, struct pep_leg_buffer *buffer);

/** Name of the congestion control in use; "?" when unknown. */
void pep_leg_cca_name(int fd, char name[PEP_CONF_NAME_SIZE]);

#endif
