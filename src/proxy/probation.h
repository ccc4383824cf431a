/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_PROBATION_H
#define PEP_PROXY_PROBATION_H

/*
 * Server prefixes (IPv4 /24, IPv6 /64) towards which our own connects keep timing out, while the
 * client's might not: an answer that takes another path, a filter that dislikes us. Their SYNs are
 * bypassed for a while, which doubles each time. Fixed memory, one thread.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define PEP_PROBATION_FAILURES 3 /* in a row, no success between */
#define PEP_PROBATION_FIRST_S  60
#define PEP_PROBATION_LAST_S   3840 /* 60 s doubled six times */

struct pep_probation;

/** Returns 0, -ENOMEM or -EIO (no random bits). */
int pep_probation_new(struct pep_probation **ret);
void pep_probation_free(struct pep_probation *probation); /* NULL is a no-op */

/** A connect to @server timed out. Returns for how many seconds its prefix is bypassed from now on
 *  if this failure began it, else 0. */
uint32_t pep_probation_failed(struct pep_probation *probation, const struct in6_addr *server,
			      uint64_t now_ns);

/** The server answered, with whatever: its prefix starts afresh. */
void pep_probation_answered(struct pep_probation *probation, const struct in6_addr *server);

bool pep_probation_holds(const struct pep_probation *probation, const struct in6_addr *server,
			 uint64_t now_ns);

/** Prefixes on probation. */
uint32_t pep_probation_count(const struct pep_probation *probation, uint64_t now_ns);

#endif
