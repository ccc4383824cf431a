/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run-dir/rules.state. It is written before anything is changed and read as root from a folder that
 * the daemon's user owns: nothing in it is used unless it is one of a few known values.
 */
#include "ctl/rules.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_NAME    "rules.state"
#define STATE_VERSION 1
#define STATE_MAX     65536

static void state_path(const char *run_dir, const char *suffix, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/" STATE_NAME "%s", run_dir, suffix);
}

static bool read_number(const json_t *object, const char *key, uint32_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > UINT32_MAX)
		return false;
	*ret = (uint32_t)json_integer_value(value);
	return true;
}

static bool read_rule(const json_t *object, enum rules_family family, struct rules_ip_rule *ret)
{
	const char *iif = json_string_value(json_object_get(object, "iif"));

	ret->family = family;
	if (!iif || strlen(iif) >= sizeof(ret->iif) || *iif == '-')
		return false;
	for (const char *c = iif; *c; c++)
		if (!isgraph((unsigned char)*c) || *c == '/')
			return false;
	(void)snprintf(ret->iif, sizeof(ret->iif), "%s", iif);
	return read_number(object, "mark", &ret->mark) &&
	       read_number(object, "table", &ret->table) &&
	       read_number(object, "priority", &ret->priority);
}

static bool read_family(const json_t *object, enum rules_family family, struct rules_state *state)
{
	const json_t *item;
	size_t i;

	if (!object)
		return true;
	json_array_foreach(json_object_get(object, "created_tables"), i, item)
	{
		enum rules_table table;

		if (!json_is_string(item) || !rules_table_parse(json_string_value(item), &table))
			return false;
		state->created[family][table] = true;
	}
	state->sets[family] = json_is_true(json_object_get(object, "set"));
	if (!read_number(object, "route_table", &state->route_table[family]))
		return false;
	json_array_foreach(json_object_get(object, "rules"), i, item)
	{
		if (state->n_rules == RULES_MAX_ROUTE_RULES ||
		    !read_rule(item, family, &state->rules[state->n_rules]))
			return false;
		state->n_rules++;
	}
	return true;
}

static bool read_sysctls(const json_t *object, struct rules_state *state)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		const char *text = json_string_value(value);
		size_t i = 0;

		while (rules_sysctls[i].name && strcmp(rules_sysctls[i].name, name) != 0)
			i++;
		if (!rules_sysctls[i].name || !text || !*text ||
		    strspn(text, "0123456789") != strlen(text) ||
		    strlen(text) >= sizeof(state->sysctl_old[i]))
			return false;
		(void)snprintf(state->sysctl_old[i], sizeof(state->sysctl_old[i]), "%s", text);
	}
	return true;
}

static int read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size >= (off_t)size) {
		(void)close(fd);
		return -EINVAL;
	}
	n = read(fd, text, size - 1);
	(void)close(fd);
	if (n < 0)
		return -EIO;
	text[n] = '\0';
	return 0;
}

int rules_state_load(const char *run_dir, struct rules_state *ret)
{
	struct rules_state state = {0};
	static char text[STATE_MAX];
	char path[256];
	json_t *root;
	uint32_t version = 0;
	bool good;
	int err;

	state_path(run_dir, "", path, sizeof(path));
	err = read_file(path, text, sizeof(text));
	if (err)
		return err;
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	good = read_number(root, "version", &version) && version == STATE_VERSION &&
	       read_family(json_object_get(root, "ipv4"), RULES_FAMILY_IPV4, &state) &&
	       read_family(json_object_get(root, "ipv6"), RULES_FAMILY_IPV6, &state) &&
	       read_sysctls(json_object_get(root, "sysctls"), &state);
	json_decref(root);
	if (!good)
		return -EINVAL;
	*ret = state;
	return 0;
}

static json_t *write_family(const struct rules_state *state, enum rules_family family)
{
	json_t *tables = json_array();
	json_t *rules = json_array();

	for (int t = 0; t < RULES_TABLE_COUNT_; t++)
		if (state->created[family][t])
			(void)json_array_append_new(
				tables, json_string(rules_table_name((enum rules_table)t)));
	for (size_t i = 0; i < state->n_rules; i++) {
		const struct rules_ip_rule *r = &state->rules[i];

		if (r->family == family)
			(void)json_array_append_new(
				rules, json_pack("{s:s, s:I, s:I, s:I}", "iif", r->iif, "mark",
						 (json_int_t)r->mark, "table", (json_int_t)r->table,
						 "priority", (json_int_t)r->priority));
	}
	return json_pack("{s:o, s:b, s:I, s:o}", "created_tables", tables, "set",
			 state->sets[family], "route_table", (json_int_t)state->route_table[family],
			 "rules", rules);
}

int rules_state_store(const char *run_dir, const struct rules_state *state)
{
	json_t *sysctls = json_object();
	char path[256], temporary[256];
	json_t *root;
	int err = 0;
	int fd;

	for (size_t i = 0; rules_sysctls[i].name; i++)
		if (state->sysctl_old[i][0])
			(void)json_object_set_new(sysctls, rules_sysctls[i].name,
						  json_string(state->sysctl_old[i]));
	root = json_pack("{s:i, s:o, s:o, s:o}", "version", STATE_VERSION, "ipv4",
			 write_family(state, RULES_FAMILY_IPV4), "ipv6",
			 write_family(state, RULES_FAMILY_IPV6), "sysctls", sysctls);
	if (!root)
		return -ENOMEM;
	state_path(run_dir, "", path, sizeof(path));
	state_path(run_dir, ".new", temporary, sizeof(temporary));
	(void)unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0) {
		err = -errno;
		goto out;
	}
	if (json_dumpfd(root, fd, JSON_INDENT(1)) < 0 || write(fd, "\n", 1) != 1 || fsync(fd) < 0)
		err = -EIO;
	if (close(fd) < 0)
		err = -EIO;
	if (!err && rename(temporary, path) < 0)
		err = -errno;
	if (err)
		(void)unlink(temporary);
out:
	json_decref(root);
	return err;
}

void rules_state_remove(const char *run_dir)
{
	char path[256];

	state_path(run_dir, "", path, sizeof(path));
	(void)unlink(path);
}

int rules_state_lock(const char *run_dir)
{
	int fd;

	if (mkdir(run_dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX) < 0) {
		int err = -errno;

		(void)close(fd);
		return err;
	}
	return fd;
}
