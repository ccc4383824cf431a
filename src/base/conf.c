/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A configuration is defaults, then the file, then its drop-ins, then what follows from them all.
 */
#include "base/conf_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void conf_report(struct conf_loader *loader, const char *file, int line, const char *format, ...)
{
	char message[1024];
	va_list args;

	loader->n_errors++;
	if (!loader->errors)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	/* values are quoted in messages: keep them on one line and off the terminal's controls */
	for (char *at = message; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
	if (line > 0)
		fprintf(loader->errors, "%s:%d: %s\n", file, line, message);
	else
		fprintf(loader->errors, "%s: %s\n", file, message);
}

/* Sets every key that has a default; @conf is zeroed. */
static void set_defaults(struct pep_conf *conf)
{
	char why[CONF_WHY_SIZE];

	for (size_t i = 0; i < conf_n_keys; i++) {
		const struct conf_key *key = &conf_keys[i];

		if (strcmp(key->doc.section, "class") == 0 || conf_kind_is_list(key->kind))
			continue;
		/* a default that does not parse is caught by the unit test of the schema */
		(void)conf_value_parse(key, key->doc.value, conf, why);
	}
}

static int loader_init(struct conf_loader *loader, FILE *errors)
{
	memset(loader, 0, sizeof(*loader));
	loader->errors = errors;
	loader->conf = calloc(1, sizeof(*loader->conf));
	loader->origins = calloc(conf_n_keys, sizeof(*loader->origins));
	if (!loader->conf || !loader->origins) {
		pep_conf_free(loader->conf);
		free(loader->origins);
		return -ENOMEM;
	}
	set_defaults(loader->conf);
	return 0;
}

/* Ends loading: hands over the configuration when @err and all checks are fine. */
static int loader_end(struct conf_loader *loader, int err, struct pep_conf **ret)
{
	if (!err) {
		conf_finish(loader);
		if (loader->n_errors)
			err = -EINVAL;
	}
	free(loader->origins);
	if (err)
		pep_conf_free(loader->conf);
	else
		*ret = loader->conf;
	return err;
}

/* Reads a whole file of at most CONF_TEXT_LIMIT bytes; NUL is put behind. */
static int text_read(int fd, char **ret, size_t *ret_length)
{
	char *text = malloc(CONF_TEXT_LIMIT + 1);
	size_t length = 0;
	ssize_t got;
	int err;

	if (!text)
		return -ENOMEM;
	do {
		got = read(fd, text + length, CONF_TEXT_LIMIT + 1 - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err = -errno;
			goto fail;
		}
		length += (size_t)got;
	} while (got != 0 && length <= CONF_TEXT_LIMIT);
	err = -EFBIG;
	if (length > CONF_TEXT_LIMIT)
		goto fail;
	text[length] = '\0';
	*ret = text;
	*ret_length = length;
	return 0;
fail:
	free(text);
	return err;
}

static int load_text(struct conf_loader *loader, char *text, size_t length)
{
	int err = conf_text_prepare(loader, text, length);

	return err ? err : conf_parse(loader, text);
}

static int load_file(struct conf_loader *loader, const char *path)
{
	char *text = NULL;
	size_t length = 0;
	int err, fd;

	loader->file = path;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : text_read(fd, &text, &length);
	if (fd >= 0)
		close(fd);
	if (err) {
		conf_report(loader, path, 0, "cannot be read: %s", strerror(-err));
		return err;
	}
	err = load_text(loader, text, length);
	free(text);
	return err;
}

static int is_dropin(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 &&
	       strcmp(entry->d_name + length - 5, ".conf") == 0;
}

/* Byte order, the same in every locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The drop-ins beside @path, as full paths that end with NULL; none is an empty list. */
static int dropins_list(const char *path, char ***ret)
{
	struct dirent **entries = NULL;
	char folder[PATH_MAX], **paths = NULL;
	int count, err = 0;

	if (snprintf(folder, sizeof(folder), "%s.d", path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	count = scandir(folder, &entries, is_dropin, by_name);
	if (count < 0 && errno != ENOENT && errno != ENOTDIR)
		return -errno;
	if (count < 0)
		count = 0;
	paths = calloc((size_t)count + 1, sizeof(*paths));
	for (int i = 0; i < count; i++) {
		if (!paths || asprintf(&paths[i], "%s/%s", folder, entries[i]->d_name) < 0) {
			if (paths)
				paths[i] = NULL;
			err = -ENOMEM;
		}
		free(entries[i]);
	}
	free(entries);
	if (!paths)
		err = -ENOMEM;
	*ret = paths;
	return err;
}

static void dropins_free(char **paths)
{
	for (char **at = paths; at && *at; at++)
		free(*at);
	free(paths);
}

int pep_conf_load(const char *path, FILE *errors, struct pep_conf **ret)
{
	struct conf_loader loader;
	char **dropins = NULL;
	int err;

	err = loader_init(&loader, errors);
	if (err)
		return err;
	err = load_file(&loader, path);
	if (!err) {
		err = dropins_list(path, &dropins);
		if (err)
			conf_report(&loader, path, 0, "the drop-ins cannot be read: %s",
				    strerror(-err));
	}
	for (char **dropin = dropins; !err && dropin && *dropin; dropin++)
		err = load_file(&loader, *dropin);
	/* what is wrong with values that nobody wrote is said of the main file */
	loader.file = path;
	err = loader_end(&loader, err, ret);
	dropins_free(dropins);
	return err;
}

int pep_conf_parse(const char *name, const char *text, size_t length, FILE *errors,
		   struct pep_conf **ret)
{
	struct conf_loader loader;
	char *copy;
	int err;

	err = loader_init(&loader, errors);
	if (err)
		return err;
	loader.file = name;
	copy = malloc(length + 1);
	if (copy) {
		memcpy(copy, text, length);
		copy[length] = '\0';
		err = load_text(&loader, copy, length);
		free(copy);
	} else {
		err = -ENOMEM;
	}
	return loader_end(&loader, err, ret);
}

int pep_conf_new(struct pep_conf **ret)
{
	return pep_conf_parse("defaults", "", 0, NULL, ret);
}

void pep_conf_free(struct pep_conf *conf)
{
	free(conf);
}
