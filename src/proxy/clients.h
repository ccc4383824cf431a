/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_CLIENTS_H
#define PEP_PROXY_CLIENTS_H

/*
 * How many flows each client address has, over all workers, for the per-client limit: a count-min
 * sketch of atomic counters. It never counts too few; two clients that collide in every row (about
 * one pair in 10^9 at the sizes used) are counted together.
 */

#include <netinet/in.h>
#include <stdint.h>

struct pep_clients;

/** Sized for about @capacity clients at a time. Returns 0, -ENOMEM or -EIO (no random bits). */
int pep_clients_new(uint32_t capacity, struct pep_clients **ret);
void pep_clients_free(struct pep_clients *clients); /* NULL is a no-op */

/* Any thread. */
uint32_t pep_clients_count(const struct pep_clients *clients, const struct in6_addr *addr);
void pep_clients_add(struct pep_clients *clients, const struct in6_addr *addr);
void pep_clients_remove(struct pep_clients *clients, const struct in6_addr *addr);

#endif
