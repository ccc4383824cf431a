/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_HOST_H
#define PEP_CCA_HOST_H

/* What the running kernel can do for us, read from its BTF. */

#include <stddef.h>

#include "cca/objects.h"

struct btf;

/** How well a kernel carries the controls. */
enum pep_cca_support {
	PEP_CCA_SUPPORT_FULL,       /* everything */
	PEP_CCA_SUPPORT_REDUCED,    /* without tcp_sock.app_limited: ProbeRTT samples not marked */
	PEP_CCA_SUPPORT_NO_JIT,     /* struct_ops needs net.core.bpf_jit_enable = 1 */
	PEP_CCA_SUPPORT_NO_OBJECTS, /* this program was built without BPF */
	PEP_CCA_SUPPORT_NO_OPS,     /* no struct_ops for TCP, or one we do not know */
	PEP_CCA_SUPPORT_NO_BTF,     /* no BTF of the kernel */
	PEP_CCA_SUPPORT_COUNT_,
};

struct pep_cca_host {
	char release[65]; /* of the kernel */
	enum pep_cca_support support;
	enum pep_cca_variant variant; /* valid with FULL and REDUCED */
	unsigned int arguments;       /* of cong_control */
	bool tx_start;                /* has cwnd_event_tx_start */
	bool app_limited;             /* believed to be writable; the verifier has the last word */
	bool jit;
	size_t value_offset;        /* of tcp_congestion_ops in the map's value, bytes ... */
	size_t value_size;          /* ... and the size of it all */
	size_t cong_control_offset; /* in tcp_congestion_ops, bytes */
};

/** Looks at the running kernel. Never fails: what is missing is in ->support. */
void pep_cca_host_probe(struct pep_cca_host *ret);

/** The part of it that rests on @btf alone (NULL: none); for tests with BTF of other kernels. */
void pep_cca_host_probe_btf(struct pep_cca_host *host, const struct btf *btf);

bool pep_cca_host_usable(const struct pep_cca_host *host);

/** "full", "reduced", "no-jit", ... */
const char *pep_cca_support_name(enum pep_cca_support support);

/** What it means and what to do, one sentence. */
const char *pep_cca_support_text(enum pep_cca_support support);

#endif
