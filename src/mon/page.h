/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_PAGE_H
#define PEP_MON_PAGE_H

/* A rendered answer that any number of connections can be sending at the same time. */

#include <jansson.h>
#include <stddef.h>

struct pep_page {
	unsigned int references;
	int status;
	const char *type; /* Content-Type, static storage */
	const char *data;
	size_t size;
	char *owned; /* data, if it is to be freed with the page */
};

/** Takes @data (malloc'd) over, also on failure. NULL when out of memory. One reference. */
struct pep_page *pep_page_new(int status, const char *type, char *data, size_t size);

/** @data is static. */
struct pep_page *pep_page_new_static(int status, const char *type, const char *data, size_t size);

/** @json (a reference that is taken over; NULL gives NULL) as text. */
struct pep_page *pep_page_new_json(int status, json_t *json);

/** {"error": "..."}; @format must give UTF-8. */
struct pep_page *pep_page_new_error(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct pep_page *pep_page_ref(struct pep_page *page);

/** NULL is a no-op. */
void pep_page_unref(struct pep_page *page);

#endif
