/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_POOL_H
#define PEP_PROXY_POOL_H

/*
 * What a worker's relays borrow while they hold bytes: pipes for splice(2) and chunks for copies,
 * both bounded, and the worker's share of the cap on relayed bytes.
 *
 * A pool belongs to one thread. After pep_pool_new nothing here allocates from the heap; pipes are
 * opened on first use and kept.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEP_CHUNK_BYTES 65536u

/* A pipe below this is slower than copying; unprivileged users get such (fs.pipe-user-pages-soft).
 */
#define PEP_PIPE_USEFUL_BYTES 65536u

struct pep_pipe {
	int read_fd, write_fd; /* -1 when not opened */
	uint32_t size_bytes;   /* what the kernel granted */
	struct pep_pipe *next;
};

struct pep_chunk {
	uint32_t start, end; /* the held bytes are data[start..end) */
	struct pep_chunk *next;
	uint8_t *data; /* PEP_CHUNK_BYTES */
};

struct pep_pool_params {
	uint64_t memory_bytes; /* cap on the bytes held; at least one chunk */
	uint32_t pipe_bytes;   /* size asked for */
	uint32_t max_pipes;    /* 0: copy only */
};

struct pep_pool;

/** Returns 0 or -ENOMEM. */
int pep_pool_new(const struct pep_pool_params *params, struct pep_pool **ret);
void pep_pool_free(struct pep_pool *pool); /* all must be given back; NULL is a no-op */

/** Borrows an empty pipe; NULL when none can be had (counted), the caller then copies. */
struct pep_pipe *pep_pool_get_pipe(struct pep_pool *pool);

/** Gives back a pipe. One that is not @empty is closed, so that no byte reaches another flow. */
void pep_pool_put_pipe(struct pep_pool *pool, struct pep_pipe *pipe, bool empty);

/** Counts a pipe that was of no use: splice failed and the bytes were copied. */
void pep_pool_count_pipe_failure(struct pep_pool *pool);

/** Borrows an empty chunk, or NULL when all are in use. */
struct pep_chunk *pep_pool_get_chunk(struct pep_pool *pool);
void pep_pool_put_chunk(struct pep_pool *pool, struct pep_chunk *chunk);

/** PEP_CHUNK_BYTES that anybody may use until he returns to the event loop. */
uint8_t *pep_pool_scratch(struct pep_pool *pool);

/** Accounts @delta bytes that a relay holds (positive) or got rid of (negative). */
void pep_pool_hold(struct pep_pool *pool, int64_t delta);

/** Whether the worker's share is used up: nobody may read more for now. */
bool pep_pool_is_full(const struct pep_pool *pool);

struct pep_pool_usage {
	uint64_t held_bytes, memory_bytes;
	uint32_t pipes_open, pipes_used, chunks_used;
	uint64_t pipe_failures; /* borrowings that ended in the copy path */
};
void pep_pool_get_usage(const struct pep_pool *pool, struct pep_pool_usage *ret);

#endif
