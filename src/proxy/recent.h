/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_RECENT_H
#define PEP_PROXY_RECENT_H

/*
 * SYNs that were bypassed not long ago. When one of them is sent again, its connection may be half
 * open between client and server already, so it must be bypassed again even if by now there is
 * room for the flow. Fixed memory, one thread.
 */

#include "proxy/tuple.h"

#include <stdbool.h>
#include <stdint.h>

/* A client gives up a SYN after about 127 s (tcp_syn_retries 6); no two in a row are further apart
 * than 64 s, and each one is remembered anew. */
#define PEP_RECENT_SECONDS 70

struct pep_recent;

/** Returns 0, -ENOMEM or -EIO (no random bits). */
int pep_recent_new(struct pep_recent **ret);
void pep_recent_free(struct pep_recent *recent); /* NULL is a no-op */

/** Remembers the SYN of @tuple with @sequence. When there is no place, the oldest of a few others
 *  is forgotten. */
void pep_recent_add(struct pep_recent *recent, const struct pep_tuple *tuple, uint32_t sequence,
		    uint64_t now_ns);

/** Whether that very SYN was added within the last PEP_RECENT_SECONDS. */
bool pep_recent_holds(const struct pep_recent *recent, const struct pep_tuple *tuple,
		      uint32_t sequence, uint64_t now_ns);

#endif
