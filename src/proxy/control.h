/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_CONTROL_H
#define PEP_PROXY_CONTROL_H

/*
 * The control socket: a Unix stream socket on which a request is one line of words and the reply
 * one line of JSON, {"ok": true, ...} or {"ok": false, "error": "..."}. Several requests may follow
 * each other on one connection; each is answered before the next is read. Garbage, requests without
 * an end and clients beyond the limit get one error line and are closed.
 */

#include <jansson.h>
#include <sys/types.h>

#define PEP_CONTROL_LINE_BYTES   4096 /* longest request, with its newline */
#define PEP_CONTROL_MAX_CLIENTS  16
#define PEP_CONTROL_MAX_WORDS    16
#define PEP_CONTROL_IDLE_SECONDS 10 /* from one request's answer to the next whole request */

struct event_base;
struct pep_control;
struct pep_control_request;

struct pep_control_command {
	const char *name; /* one or more words, as typed; NULL ends the table */
	const char *args; /* what follows, for error texts; "" for nothing */
	int min_args, max_args;
	/** Must end in one pep_control_ok() or pep_control_fail(), now or later. */
	void (*run)(struct pep_control_request *request, int argc, char **argv, void *context);
};

struct pep_control_params {
	const char *path; /* copied */
	gid_t gid;        /* group of the socket, mode 0660; (gid_t) -1 leaves it */
	const struct pep_control_command *commands; /* borrowed */
	void *context;
};

/**
 * Listens on @params->path. A socket file that nobody answers on is replaced.
 *
 * Returns 0; -EADDRINUSE when a live process answers there; or another negative errno.
 */
int pep_control_new(struct event_base *base, const struct pep_control_params *params,
		    struct pep_control **ret);

/** Closes all clients and removes the socket file. NULL is a no-op. */
void pep_control_free(struct pep_control *control);

/** Answers with {"ok": true} and the members of @reply, which is taken (NULL: none). */
void pep_control_ok(struct pep_control_request *request, json_t *reply);

/** Answers with {"ok": false, "error": ...}. */
void pep_control_fail(struct pep_control_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * Splits a line into words in place; words are separated by blanks. Returns how many there are, or
 * -E2BIG for more than PEP_CONTROL_MAX_WORDS, -EINVAL for anything but printable ASCII. Pure;
 * fuzzed.
 */
int pep_control_split(char *line, char *words[PEP_CONTROL_MAX_WORDS]);

/** The command that the first words name, and how many words that are; NULL when there is none. */
const struct pep_control_command *pep_control_find(const struct pep_control_command *commands,
						   int n_words, char **words, int *ret_used);

#endif
