/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_HTTP_PARSE_H
#define PEP_MON_HTTP_PARSE_H

/*
 * The head of an HTTP/1.x request. Pure: bytes in, request or status out.
 *
 * libevent's evhttp in Debian 12 can limit neither connections nor the time of a request, and
 * answers neither 408 nor 431; and all that a monitor takes is a GET without a body.
 */

#include <stdbool.h>
#include <stddef.h>

#define PEP_HTTP_MAX_HEAD    8192 /* request line and headers, bytes */
#define PEP_HTTP_MAX_TARGET  1024 /* path and query */
#define PEP_HTTP_MAX_HEADERS 64
#define PEP_HTTP_MAX_BODY    1024 /* skipped; a longer one gets 413 */

struct pep_http_request {
	bool head;                           /* HEAD: the answer has no body */
	bool keep_alive;                     /* the connection may be used again */
	char path[PEP_HTTP_MAX_TARGET + 1];  /* as sent, still percent-encoded; starts with '/' */
	char query[PEP_HTTP_MAX_TARGET + 1]; /* behind '?', "" when there is none */
	char accept[512];                    /* Accept headers, joined by ","; cut when longer */
	size_t body_length;                  /* bytes to skip behind the head */
};

/**
 * Reads a request's head from the @length bytes at @data.
 *
 * Returns its length and fills *@ret; or 0 when more bytes are needed; or the negative status to
 * answer with before closing: -400, -405, -411, -413, -414, -431, -505.
 */
int pep_http_parse(const char *data, size_t length, struct pep_http_request *ret);

/** "Not Found" for 404, and so on; "" for a status that we never send. */
const char *pep_http_reason(int status);

/**
 * The quality (0..1000) that @accept gives to a media type "type/subtype": of the most specific
 * range that matches; 1000 when @accept is empty.
 */
int pep_http_accept_quality(const char *accept, const char *type);

#endif
