/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_REPORT_H
#define PEP_LINKEMU_REPORT_H

#include <stdint.h>

#include "link.h"
#include "nfq.h"

/**
 * The statistics of @count links as one line of JSON without newline; free() it. NULL without
 * memory. @now_ns is the clock that the links run on.
 */
char *pep_report_json(struct pep_link *const *links, struct pep_nfq *const *queues,
		      unsigned int count, uint64_t now_ns);

#endif
