/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Free lists are last in, first out: the pipe or chunk used last is the one in the cache. */
#include "proxy/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct pep_pool {
	struct pep_pool_params params;
	struct pep_pipe *pipes, *free_pipes;
	struct pep_chunk *chunks, *free_chunks;
	uint8_t *chunk_memory;
	uint32_t n_chunks;
	struct pep_pool_usage usage;
};

static size_t memory_size(const struct pep_pool *pool)
{
	return ((size_t)pool->n_chunks + 1) * PEP_CHUNK_BYTES;
}

int pep_pool_new(const struct pep_pool_params *params, struct pep_pool **ret)
{
	struct pep_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->params = *params;
	pool->usage.memory_bytes = params->memory_bytes;
	pool->n_chunks = (uint32_t)(params->memory_bytes / PEP_CHUNK_BYTES);
	if (pool->n_chunks == 0)
		pool->n_chunks = 1;

	pool->pipes = calloc(params->max_pipes ? params->max_pipes : 1, sizeof(*pool->pipes));
	pool->chunks = calloc(pool->n_chunks, sizeof(*pool->chunks));
	/* Address space only: a page costs memory when it is first used. One more: the scratch. */
	pool->chunk_memory = mmap(NULL, memory_size(pool), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!pool->pipes || !pool->chunks || pool->chunk_memory == MAP_FAILED) {
		if (pool->chunk_memory == MAP_FAILED)
			pool->chunk_memory = NULL;
		pep_pool_free(pool);
		return -ENOMEM;
	}

	for (uint32_t i = params->max_pipes; i-- > 0;) {
		pool->pipes[i].read_fd = pool->pipes[i].write_fd = -1;
		pool->pipes[i].next = pool->free_pipes;
		pool->free_pipes = &pool->pipes[i];
	}
	for (uint32_t i = pool->n_chunks; i-- > 0;) {
		pool->chunks[i].data = pool->chunk_memory + (size_t)i * PEP_CHUNK_BYTES;
		pool->chunks[i].next = pool->free_chunks;
		pool->free_chunks = &pool->chunks[i];
	}
	*ret = pool;
	return 0;
}

static void close_pipe(struct pep_pool *pool, struct pep_pipe *pipe)
{
	if (pipe->read_fd < 0)
		return;
	close(pipe->read_fd);
	close(pipe->write_fd);
	pipe->read_fd = pipe->write_fd = -1;
	pool->usage.pipes_open--;
}

void pep_pool_free(struct pep_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; pool->pipes && i < pool->params.max_pipes; i++)
		close_pipe(pool, &pool->pipes[i]);
	if (pool->chunk_memory)
		munmap(pool->chunk_memory, memory_size(pool));
	free(pool->chunks);
	free(pool->pipes);
	free(pool);
}

static int open_pipe(struct pep_pool *pool, struct pep_pipe *pipe)
{
	int fds[2], size;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* The kernel may refuse; what counts is the size read back. */
	(void)fcntl(fds[1], F_SETPIPE_SZ, (int)pool->params.pipe_bytes);
	size = fcntl(fds[1], F_GETPIPE_SZ);
	if (size < (int)PEP_PIPE_USEFUL_BYTES) {
		close(fds[0]);
		close(fds[1]);
		return -EPERM;
	}
	pipe->read_fd = fds[0];
	pipe->write_fd = fds[1];
	pipe->size_bytes = (uint32_t)size;
	pool->usage.pipes_open++;
	return 0;
}

struct pep_pipe *pep_pool_get_pipe(struct pep_pool *pool)
{
	struct pep_pipe *pipe = pool->free_pipes;

	if (!pipe || (pipe->read_fd < 0 && open_pipe(pool, pipe) < 0)) {
		pool->usage.pipe_failures++;
		return NULL;
	}
	pool->free_pipes = pipe->next;
	pipe->next = NULL;
	pool->usage.pipes_used++;
	return pipe;
}

void pep_pool_put_pipe(struct pep_pool *pool, struct pep_pipe *pipe, bool empty)
{
	if (!empty)
		close_pipe(pool, pipe);
	pipe->next = pool->free_pipes;
	pool->free_pipes = pipe;
	pool->usage.pipes_used--;
}

void pep_pool_count_pipe_failure(struct pep_pool *pool)
{
	pool->usage.pipe_failures++;
}

struct pep_chunk *pep_pool_get_chunk(struct pep_pool *pool)
{
	struct pep_chunk *chunk = pool->free_chunks;

	if (!chunk)
		return NULL;
	pool->free_chunks = chunk->next;
	chunk->next = NULL;
	chunk->start = chunk->end = 0;
	pool->usage.chunks_used++;
	return chunk;
}

void pep_pool_put_chunk(struct pep_pool *pool, struct pep_chunk *chunk)
{
	chunk->next = pool->free_chunks;
	pool->free_chunks = chunk;
	pool->usage.chunks_used--;
}

uint8_t *pep_pool_scratch(struct pep_pool *pool)
{
	return pool->chunk_memory + (size_t)pool->n_chunks * PEP_CHUNK_BYTES;
}

void pep_pool_hold(struct pep_pool *pool, int64_t delta)
{
	pool->usage.held_bytes += (uint64_t)delta;
}

bool pep_pool_is_full(const struct pep_pool *pool)
{
	return pool->usage.held_bytes >= pool->params.memory_bytes;
}

void pep_pool_get_usage(const struct pep_pool *pool, struct pep_pool_usage *ret)
{
	*ret = pool->usage;
}
