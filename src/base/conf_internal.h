/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_CONF_INTERNAL_H
#define PEP_BASE_CONF_INTERNAL_H

/* What the conf_*.c files share; nobody else includes this. */

#include "base/conf.h"

#define CONF_WHY_SIZE   256
#define CONF_TEXT_LIMIT (1u << 20) /* largest file read, bytes */
#define CONF_MAX_FLOWS  (1u << 20)

enum conf_kind {
	CONF_KIND_ENUM,
	CONF_KIND_COUNT,
	CONF_KIND_SIZE,
	CONF_KIND_TIME,    /* kept in milliseconds */
	CONF_KIND_SECONDS, /* a time kept in whole seconds */
	CONF_KIND_PERCENT,
	CONF_KIND_MASK,
	CONF_KIND_NAME, /* of a user or group */
	CONF_KIND_CCA,
	CONF_KIND_PATH,
	CONF_KIND_LISTEN,
	CONF_KIND_INTERFACES, /* this and what follows are lists */
	CONF_KIND_PREFIXES,
	CONF_KIND_PORTS,
	CONF_KIND_PARAMS,
};

/** One row of the schema. */
struct conf_key {
	struct pep_conf_key doc;
	enum conf_kind kind;
	bool restart;          /* a running daemon cannot take a new value */
	size_t offset;         /* in struct pep_conf, or in pep_class_conf for section "class" */
	size_t size;           /* of the field; of one element for lists */
	size_t count_offset;   /* of a list's length */
	unsigned int capacity; /* of a list */
	size_t inherit;        /* in struct pep_conf: what a class without this key takes; or 0 */
	uint64_t min, max;     /* in the unit kept */
	const char *word;      /* stands for 0 or "": off, auto, system; or NULL */
	const char *const *choices; /* of an enum, NULL at the end */
};

extern const struct conf_key conf_keys[];
extern const size_t conf_n_keys;

static inline bool conf_kind_is_list(enum conf_kind kind)
{
	return kind >= CONF_KIND_INTERFACES;
}

/** The row of @key in @section, or NULL. */
const struct conf_key *conf_key_find(const char *section, const char *key);

/*
 * conf_value.c: texts to fields and back. @base is the struct that @key->offset counts from; for
 * CONF_KIND_PARAMS it is one struct pep_cca_param.
 */

/**
 * Reads @text into the field; a list grows by one. Returns 0, or -EINVAL with @why saying what was
 * expected; the field is untouched then.
 */
int conf_value_parse(const struct conf_key *key, const char *text, void *base,
		     char why[CONF_WHY_SIZE]);

/** Empties a list; nothing for others. */
void conf_value_clear(const struct conf_key *key, void *base);

/** Writes the field as the file would have it. */
void conf_value_print(const struct conf_key *key, const void *base, FILE *out);

/* conf_list.c: the elements of lists, and addresses; each as conf_value_parse. */
int conf_interface_parse(const char *text, char *ret, char why[CONF_WHY_SIZE]);
int conf_prefix_parse(const char *text, struct pep_prefix *ret, char why[CONF_WHY_SIZE]);
int conf_ports_parse(const char *text, struct pep_port_range *ret, char why[CONF_WHY_SIZE]);
int conf_param_parse(const char *text, struct pep_cca_param *ret, char why[CONF_WHY_SIZE]);
int conf_listen_check(const char *text, char why[CONF_WHY_SIZE]);
void conf_prefix_print(const struct pep_prefix *prefix, FILE *out);

/** A file being laid over a configuration. */
struct conf_origin {
	const char *file; /* NULL: the default */
	int line;
};

struct conf_loader {
	struct pep_conf *conf;
	FILE *errors; /* may be NULL */
	unsigned int n_errors;
	const char *file;            /* being read now; outlives the loader */
	struct conf_origin *origins; /* one per row of the schema; rows of classes unused */
	struct conf_origin class_origins[PEP_CONF_MAX_CLASSES];
	uint64_t class_set[PEP_CONF_MAX_CLASSES]; /* bit i: the class's row i was set */
};

/** Prints "FILE:LINE: message" on one line and counts it; line 0 leaves the number out. */
void conf_report(struct conf_loader *loader, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/**
 * conf_text.c: blanks the comments of @text (@length bytes, NUL behind) and refuses what libconfuse
 * would take silently or wrongly. Returns 0 or -EINVAL, reported.
 */
int conf_text_prepare(struct conf_loader *loader, char *text, size_t length);

/** conf_parse.c: lays prepared @text over the loader's configuration. 0, -EINVAL or -ENOMEM. */
int conf_parse(struct conf_loader *loader, const char *text);

/** conf_check.c: fills in what was left to us and checks values against each other. */
void conf_finish(struct conf_loader *loader);

/** conf_suggest.c: the key or section nearest to @word as seen from @section; "" or ", hint". */
void conf_suggest(const char *section, const char *word, char hint[CONF_WHY_SIZE]);

#endif
