/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_STATS_LAYOUT_H
#define PEP_BASE_STATS_LAYOUT_H

/*
 * The segment as it lies in the file: header, worker blocks, flow records worker by worker, rings
 * of closed flows worker by worker. Only stats*.c look in here.
 */

#include "base/stats.h"

#define PEP_STATS_MAGIC             0x5354415450455031ull /* "1PEPTATS" in the file */
#define PEP_STATS_CLOSED_PER_WORKER 256u
#define PEP_STATS_MAX_FLOWS         (1u << 20)

/* A name's life: empty, being written by one thread, readable. Never changes after that. */
enum name_state {
	NAME_EMPTY,
	NAME_WRITING,
	NAME_READY
};

struct stats_name {
	_Atomic uint32_t state;
	char text[PEP_STATS_NAME_SIZE];
};

struct stats_header {
	uint64_t magic;
	uint32_t version;
	/* What the writer's compiler made of the structs: a reader compares before it looks on. */
	uint32_t header_size, block_size, flow_size;
	uint32_t workers, flows_per_worker, closed_per_worker, pad;
	uint64_t size;
	uint64_t start_real_ns, start_mono_ns;
	uint32_t pid, pad2;
	char program_version[32];
	struct stats_name classes[PEP_STATS_MAX_CLASSES];
	struct stats_name ccas[PEP_STATS_MAX_CCAS];
	struct pep_stats_main main;
};

static inline size_t stats_align(size_t n)
{
	return (n + 63) & ~(size_t)63; /* blocks of different writers share no cache line */
}

static inline size_t stats_block_offset(unsigned int worker)
{
	return stats_align(sizeof(struct stats_header)) +
	       worker * stats_align(sizeof(struct pep_stats_block));
}

static inline size_t stats_flows_offset(unsigned int workers, unsigned int flows_per_worker,
					unsigned int worker)
{
	return stats_block_offset(workers) +
	       worker * stats_align((size_t)flows_per_worker * sizeof(struct pep_stats_flow));
}

static inline size_t stats_closed_offset(unsigned int workers, unsigned int flows_per_worker,
					 unsigned int closed_per_worker, unsigned int worker)
{
	return stats_flows_offset(workers, flows_per_worker, workers) +
	       worker * stats_align((size_t)closed_per_worker * sizeof(struct pep_stats_flow));
}

#endif
