/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Both files belong to one map: they are replaced together or not at all. */
#include "cca/pin.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cca/objects.h"

static bool is_bpf_fs(const char *dir)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

int pep_cca_pin_prepare(const char *dir)
{
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (is_bpf_fs(dir))
		return 0;
	if (mount("bpf", dir, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") < 0)
		return -errno;
	return 0;
}

static int path_of(char path[PATH_MAX], const char *dir, const char *name)
{
	int length = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	return length > 0 && length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static uint32_t map_id_of(int fd)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 ? info.id : 0;
}

static bool is_pinned(const char *map_path, const char *flows_path, int map_fd)
{
	int fd = bpf_obj_get(map_path);
	bool same;

	if (fd < 0)
		return false;
	same = map_id_of(fd) == map_id_of(map_fd) && access(flows_path, F_OK) == 0;
	close(fd);
	return same;
}

static int share(const char *path, gid_t group)
{
	if (chown(path, 0, group == (gid_t)-1 ? 0 : group) < 0 ||
	    chmod(path, group == (gid_t)-1 ? 0400 : 0440) < 0)
		return -errno;
	return 0;
}

/* Loads the iterator, ties it to the map and leaves it at @path. */
static int pin_flows(const char *path, int map_fd)
{
	union bpf_iter_link_info target = {.map.map_fd = (uint32_t)map_fd};
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &target,
			    .link_info_len = sizeof(target));
	struct pep_cca_object object;
	struct bpf_program *program;
	struct bpf_object *obj = NULL;
	struct bpf_link *link = NULL;
	int err = pep_cca_object_flows(&object);

	if (err)
		return err;
	obj = bpf_object__open_mem(object.elf, object.size, NULL);
	if (!obj)
		return -errno;
	err = bpf_object__load(obj);
	program = bpf_object__next_program(obj, NULL);
	if (err || !program)
		goto out;
	link = bpf_program__attach_iter(program, &options);
	err = link ? bpf_link__pin(link, path) : -errno;
out:
	bpf_link__destroy(link);
	bpf_object__close(obj);
	return err;
}

int pep_cca_pin_state(const char *dir, int map_fd, gid_t group)
{
	char map_path[PATH_MAX], flows_path[PATH_MAX];
	int err;

	err = path_of(map_path, dir, PEP_CCA_STATE_MAP);
	if (!err)
		err = path_of(flows_path, dir, PEP_CCA_FLOWS_FILE);
	if (err)
		return err;
	if (!is_pinned(map_path, flows_path, map_fd)) {
		(void)unlink(map_path);
		(void)unlink(flows_path);
		if (bpf_obj_pin(map_fd, map_path) < 0)
			return -errno;
		err = pin_flows(flows_path, map_fd);
		if (err)
			return err;
	}
	err = share(map_path, group);
	return err ? err : share(flows_path, group);
}

void pep_cca_pin_remove(const char *dir)
{
	char path[PATH_MAX];

	if (!is_bpf_fs(dir))
		return;
	if (path_of(path, dir, PEP_CCA_FLOWS_FILE) == 0)
		(void)unlink(path);
	if (path_of(path, dir, PEP_CCA_STATE_MAP) == 0)
		(void)unlink(path);
	/* rmdir works on a plain folder of a BPF file system, umount on the root of one: ours. */
	if (rmdir(dir) < 0 && errno == EBUSY && umount2(dir, UMOUNT_NOFOLLOW) == 0)
		(void)rmdir(dir);
}
