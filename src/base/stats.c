/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The segment is complete before its name appears, and never changes size after. */
#include "config.h"

#include "base/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stats_layout.h"

struct pep_stats {
	struct stats_header *header;
	size_t size;
	char path[PATH_MAX];
	dev_t dev;
	ino_t ino;
	int statm_fd;
	int fd;               /* carries the lock that tells readers that we live */
	uint32_t *free_slots; /* all workers' stacks in one piece */
	struct pep_stats_worker workers[PEP_CONF_MAX_WORKERS];
};

/*
 * Creates the file, sized and readable by the group, under a name that no reader looks for. The
 * kernel drops the lock when we end, however we end: readers see at once that we are gone.
 */
static int create_file(const char *temporary, size_t size, gid_t gid, int *ret_fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd, err;

	(void)unlink(temporary); /* left behind by a daemon that was killed here */
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    (gid != (gid_t)-1 && fchown(fd, (uid_t)-1, gid)) || fchmod(fd, 0640) < 0)
		goto fail;
	*ret_fd = fd;
	return 0;

fail:
	err = -errno;
	(void)unlink(temporary);
	close(fd);
	return err;
}

static void set_name(struct stats_name *name, const char *text)
{
	snprintf(name->text, sizeof(name->text), "%s", text);
	atomic_store_explicit(&name->state, NAME_READY, memory_order_release);
}

static void fill_header(struct stats_header *h, const struct pep_stats_params *params, size_t size)
{
	h->magic = PEP_STATS_MAGIC;
	h->version = PEP_STATS_VERSION;
	h->header_size = sizeof(struct stats_header);
	h->block_size = sizeof(struct pep_stats_block);
	h->flow_size = sizeof(struct pep_stats_flow);
	h->workers = params->workers;
	h->flows_per_worker = params->flows_per_worker;
	h->closed_per_worker = PEP_STATS_CLOSED_PER_WORKER;
	h->size = size;
	h->start_real_ns = pep_clock_ns(CLOCK_REALTIME);
	h->start_mono_ns = pep_clock_mono_ns();
	h->pid = (uint32_t)getpid();
	snprintf(h->program_version, sizeof(h->program_version), "%s",
		 params->version ? params->version : "");
	set_name(&h->classes[0], "default");
	set_name(&h->ccas[PEP_STATS_MAX_CCAS - 1], "other");
}

static int init_workers(struct pep_stats *stats, const struct pep_stats_params *params)
{
	unsigned int flows = params->flows_per_worker;
	uint8_t *base = (uint8_t *)stats->header;

	stats->free_slots = calloc((size_t)params->workers * flows, sizeof(uint32_t));
	if (!stats->free_slots)
		return -ENOMEM;

	for (unsigned int i = 0; i < params->workers; i++) {
		struct pep_stats_worker *w = &stats->workers[i];

		w->index = i;
		w->block = (struct pep_stats_block *)(base + stats_block_offset(i));
		w->flows = (struct pep_stats_flow *)(base +
						     stats_flows_offset(params->workers, flows, i));
		w->closed =
			(struct pep_stats_flow *)(base + stats_closed_offset(
								 params->workers, flows,
								 PEP_STATS_CLOSED_PER_WORKER, i));
		w->n_flows = flows;
		w->n_closed = PEP_STATS_CLOSED_PER_WORKER;
		w->free_slots = stats->free_slots + (size_t)i * flows;
		for (uint32_t slot = 0; slot < flows; slot++)
			w->free_slots[slot] = flows - 1 - slot; /* low slots first */
		w->n_free = flows;
		w->next_number = 1;
	}
	return 0;
}

int pep_stats_create(const char *path, const struct pep_stats_params *params,
		     struct pep_stats **ret)
{
	char temporary[PATH_MAX];
	struct pep_stats *stats;
	struct stat st;
	int err;

	if (params->workers < 1 || params->workers > PEP_CONF_MAX_WORKERS ||
	    params->flows_per_worker < 1 || params->flows_per_worker > PEP_STATS_MAX_FLOWS)
		return -EINVAL;
	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.new", path) >= sizeof(temporary))
		return -ENAMETOOLONG;

	stats = calloc(1, sizeof(*stats));
	if (!stats)
		return -ENOMEM;
	stats->statm_fd = stats->fd = -1;
	snprintf(stats->path, sizeof(stats->path), "%s", path);
	stats->size = stats_closed_offset(params->workers, params->flows_per_worker,
					  PEP_STATS_CLOSED_PER_WORKER, params->workers);

	err = create_file(temporary, stats->size, params->gid, &stats->fd);
	if (err)
		goto fail;
	stats->header = mmap(NULL, stats->size, PROT_READ | PROT_WRITE, MAP_SHARED, stats->fd, 0);
	if (stats->header == MAP_FAILED) {
		err = -errno;
		stats->header = NULL;
		goto fail_unlink;
	}
	fill_header(stats->header, params, stats->size);
	err = init_workers(stats, params);
	if (err)
		goto fail_unlink;
	stats->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	pep_stats_heartbeat(stats);

	if (fstat(stats->fd, &st) < 0 || rename(temporary, path) < 0) {
		err = -errno;
		goto fail_unlink;
	}
	stats->dev = st.st_dev;
	stats->ino = st.st_ino;
	*ret = stats;
	return 0;

fail_unlink:
	(void)unlink(temporary);
fail:
	pep_stats_destroy(stats);
	return err;
}

void pep_stats_destroy(struct pep_stats *stats)
{
	struct stat st;

	if (!stats)
		return;
	if (stats->header) {
		pep_stats_set_state(stats, PEP_STATS_STATE_STOPPED);
		/* A second daemon may have put its own segment there. */
		if (stats->ino && stat(stats->path, &st) == 0 && st.st_ino == stats->ino &&
		    st.st_dev == stats->dev)
			(void)unlink(stats->path);
		munmap(stats->header, stats->size);
	}
	if (stats->statm_fd >= 0)
		close(stats->statm_fd);
	if (stats->fd >= 0)
		close(stats->fd);
	free(stats->free_slots);
	free(stats);
}

struct pep_stats_worker *pep_stats_worker(struct pep_stats *stats, unsigned int index)
{
	return &stats->workers[index];
}

static uint64_t resident_bytes(int fd)
{
	unsigned long pages = 0;
	char text[128];
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%*u %lu", &pages) == 1 ? (uint64_t)pages * (uint64_t)getpagesize() : 0;
}

void pep_stats_heartbeat(struct pep_stats *stats)
{
	struct pep_stats_main *m = &stats->header->main;

	pep_stats_word_set(&m->cpu_ns, pep_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	pep_stats_word_set(&m->resident_bytes, resident_bytes(stats->statm_fd));
	for (int level = 0; level < PEP_LOG_LEVEL_COUNT_; level++)
		pep_stats_word_set(&m->log_messages[level],
				   pep_log_count((enum pep_log_level)level));
	pep_stats_word_set(&m->heartbeat_real_ns, pep_clock_ns(CLOCK_REALTIME));
	pep_stats_word_set(&m->heartbeat_mono_ns, pep_clock_mono_ns());
}

void pep_stats_set_state(struct pep_stats *stats, enum pep_stats_state state)
{
	pep_stats_word_set(&stats->header->main.state, (uint64_t)state);
}

void pep_stats_set_config(struct pep_stats *stats, uint64_t generation, uint64_t max_flows,
			  uint64_t memory_limit_bytes)
{
	struct pep_stats_main *m = &stats->header->main;

	pep_stats_word_set(&m->config_generation, generation);
	pep_stats_word_set(&m->max_flows, max_flows);
	pep_stats_word_set(&m->memory_limit_bytes, memory_limit_bytes);
	pep_stats_word_set(&m->config_loaded_real_ns, pep_clock_ns(CLOCK_REALTIME));
	pep_stats_word_set(&m->config_failed, 0);
}

void pep_stats_set_config_failed(struct pep_stats *stats)
{
	pep_stats_word_set(&stats->header->main.config_failed, 1);
}

/* Finds @text among the names from @first on, or claims the first empty place for it. */
static unsigned int name_slot(struct stats_name *names, unsigned int first, unsigned int count,
			      const char *text, unsigned int full)
{
	for (unsigned int i = first; i < count; i++) {
		uint32_t state = NAME_EMPTY;

		if (atomic_compare_exchange_strong(&names[i].state, &state, NAME_WRITING)) {
			set_name(&names[i], text);
			return i;
		}
		while (state == NAME_WRITING) /* another thread, for the length of a strcpy */
			state = atomic_load_explicit(&names[i].state, memory_order_acquire);
		if (strncmp(names[i].text, text, sizeof(names[i].text) - 1) == 0)
			return i;
	}
	return full;
}

unsigned int pep_stats_class(struct pep_stats *stats, const char *name)
{
	return name_slot(stats->header->classes, 0, PEP_STATS_MAX_CLASSES, name, 0);
}

unsigned int pep_stats_cca(struct pep_stats *stats, const char *name)
{
	return name_slot(stats->header->ccas, 0, PEP_STATS_MAX_CCAS, name, PEP_STATS_MAX_CCAS - 1);
}
