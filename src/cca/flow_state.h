/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_FLOW_STATE_H
#define PEP_CCA_FLOW_STATE_H

/*
 * What the BPF programs keep per socket and what the loader sets before they are loaded. Both sides
 * and every observer share these layouts.
 */

#include "cca/core/bbr.h"
#include "cca/core/bwe.h"

#define PEP_CCA_VERSION        2U             /* goes up with a change; test_cca_objects holds it */
#define PEP_CCA_MAGIC          0x70657063U    /* "pepc" */
#define PEP_CCA_STATE_MAP      "pep_cc_state" /* socket storage with one struct pep_cc_flow each */
#define PEP_CCA_FLOWS_FILE     "flows"        /* the pinned iterator over all of them */
#define PEP_CCA_CONFIG_SECTION ".rodata.pep"  /* one struct pep_cca_config, first thing in it */

/** The controls of ours; also the place of each in the loader's table. */
enum pep_cca_kind {
	PEP_CCA_BBR,
	PEP_CCA_BBR_ACD,
	PEP_CCA_BBR_A,
	PEP_CCA_BBR_D,
	PEP_CCA_BWE,
	PEP_CCA_KIND_COUNT_,
};

/** State of one connection. */
struct pep_cc_flow {
	uint32_t layout;     /* PEP_CCA_LAYOUT; 0 before init */
	uint32_t mss_bytes;  /* as last seen */
	uint32_t estimate;   /* pep_bwe: bandwidth estimate, PEP_BW_UNIT */
	uint8_t kind;        /* enum pep_cca_kind */
	uint8_t reserved[3]; /* 0 */
	union {
		struct pep_bbr bbr; /* every kind but PEP_CCA_BWE */
		struct pep_bwe bwe;
	};
};

/** What the iterator writes for each connection. */
struct pep_cca_record {
	uint64_t cookie; /* SO_COOKIE of the socket */
	struct pep_cc_flow flow;
};

/** Read-only data of a program, set at load. */
struct pep_cca_config {
	uint32_t magic;           /* PEP_CCA_MAGIC */
	uint32_t layout;          /* PEP_CCA_LAYOUT */
	uint32_t kind;            /* enum pep_cca_kind */
	uint32_t build;           /* fingerprint of the object, set by the loader */
	uint32_t set_app_limited; /* 1: the kernel lets us write tcp_sock.app_limited */
	union {
		struct pep_bbr_params bbr;
		struct pep_bwe_params bwe;
	};
};

/** Tells states and configurations of other versions apart: version and both sizes. */
#define PEP_CCA_LAYOUT                                                        \
	(PEP_CCA_VERSION << 24 | (uint32_t)sizeof(struct pep_cc_flow) << 12 | \
	 (uint32_t)sizeof(struct pep_cca_config))

#endif
