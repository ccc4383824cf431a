/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libconfuse reads the text into a tree whose leaves are texts with their lines; then the tree is
 * laid over the configuration. libconfuse has one lexer per process and hands no pointer of ours to
 * its callbacks, so a lock admits one parse at a time and `parsing` says whose it is.
 */
#include "base/conf_internal.h"

#include <confuse.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_KEYS 32

/* What libconfuse keeps for each value. */
struct located {
	const cfg_opt_t *opt; /* valid while the file is being read */
	bool first;           /* of its list */
	int line;
	char text[];
};

struct section {
	const char *name;
	bool titled;
};

static const struct section sections[] = {
	{"relay", false},    {"leg", true},      {"class", true}, {"bypass", false},
	{"steering", false}, {"monitor", false}, {"cca", true},
};

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

/* The schema in libconfuse's terms. */
struct options {
	cfg_opt_t root[SECTION_KEYS + N_SECTIONS];
	cfg_opt_t section[N_SECTIONS][SECTION_KEYS];
};

static pthread_mutex_t parse_lock = PTHREAD_MUTEX_INITIALIZER;
static struct conf_loader *parsing; /* NULL while the tree is taken down */

static int on_value(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *ret)
{
	size_t size = strlen(text) + 1;
	struct located *value = malloc(sizeof(*value) + size);

	if (!value)
		return -1;
	value->opt = opt;
	value->first = opt->nvalues == 1;
	value->line = cfg->line;
	memcpy(value->text, text, size);
	*(struct located **)ret = value;
	return 0;
}

/* A value freed while the file is being read was replaced by a second one for the same key. */
static void on_value_free(void *data)
{
	struct located *value = data;

	if (parsing && value->first)
		conf_report(parsing, parsing->file, value->line,
			    "%s is given again further down; keep one", value->opt->name);
	free(value);
}

/* The schema's name of the section that @cfg is. */
static const char *section_name(const cfg_t *cfg)
{
	if (strcmp(cfg->name, "root") == 0)
		return "";
	if (strcmp(cfg->name, "leg") == 0)
		return strcmp(cfg->title, "wired") == 0 ? "leg wired" : "leg wireless";
	return cfg->name;
}

static void __attribute__((format(printf, 2, 0)))
on_error(cfg_t *cfg, const char *format, va_list args)
{
	char message[CONF_WHY_SIZE], hint[CONF_WHY_SIZE];
	const char *word;
	va_list copy;

	va_copy(copy, args);
	if (strncmp(format, "no such option", 14) == 0) {
		word = va_arg(copy, const char *);
		conf_suggest(section_name(cfg), word, hint);
		snprintf(message, sizeof(message), "unknown key \"%.64s\"%.160s", word, hint);
	} else if (strncmp(format, "found duplicate title", 21) == 0) {
		word = va_arg(copy, const char *);
		snprintf(message, sizeof(message), "a second section \"%.64s\"; keep one", word);
	} else {
		vsnprintf(message, sizeof(message), format, args);
		if (strpbrk(message, "=()"))
			strncat(message, "; a value that contains it needs quotes",
				sizeof(message) - strlen(message) - 1);
	}
	va_end(copy);
	conf_report(parsing, parsing->file, cfg->line, "%s", message);
}

static cfg_opt_t option_of(const struct conf_key *key)
{
	return (cfg_opt_t){
		.name = key->doc.key,
		.type = CFGT_PTR,
		.flags = conf_kind_is_list(key->kind) ? CFGF_LIST : CFGF_NONE,
		.parsecb = on_value,
		.freecb = on_value_free,
	};
}

static void options_fill(cfg_opt_t *options, const char *section)
{
	size_t used = 0;

	for (size_t i = 0; i < conf_n_keys; i++) {
		if (strcmp(conf_keys[i].doc.section, section) == 0 && used < SECTION_KEYS - 1)
			options[used++] = option_of(&conf_keys[i]);
	}
}

/* The arrays end at the first zeroed entry. */
static struct options *options_new(void)
{
	struct options *options = calloc(1, sizeof(*options));
	size_t used = 0;

	if (!options)
		return NULL;
	options_fill(options->root, "");
	while (options->root[used].name)
		used++;
	for (size_t i = 0; i < N_SECTIONS; i++) {
		bool leg = strcmp(sections[i].name, "leg") == 0;

		options_fill(options->section[i], leg ? "leg wired" : sections[i].name);
		options->root[used++] = (cfg_opt_t){
			.name = sections[i].name,
			.type = CFGT_SEC,
			.flags = sections[i].titled ? CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES
						    : CFGF_NONE,
			.subopts = options->section[i],
		};
	}
	return options;
}

static void report_value(struct conf_loader *loader, const struct conf_key *key,
			 const struct located *value, const char *why)
{
	conf_report(loader, loader->file, value->line, "%s = \"%.80s\": %s", key->doc.key,
		    value->text, why);
}

/* Lays the values of one key over @base. */
static void apply_values(struct conf_loader *loader, const struct conf_key *key, cfg_opt_t *opt,
			 void *base)
{
	char why[CONF_WHY_SIZE];

	conf_value_clear(key, base);
	for (unsigned int i = 0; i < cfg_opt_size(opt); i++) {
		const struct located *value = cfg_opt_getnptr(opt, i);

		if (conf_value_parse(key, value->text, base, why)) {
			report_value(loader, key, value, why);
			return;
		}
	}
}

/* Replaces all parameters of the congestion control @cca by those of @opt. */
static void apply_params(struct conf_loader *loader, const struct conf_key *key, cfg_opt_t *opt,
			 const char *cca)
{
	struct pep_conf *conf = loader->conf;
	unsigned int kept = 0;
	char why[CONF_WHY_SIZE];

	for (unsigned int i = 0; i < conf->n_cca_params; i++) {
		if (strcmp(conf->cca_params[i].cca, cca) != 0)
			conf->cca_params[kept++] = conf->cca_params[i];
	}
	memset(&conf->cca_params[kept], 0, (key->capacity - kept) * sizeof(conf->cca_params[0]));
	conf->n_cca_params = kept;

	for (unsigned int i = 0; i < cfg_opt_size(opt); i++) {
		const struct located *value = cfg_opt_getnptr(opt, i);
		struct pep_cca_param param = {0};

		if (conf_value_parse(key, value->text, &param, why)) {
			report_value(loader, key, value, why);
			return;
		}
		for (unsigned int j = kept; j < conf->n_cca_params; j++) {
			if (strcmp(conf->cca_params[j].key, param.key) == 0) {
				report_value(loader, key, value, "this key is given twice");
				return;
			}
		}
		if (conf->n_cca_params >= key->capacity) {
			snprintf(why, sizeof(why), "too many parameters; there is room for %u",
				 key->capacity);
			report_value(loader, key, value, why);
			return;
		}
		memcpy(param.cca, cca, strlen(cca) + 1);
		conf->cca_params[conf->n_cca_params++] = param;
	}
}

/* Checks a title that becomes a name. */
static bool title_ok(struct conf_loader *loader, cfg_t *cfg)
{
	struct conf_key key = {.kind = CONF_KIND_CCA, .size = PEP_CONF_NAME_SIZE};
	char name[PEP_CONF_NAME_SIZE], why[CONF_WHY_SIZE];

	if (conf_value_parse(&key, cfg->title, name, why) == 0)
		return true;
	conf_report(loader, loader->file, cfg->line, "%s \"%.80s\" above: the name %s", cfg->name,
		    cfg->title, why);
	return false;
}

/* The class @cfg names, made when there is none yet; NULL is reported. */
static struct pep_class_conf *class_of(struct conf_loader *loader, cfg_t *cfg)
{
	struct pep_conf *conf = loader->conf;
	struct pep_class_conf *found;
	unsigned int i = 0;

	if (!title_ok(loader, cfg))
		return NULL;
	if (strcmp(cfg->title, "default") == 0) {
		conf_report(loader, loader->file, cfg->line,
			    "class \"default\" above: the name stands for flows of no class; "
			    "choose another");
		return NULL;
	}
	while (i < conf->n_classes && strcmp(conf->classes[i].name, cfg->title) != 0)
		i++;
	if (i == PEP_CONF_MAX_CLASSES) {
		conf_report(loader, loader->file, cfg->line,
			    "class \"%s\" above: too many classes; there is room for %d",
			    cfg->title, PEP_CONF_MAX_CLASSES);
		return NULL;
	}
	found = &conf->classes[i];
	if (i == conf->n_classes) {
		conf->n_classes++;
		memcpy(found->name, cfg->title, strlen(cfg->title) + 1);
	}
	loader->class_origins[i] = (struct conf_origin){loader->file, cfg->line};
	return found;
}

static void note_set(struct conf_loader *loader, const struct conf_key *key, cfg_opt_t *opt,
		     const struct pep_class_conf *class)
{
	const struct conf_key *first = conf_key_find("class", "clients");
	const struct located *value = cfg_opt_size(opt) ? cfg_opt_getnptr(opt, 0) : NULL;

	if (class)
		loader->class_set[class - loader->conf->classes] |= 1ull << (key - first);
	else
		loader->origins[key - conf_keys] =
			(struct conf_origin){loader->file, value ? value->line : 0};
}

static void apply_section(struct conf_loader *loader, cfg_t *cfg)
{
	const char *section = section_name(cfg);
	struct pep_class_conf *class = NULL;
	void *base = loader->conf;

	if (strcmp(section, "class") == 0) {
		class = class_of(loader, cfg);
		base = class;
		if (!class)
			return;
	} else if (strcmp(cfg->name, "cca") == 0 && !title_ok(loader, cfg)) {
		return;
	} else if (strcmp(cfg->name, "leg") == 0 && strcmp(cfg->title, "wireless") != 0 &&
		   strcmp(cfg->title, "wired") != 0) {
		conf_report(loader, loader->file, cfg->line,
			    "leg \"%.64s\" above: must be wireless or wired", cfg->title);
		return;
	}
	for (cfg_opt_t *opt = cfg->opts; opt->name; opt++) {
		const struct conf_key *key = conf_key_find(section, opt->name);

		if (!key || !(opt->flags & CFGF_MODIFIED))
			continue;
		note_set(loader, key, opt, class);
		if (key->kind == CONF_KIND_PARAMS)
			apply_params(loader, key, opt, cfg->title);
		else
			apply_values(loader, key, opt, base);
	}
}

static void apply_tree(struct conf_loader *loader, cfg_t *root)
{
	apply_section(loader, root);
	for (cfg_opt_t *opt = root->opts; opt->name; opt++) {
		if (opt->type != CFGT_SEC)
			continue;
		for (unsigned int i = 0; i < cfg_opt_size(opt); i++)
			apply_section(loader, cfg_opt_getnsec(opt, i));
	}
}

int conf_parse(struct conf_loader *loader, const char *text)
{
	unsigned int errors_before = loader->n_errors;
	struct options *options;
	cfg_t *root = NULL;
	int err = -ENOMEM;

	pthread_mutex_lock(&parse_lock);
	parsing = loader;
	options = options_new();
	if (!options)
		goto out;
	root = cfg_init(options->root, CFGF_NONE);
	if (!root)
		goto out;
	cfg_set_error_function(root, on_error);

	err = -EINVAL;
	if (cfg_parse_buf(root, text) != CFG_SUCCESS) {
		if (loader->n_errors == errors_before)
			conf_report(loader, loader->file, root->line, "not understood");
		goto out;
	}
	parsing = NULL;
	if (loader->n_errors == errors_before)
		apply_tree(loader, root);
	if (loader->n_errors == errors_before)
		err = 0;
out:
	parsing = NULL;
	if (root)
		cfg_free(root);
	free(options);
	pthread_mutex_unlock(&parse_lock);
	return err;
}
