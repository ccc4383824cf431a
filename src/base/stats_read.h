/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_STATS_READ_H
#define PEP_BASE_STATS_READ_H

/* The stats segment, reader's side. Nothing here can disturb the daemon: the map is read-only. */

#include "base/stats.h"

/** A daemon whose last heartbeat is older than this is taken for hung. A dead one is known at once.
 */
#define PEP_STATS_STALE_NS UINT64_C(2000000000)

struct pep_stats_reader;

/**
 * Maps the segment at @path. Returns 0 and stores a reader in @ret, or -ENOENT (no daemon),
 * -EACCES, -EPROTO (a segment of another version: see pep_stats_version()), -EBADMSG (not a
 * segment, or cut short), or another negative errno.
 */
int pep_stats_open(const char *path, struct pep_stats_reader **ret);

/** NULL is a no-op. */
void pep_stats_close(struct pep_stats_reader *reader);

/** The layout version of the segment at @path, also of one that cannot be read otherwise. */
int pep_stats_version(const char *path, uint32_t *ret);

/** Whether @path no longer is the file that was opened: the daemon ended or another one started. */
bool pep_stats_replaced(const struct pep_stats_reader *reader);

/** The header as plain values. */
struct pep_stats_info {
	uint32_t pid;
	char version[32]; /* of the daemon's program */
	unsigned int workers, flows_per_worker;
	uint64_t start_real_ns;
	bool writer_lives; /* the process that wrote the segment still exists */
	uint64_t heartbeat_real_ns, heartbeat_mono_ns;
	enum pep_stats_state state;
	uint64_t config_generation, config_loaded_real_ns;
	bool config_failed;
	uint64_t max_flows, memory_limit_bytes;
	uint64_t cpu_ns, resident_bytes;
	uint64_t log_messages[8];
	char classes[PEP_STATS_MAX_CLASSES][PEP_STATS_NAME_SIZE]; /* "" where unused */
	char ccas[PEP_STATS_MAX_CCAS][PEP_STATS_NAME_SIZE];
};

void pep_stats_read_info(const struct pep_stats_reader *reader, struct pep_stats_info *ret);

/** Whether the daemon lives and beat its heart within PEP_STATS_STALE_NS before @now_mono_ns. */
bool pep_stats_alive(const struct pep_stats_info *info, uint64_t now_mono_ns);

/** A private copy of worker @index's block, which must be below info.workers. */
void pep_stats_read_worker(const struct pep_stats_reader *reader, unsigned int index,
			   struct pep_stats_block *ret);

/** The sum over all workers. */
void pep_stats_read_totals(const struct pep_stats_reader *reader, struct pep_stats_block *ret);

/** Adds @block, word by word, to @sum. */
void pep_stats_block_add(struct pep_stats_block *sum, const struct pep_stats_block *block);

/** Called with a consistent copy that is gone after the call; false ends the walk. */
typedef bool pep_stats_flow_fn(const struct pep_stats_flow *flow, void *user);

/**
 * Walks live flows. Returns how many records were skipped because the daemon was changing them at
 * every try (they are met again at the next walk).
 */
size_t pep_stats_each_flow(const struct pep_stats_reader *reader, pep_stats_flow_fn *fn,
			   void *user);

/** Walks recently closed flows, per worker newest first. */
size_t pep_stats_each_closed(const struct pep_stats_reader *reader, pep_stats_flow_fn *fn,
			     void *user);

/** One flow, live or recently closed. Returns 0 or -ENOENT. */
int pep_stats_read_flow(const struct pep_stats_reader *reader, uint64_t id,
			struct pep_stats_flow *ret);

#endif
