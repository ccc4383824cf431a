/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A control that sockets use is never changed under them: a new one takes its name instead. */
#include "cca/load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cca/pin.h"

static char log_text[8192];

static int keep_message(enum libbpf_print_level level, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/* Keeps the end: the verifier says last what is wrong. */
static int keep_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	static char line[sizeof(log_text) / 2];
	size_t used = strlen(log_text), length;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), format, arguments);
	length = strlen(line);
	if (used + length >= sizeof(log_text)) {
		size_t drop = used + length + 1 - sizeof(log_text);

		memmove(log_text, log_text + drop, used - drop + 1);
		used -= drop;
	}
	memcpy(log_text + used, line, length + 1);
	return 0;
}

const char *pep_cca_load_log(void)
{
	return log_text;
}

void pep_cca_load_quiet(void)
{
	libbpf_set_print(keep_message);
}

static struct bpf_map *find_ops_map(struct bpf_object *obj)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
	{
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			return map;
	}
	return NULL;
}

/* Opens, parametrises and verifies; @state_fd (-1: none) is the storage to share. */
static int load_object(const struct pep_cca_object *object, const struct pep_cca_config *config,
		       int state_fd, struct bpf_object **ret)
{
	struct bpf_object *obj = bpf_object__open_mem(object->elf, object->size, NULL);
	struct bpf_map *map;
	int err = -EINVAL;

	if (!obj)
		return -errno;
	map = bpf_object__find_map_by_name(obj, PEP_CCA_CONFIG_SECTION);
	if (!map)
		goto fail;
	err = bpf_map__set_initial_value(map, config, sizeof(*config));
	if (err)
		goto fail;
	map = bpf_object__find_map_by_name(obj, PEP_CCA_STATE_MAP);
	if (map && state_fd >= 0) {
		err = bpf_map__reuse_fd(map, state_fd);
		if (err)
			goto fail;
	}
	err = bpf_object__load(obj);
	if (err)
		goto fail;
	*ret = obj;
	return 0;

fail:
	bpf_object__close(obj);
	return err;
}

/* Kernels before 6.4 refuse to have app_limited written: then the store is left out. */
static int load_verified(const struct pep_cca_object *object, struct pep_cca_config *config,
			 struct bpf_object **ret)
{
	int state_fd = pep_cca_registry_state_map(), err;

	config->set_app_limited = 1;
	err = load_object(object, config, state_fd, ret);
	if (err == -EACCES || err == -EINVAL) {
		config->set_app_limited = 0;
		err = load_object(object, config, state_fd, ret);
	}
	if (state_fd >= 0)
		close(state_fd);
	return err;
}

/* FNV-1a: after an upgrade the same parameters do not mean the same program. */
static uint32_t fingerprint(const struct pep_cca_object *object)
{
	const unsigned char *byte = object->elf;
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < object->size; i++)
		hash = (hash ^ byte[i]) * 16777619U;
	return hash;
}

static int attach(struct bpf_object *obj)
{
	struct bpf_map *map = find_ops_map(obj);
	struct bpf_link *link;

	if (!map)
		return -EINVAL;
	link = bpf_map__attach_struct_ops(map);
	if (!link)
		return -errno;
	bpf_link__disconnect(link); /* stays registered when we are gone */
	bpf_link__destroy(link);
	return 0;
}

static bool same_program(const struct pep_cca_config *a, const struct pep_cca_config *b)
{
	struct pep_cca_config x = *a, y = *b;

	x.set_app_limited = y.set_app_limited = 0; /* the kernel's choice, not the user's */
	return memcmp(&x, &y, sizeof(x)) == 0;
}

/* What is to be done about one that is there already. Returns 1 when nothing is left to do. */
static int make_room(const struct pep_cca_host *host, const struct pep_cca_config *config,
		     const struct pep_cca_load_options *options, struct pep_cca_load_report *ret,
		     uint32_t *ret_old_id)
{
	enum pep_cca_kind kind = (enum pep_cca_kind)config->kind;
	struct pep_cca_loaded old;
	int err = pep_cca_registry_find(host, kind, &old);

	*ret_old_id = 0;
	if (err == -ENOENT)
		return 0;
	if (err)
		return pep_cca_registry_has_name(pep_cca_info_get(kind)->name) ? -EEXIST : 0;
	ret->sockets = old.sockets;
	if (old.same_version && same_program(&old.config, config)) {
		ret->result = PEP_CCA_LOAD_SAME;
		ret->app_limited = old.config.set_app_limited;
		return 1;
	}
	if (old.sockets && !options->replace)
		return -EBUSY;
	ret->result = PEP_CCA_LOAD_REPLACED;
	*ret_old_id = old.map_id;
	return 0;
}

static void make_observable(const struct pep_cca_load_options *options,
			    struct pep_cca_load_report *ret)
{
	int fd;

	if (!options->pin_dir)
		return;
	ret->observe_error = pep_cca_pin_prepare(options->pin_dir);
	if (ret->observe_error)
		return;
	fd = pep_cca_registry_state_map();
	if (fd < 0) {
		ret->observe_error = fd;
		return;
	}
	ret->observe_error = pep_cca_pin_state(options->pin_dir, fd, (gid_t)options->group);
	close(fd);
}

int pep_cca_load(const struct pep_cca_host *host, const struct pep_cca_config *config,
		 const struct pep_cca_load_options *options, struct pep_cca_load_report *ret)
{
	struct pep_cca_config wanted = *config;
	struct pep_cca_object object;
	struct bpf_object *obj = NULL;
	uint32_t old_id;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!pep_cca_host_usable(host) ||
	    pep_cca_object_get((enum pep_cca_kind)config->kind, host->variant, &object) < 0)
		return -EOPNOTSUPP;
	wanted.build = fingerprint(&object);
	err = make_room(host, &wanted, options, ret, &old_id);
	if (err < 0)
		return err;
	if (err == 0) {
		/* Verified before the old one goes: its name is free for some milliseconds only. */
		err = load_verified(&object, &wanted, &obj);
		if (!err && old_id)
			err = pep_cca_registry_remove(old_id);
		if (!err)
			err = attach(obj);
		bpf_object__close(obj);
		if (err)
			return err;
		ret->app_limited = wanted.set_app_limited;
	}
	make_observable(options, ret);
	return 0;
}
