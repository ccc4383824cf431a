/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_LOCAL_ADDRS_H
#define PEP_PROXY_LOCAL_ADDRS_H

/*
 * The addresses of this host at one moment; immutable once loaded, so threads may share it. The
 * last one that drops its reference frees it.
 */

#include <netinet/in.h>
#include <stdbool.h>

struct pep_local_addrs;

/** Returns 0 and one reference, or a negative errno. */
int pep_local_addrs_load(struct pep_local_addrs **ret);
struct pep_local_addrs *pep_local_addrs_ref(struct pep_local_addrs *addrs);
void pep_local_addrs_unref(struct pep_local_addrs *addrs); /* NULL is a no-op */

/** IPv4 as v4-mapped. */
bool pep_local_addrs_contains(const struct pep_local_addrs *addrs, const struct in6_addr *addr);
bool pep_local_addrs_equal(const struct pep_local_addrs *a, const struct pep_local_addrs *b);

#endif
