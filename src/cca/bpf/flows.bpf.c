// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An iterator over the state of all connections. Pinned, it is a file whose reader needs no more
 * than the permission to read it: no system call bpf(2), no capability.
 */
#include "cca/bpf/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "cca/flow_state.h"

char LICENSE[] SEC("license") = "GPL";

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} PEP_KERNEL_TYPE;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
	void *value;
} PEP_KERNEL_TYPE;

SEC("iter/bpf_sk_storage_map")
int pep_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct pep_cca_record record = {};
	const struct pep_cc_flow *flow = ctx->value;
	struct sock *sk = ctx->sk;

	if (!sk || !flow || flow->layout != PEP_CCA_LAYOUT)
		return 0;
	record.cookie = bpf_get_socket_cookie(sk);
	record.flow = *flow;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
