/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the file says about itself is checked once, against the file's real size, before any use. */
#include "config.h"

#include "base/stats_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stats_layout.h"

#define COPY_TRIES 16

struct pep_stats_reader {
	const struct stats_header *header;
	size_t size;
	int fd;
	unsigned int workers, flows_per_worker, closed_per_worker;
	char path[PATH_MAX];
	dev_t dev;
	ino_t ino;
};

static int check_header(const struct stats_header *h, size_t file_size)
{
	if (file_size < offsetof(struct stats_header, start_real_ns) || h->magic != PEP_STATS_MAGIC)
		return -EBADMSG;
	if (h->version != PEP_STATS_VERSION || h->header_size != sizeof(struct stats_header) ||
	    h->block_size != sizeof(struct pep_stats_block) ||
	    h->flow_size != sizeof(struct pep_stats_flow))
		return -EPROTO;
	if (h->workers < 1 || h->workers > PEP_CONF_MAX_WORKERS || h->flows_per_worker < 1 ||
	    h->flows_per_worker > PEP_STATS_MAX_FLOWS || h->closed_per_worker < 1 ||
	    h->closed_per_worker > PEP_STATS_MAX_FLOWS || h->size != file_size ||
	    file_size < stats_closed_offset(h->workers, h->flows_per_worker, h->closed_per_worker,
					    h->workers))
		return -EBADMSG;
	return 0;
}

int pep_stats_open(const char *path, struct pep_stats_reader **ret)
{
	struct pep_stats_reader *r;
	void *map = MAP_FAILED;
	struct stat st;
	int fd, err;

	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0) {
		err = -errno;
		goto out;
	}
	err = -EBADMSG;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		goto out;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		err = -errno;
		goto out;
	}
	err = check_header(map, (size_t)st.st_size);
	if (err)
		goto out;

	r->header = map;
	r->size = (size_t)st.st_size;
	r->workers = r->header->workers;
	r->flows_per_worker = r->header->flows_per_worker;
	r->closed_per_worker = r->header->closed_per_worker;
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	r->fd = fd;
	snprintf(r->path, sizeof(r->path), "%s", path);
	*ret = r;
	return 0;

out:
	if (map != MAP_FAILED)
		munmap(map, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	free(r);
	return err;
}

void pep_stats_close(struct pep_stats_reader *reader)
{
	if (!reader)
		return;
	munmap((void *)(uintptr_t)reader->header, reader->size);
	close(reader->fd);
	free(reader);
}

int pep_stats_version(const char *path, uint32_t *ret)
{
	struct {
		uint64_t magic;
		uint32_t version;
	} head;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (n != (ssize_t)sizeof(head) || head.magic != PEP_STATS_MAGIC)
		return -EBADMSG;
	*ret = head.version;
	return 0;
}

bool pep_stats_replaced(const struct pep_stats_reader *reader)
{
	struct stat st;

	return stat(reader->path, &st) < 0 || st.st_dev != reader->dev || st.st_ino != reader->ino;
}

/* The writer holds a lock on the file for as long as it lives. */
static bool writer_lives(const struct pep_stats_reader *reader)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	/* A file system that has no such locks: let the heartbeat decide alone. */
	return fcntl(reader->fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static void read_name(const struct stats_name *name, char ret[PEP_STATS_NAME_SIZE])
{
	ret[0] = '\0';
	if (atomic_load_explicit(&name->state, memory_order_acquire) == NAME_READY)
		snprintf(ret, PEP_STATS_NAME_SIZE, "%.*s", PEP_STATS_NAME_SIZE - 1, name->text);
}

void pep_stats_read_info(const struct pep_stats_reader *reader, struct pep_stats_info *ret)
{
	const struct stats_header *h = reader->header;
	const struct pep_stats_main *m = &h->main;
	uint64_t state = pep_stats_word_get(&m->state);

	*ret = (struct pep_stats_info){
		.pid = h->pid,
		.workers = reader->workers,
		.flows_per_worker = reader->flows_per_worker,
		.start_real_ns = h->start_real_ns,
		.writer_lives = writer_lives(reader),
		.heartbeat_real_ns = pep_stats_word_get(&m->heartbeat_real_ns),
		.heartbeat_mono_ns = pep_stats_word_get(&m->heartbeat_mono_ns),
		.state = state < PEP_STATS_STATE_COUNT_ ? (enum pep_stats_state)state
							: PEP_STATS_STATE_STOPPED,
		.config_generation = pep_stats_word_get(&m->config_generation),
		.config_loaded_real_ns = pep_stats_word_get(&m->config_loaded_real_ns),
		.config_failed = pep_stats_word_get(&m->config_failed) != 0,
		.max_flows = pep_stats_word_get(&m->max_flows),
		.memory_limit_bytes = pep_stats_word_get(&m->memory_limit_bytes),
		.cpu_ns = pep_stats_word_get(&m->cpu_ns),
		.resident_bytes = pep_stats_word_get(&m->resident_bytes),
	};
	snprintf(ret->version, sizeof(ret->version), "%.*s", (int)sizeof(h->program_version) - 1,
		 h->program_version);
	for (size_t i = 0; i < sizeof(m->log_messages) / sizeof(m->log_messages[0]); i++)
		ret->log_messages[i] = pep_stats_word_get(&m->log_messages[i]);
	for (int i = 0; i < PEP_STATS_MAX_CLASSES; i++)
		read_name(&h->classes[i], ret->classes[i]);
	for (int i = 0; i < PEP_STATS_MAX_CCAS; i++)
		read_name(&h->ccas[i], ret->ccas[i]);
}

bool pep_stats_alive(const struct pep_stats_info *info, uint64_t now_mono_ns)
{
	return info->writer_lives && info->state != PEP_STATS_STATE_STOPPED &&
	       now_mono_ns < info->heartbeat_mono_ns + PEP_STATS_STALE_NS;
}

static const struct pep_stats_block *block_of(const struct pep_stats_reader *r, unsigned int worker)
{
	return (const struct pep_stats_block *)((const uint8_t *)r->header +
						stats_block_offset(worker));
}

/* A block is nothing but words. */
#define BLOCK_WORDS (sizeof(struct pep_stats_block) / sizeof(pep_stats_word))
_Static_assert(sizeof(struct pep_stats_block) % sizeof(pep_stats_word) == 0, "words only");

void pep_stats_block_add(struct pep_stats_block *sum, const struct pep_stats_block *block)
{
	const pep_stats_word *from = (const pep_stats_word *)block;
	pep_stats_word *to = (pep_stats_word *)sum;

	for (size_t i = 0; i < BLOCK_WORDS; i++)
		pep_stats_word_add(&to[i], pep_stats_word_get(&from[i]));
}

void pep_stats_read_worker(const struct pep_stats_reader *reader, unsigned int index,
			   struct pep_stats_block *ret)
{
	memset(ret, 0, sizeof(*ret));
	pep_stats_block_add(ret, block_of(reader, index));
}

void pep_stats_read_totals(const struct pep_stats_reader *reader, struct pep_stats_block *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < reader->workers; i++)
		pep_stats_block_add(ret, block_of(reader, i));
}

/* True when the copy is consistent; false after too many tries. */
static bool copy_flow(const struct pep_stats_flow *flow, struct pep_stats_flow *ret)
{
	for (int i = 0; i < COPY_TRIES; i++) {
		uint32_t before = atomic_load_explicit(&flow->sequence, memory_order_acquire);

		if (before & 1)
			continue;
		memcpy(ret, (const void *)flow, sizeof(*ret));
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&flow->sequence, memory_order_relaxed) == before)
			return true;
	}
	return false;
}

/* Enums and slots index tables later on: a record that is out of range is not shown. */
static bool sane(const struct pep_stats_flow *f)
{
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		if (f->leg[s].cca_slot >= PEP_STATS_MAX_CCAS ||
		    f->leg[s].cca[PEP_STATS_NAME_SIZE - 1] != '\0' ||
		    f->leg[s].belief.mode_name[sizeof(f->leg[s].belief.mode_name) - 1] != '\0')
			return false;
	}
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++)
		if (f->path[d].limit >= PEP_LIMIT_COUNT_)
			return false;
	return f->state < PEP_STATS_FLOW_COUNT_ && f->close_reason < PEP_CLOSE_COUNT_ &&
	       f->class_slot < PEP_STATS_MAX_CLASSES;
}

size_t pep_stats_each_flow(const struct pep_stats_reader *reader, pep_stats_flow_fn *fn, void *user)
{
	size_t skipped = 0;

	for (unsigned int w = 0; w < reader->workers; w++) {
		const struct pep_stats_flow *flows =
			(const void *)((const uint8_t *)reader->header +
				       stats_flows_offset(reader->workers, reader->flows_per_worker,
							  w));
		uint64_t high = pep_stats_word_get(&block_of(reader, w)->flows_high);

		for (uint64_t i = 0; i < high && i < reader->flows_per_worker; i++) {
			struct pep_stats_flow copy;

			if (!copy_flow(&flows[i], &copy))
				skipped++;
			else if (copy.state != PEP_STATS_FLOW_FREE && sane(&copy) &&
				 !fn(&copy, user))
				return skipped;
		}
	}
	return skipped;
}

size_t pep_stats_each_closed(const struct pep_stats_reader *reader, pep_stats_flow_fn *fn,
			     void *user)
{
	uint64_t ring = reader->closed_per_worker;
	size_t skipped = 0;

	for (unsigned int w = 0; w < reader->workers; w++) {
		const struct pep_stats_flow *closed =
			(const void *)((const uint8_t *)reader->header +
				       stats_closed_offset(reader->workers,
							   reader->flows_per_worker,
							   reader->closed_per_worker, w));
		uint64_t count = atomic_load_explicit(&block_of(reader, w)->closed_count,
						      memory_order_acquire);

		for (uint64_t i = 0; i < ring && i < count; i++) {
			struct pep_stats_flow copy;

			if (!copy_flow(&closed[(count - 1 - i) % ring], &copy))
				skipped++;
			else if (copy.state == PEP_STATS_FLOW_CLOSED && sane(&copy) &&
				 !fn(&copy, user))
				return skipped;
		}
	}
	return skipped;
}

struct wanted {
	uint64_t id;
	bool found;
	struct pep_stats_flow *flow;
};

static bool take_wanted(const struct pep_stats_flow *flow, void *user)
{
	struct wanted *wanted = user;

	if (flow->id != wanted->id)
		return true;
	memcpy(wanted->flow, (const void *)flow, sizeof(*flow));
	wanted->found = true;
	return false;
}

int pep_stats_read_flow(const struct pep_stats_reader *reader, uint64_t id,
			struct pep_stats_flow *ret)
{
	struct pep_stats_flow copy;
	struct wanted wanted = {.id = id, .flow = &copy};

	(void)pep_stats_each_flow(reader, take_wanted, &wanted);
	if (!wanted.found)
		(void)pep_stats_each_closed(reader, take_wanted, &wanted);
	if (!wanted.found)
		return -ENOENT;
	memcpy(ret, (const void *)&copy, sizeof(copy));
	return 0;
}
