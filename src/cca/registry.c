/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A map counts as registered only while the kernel says so: replaced ones live on with their
 * sockets. */
#include "cca/registry.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_FILE    "/proc/sys/net/ipv4/tcp_available_congestion_control"
#define STATE_IN_USE  1  /* enum bpf_struct_ops_state */
#define MAPS_MAX      64 /* maps of one of our programs; there are two */
#define REGISTRY_REFS 1U /* the registration itself counts as one user */

/* Head of every struct_ops value: struct bpf_struct_ops_common_value. */
struct value_head {
	uint32_t refs;
	uint32_t state;
};

/* Opens the next map behind *@id that has @type and @name; @id moves along. */
static int next_map(uint32_t *id, uint32_t type, const char *name, struct bpf_map_info *info)
{
	uint32_t size;
	int fd;

	while (bpf_map_get_next_id(*id, id) == 0) {
		fd = bpf_map_get_fd_by_id(*id);
		if (fd < 0) {
			if (errno == ENOENT)
				continue; /* gone since */
			return -errno;
		}
		memset(info, 0, sizeof(*info));
		size = sizeof(*info);
		if (bpf_obj_get_info_by_fd(fd, info, &size) == 0 && info->type == type &&
		    strcmp(info->name, name) == 0)
			return fd;
		close(fd);
	}
	return errno == ENOENT ? -ENOENT : -errno;
}

static int read_config(int map_fd, struct pep_cca_config *ret)
{
	struct bpf_map_info info = {0};
	struct pep_cca_config config;
	uint32_t size = sizeof(info), zero = 0;

	if (bpf_obj_get_info_by_fd(map_fd, &info, &size) < 0)
		return -errno;
	if (strcmp(info.name, PEP_CCA_CONFIG_SECTION) != 0 || info.value_size != sizeof(config))
		return -ENOENT;
	if (bpf_map_lookup_elem(map_fd, &zero, &config) < 0)
		return -errno;
	if (config.magic != PEP_CCA_MAGIC || config.layout != PEP_CCA_LAYOUT)
		return -ENOENT;
	*ret = config;
	return 0;
}

/* The parameters a program was loaded with are in one of its maps. */
static int read_program_config(uint32_t prog_id, struct pep_cca_config *ret)
{
	uint32_t maps[MAPS_MAX], size = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MAX, .map_ids = (uint64_t)(uintptr_t)maps};
	int fd = bpf_prog_get_fd_by_id(prog_id), err = -ENOENT;

	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		err = -errno;
	close(fd);
	for (uint32_t i = 0; i < info.nr_map_ids && i < MAPS_MAX && err == -ENOENT; i++) {
		int map_fd = bpf_map_get_fd_by_id(maps[i]);

		if (map_fd < 0)
			continue;
		err = read_config(map_fd, ret);
		close(map_fd);
	}
	return err;
}

/* Fills @ret from a struct_ops map; -ENOENT when it is not registered any more. */
static int read_loaded(const struct pep_cca_host *host, int map_fd, const struct bpf_map_info *info,
		       struct pep_cca_loaded *ret)
{
	size_t place = host->value_offset + host->cong_control_offset;
	uint32_t zero = 0;
	struct value_head head;
	uint64_t prog_id; /* the kernel puts ids where the functions' addresses are */
	char *value;
	int err = -EPROTO;

	if (info->value_size != host->value_size || place + sizeof(prog_id) > host->value_size ||
	    info->value_size < sizeof(head))
		return err;
	value = calloc(1, info->value_size);
	if (!value)
		return -ENOMEM;
	if (bpf_map_lookup_elem(map_fd, &zero, value) < 0) {
		err = -errno;
		goto out;
	}
	memcpy(&head, value, sizeof(head));
	memcpy(&prog_id, value + place, sizeof(prog_id));
	err = -ENOENT;
	if (head.state != STATE_IN_USE)
		goto out;
	ret->map_id = info->id;
	ret->sockets = head.refs > REGISTRY_REFS ? head.refs - REGISTRY_REFS : 0;
	ret->same_version = read_program_config((uint32_t)prog_id, &ret->config) == 0 &&
			    ret->config.kind == ret->kind;
	err = 0;
out:
	free(value);
	return err;
}

int pep_cca_registry_find(const struct pep_cca_host *host, enum pep_cca_kind kind,
			  struct pep_cca_loaded *ret)
{
	const struct pep_cca_info *control = pep_cca_info_get(kind);
	struct pep_cca_loaded loaded = {.kind = kind};
	struct bpf_map_info info;
	uint32_t id = 0;
	int fd, err;

	for (;;) {
		fd = next_map(&id, BPF_MAP_TYPE_STRUCT_OPS, control->name, &info);
		if (fd < 0)
			return fd;
		err = read_loaded(host, fd, &info, &loaded);
		close(fd);
		if (err == -ENOENT)
			continue;
		if (!err)
			*ret = loaded;
		return err;
	}
}

int pep_cca_registry_remove(uint32_t map_id)
{
	uint32_t zero = 0;
	int fd = bpf_map_get_fd_by_id(map_id), err = 0;

	if (fd < 0)
		return -errno;
	if (bpf_map_delete_elem(fd, &zero) < 0)
		err = -errno;
	close(fd);
	return err;
}

int pep_cca_registry_state_map(void)
{
	struct bpf_map_info info;
	uint32_t id = 0;
	int fd, found = -ENOENT;

	/* The newest is the one that controls loaded last use. */
	for (;;) {
		fd = next_map(&id, BPF_MAP_TYPE_SK_STORAGE, PEP_CCA_STATE_MAP, &info);
		if (fd < 0)
			break;
		if (info.value_size != sizeof(struct pep_cc_flow)) {
			close(fd);
			continue;
		}
		if (found >= 0)
			close(found);
		found = fd;
	}
	return found >= 0 ? found : fd;
}

bool pep_cca_registry_has_name(const char *name)
{
	char word[32];
	FILE *in = fopen(NAMES_FILE, "re");
	bool found = false;

	if (!in)
		return false;
	while (!found && fscanf(in, "%31s", word) == 1)
		found = strcmp(word, name) == 0;
	fclose(in);
	return found;
}
