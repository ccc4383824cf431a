/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_NFQ_H
#define PEP_LINKEMU_NFQ_H

/* One NFQUEUE: packets' numbers and lengths in, verdicts out. */

#include <stdbool.h>
#include <stdint.h>

struct pep_nfq;

/**
 * Binds NFQUEUE @queue of this network namespace for IPv4 and IPv6. The kernel segments GSO packets
 * first, so that each packet we see is one that fits the MTU. Returns 0 or a negative errno; -EPERM
 * without CAP_NET_ADMIN or when another process owns the queue.
 */
int pep_nfq_open(uint16_t queue, struct pep_nfq **ret);

/** Packets still waiting for a verdict are dropped by the kernel. */
void pep_nfq_close(struct pep_nfq *nfq);

/** To wait for (readable); not to be used otherwise. */
int pep_nfq_fd(const struct pep_nfq *nfq);

/**
 * Called for each packet. @arrival_ns: when it came, of CLOCK_MONOTONIC, as far as the kernel
 * tells; otherwise when it was read.
 */
typedef void (*pep_nfq_packet_fn)(void *arg, uint32_t id, uint32_t bytes, uint64_t arrival_ns);

/**
 * Reads what is there and calls @packet for each; at most some hundred packets a call. Returns the
 * number of packets, 0 when there was nothing, or a negative errno.
 */
int pep_nfq_read(struct pep_nfq *nfq, pep_nfq_packet_fn packet, void *arg);

/**
 * Gives the verdict on packet @id. Verdicts must come in the order of the packets; they are
 * collected and go out with pep_nfq_flush(). Returns 0 or a negative errno.
 */
int pep_nfq_verdict(struct pep_nfq *nfq, uint32_t id, bool drop);
int pep_nfq_flush(struct pep_nfq *nfq);

/** Packets that the kernel numbered and we never saw: its queue or our socket was full. */
uint64_t pep_nfq_missed(const struct pep_nfq *nfq);

/** How often the kernel said that our socket was full. */
uint64_t pep_nfq_overruns(const struct pep_nfq *nfq);

#endif
