/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One thread: plain counts. */
#include "mon/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pep_page *pep_page_new(int status, const char *type, char *data, size_t size)
{
	struct pep_page *page = data ? pep_page_new_static(status, type, data, size) : NULL;

	if (!page) {
		free(data);
		return NULL;
	}
	page->owned = data;
	return page;
}

struct pep_page *pep_page_new_static(int status, const char *type, const char *data, size_t size)
{
	struct pep_page *page = calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	page->references = 1;
	page->status = status;
	page->type = type;
	page->data = data;
	page->size = size;
	return page;
}

struct pep_page *pep_page_new_json(int status, json_t *json)
{
	size_t size, room;
	char *data;

	size = json ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;
	data = size ? malloc(size + 1) : NULL;
	room = data ? json_dumpb(json, data, size, JSON_COMPACT) : 0;
	json_decref(json);
	if (room != size || !data) {
		free(data);
		return NULL;
	}
	data[size] = '\n';
	return pep_page_new(status, "application/json", data, size + 1);
}

struct pep_page *pep_page_new_error(int status, const char *format, ...)
{
	char message[300];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	return pep_page_new_json(status, json_pack("{s:s}", "error", message));
}

struct pep_page *pep_page_ref(struct pep_page *page)
{
	page->references++;
	return page;
}

void pep_page_unref(struct pep_page *page)
{
	if (!page || --page->references > 0)
		return;
	free(page->owned);
	free(page);
}
