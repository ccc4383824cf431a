/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cursor walks the bytes once, left to right, and never looks behind its end. */
#include "mon/http_parse.h"

#include <string.h>
#include <strings.h>

struct cursor {
	const char *at, *end;
};

/* A piece of the request; not terminated. */
struct slice {
	const char *at;
	size_t length;
};

static bool is_token(char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return true;
	return c && strchr("!#$%&'*+-.^_`|~", c);
}

static bool slice_is(struct slice s, const char *text)
{
	return s.length == strlen(text) && strncasecmp(s.at, text, s.length) == 0;
}

/* One line without its end (LF or CRLF), or false when there is no end yet. */
static bool take_line(struct cursor *c, struct slice *ret)
{
	const char *lf = memchr(c->at, '\n', (size_t)(c->end - c->at));

	if (!lf)
		return false;
	ret->at = c->at;
	ret->length = (size_t)(lf - c->at);
	if (ret->length > 0 && ret->at[ret->length - 1] == '\r')
		ret->length--;
	c->at = lf + 1;
	return true;
}

/* What is before the next blank; the blank is eaten. */
static struct slice take_word(struct slice *line)
{
	const char *blank = memchr(line->at, ' ', line->length);
	struct slice word = {line->at, blank ? (size_t)(blank - line->at) : line->length};
	size_t eaten = word.length + (blank ? 1 : 0);

	line->at += eaten;
	line->length -= eaten;
	return word;
}

static int parse_target(struct slice target, struct pep_http_request *req)
{
	static const char scheme[] = "http://";
	const char *question;
	size_t path;

	for (size_t i = 0; i < target.length; i++)
		if ((unsigned char)target.at[i] <= ' ' || (unsigned char)target.at[i] >= 127)
			return -400;
	/* A proxy's form: the host is none of our business. */
	if (target.length >= sizeof(scheme) - 1 &&
	    strncasecmp(target.at, scheme, sizeof(scheme) - 1) == 0) {
		const char *slash;

		target.at += sizeof(scheme) - 1;
		target.length -= sizeof(scheme) - 1;
		slash = memchr(target.at, '/', target.length);
		target.length = slash ? target.length - (size_t)(slash - target.at) : 1;
		target.at = slash ? slash : "/";
	}
	if (target.length == 0 || target.at[0] != '/')
		return -400;
	if (target.length > PEP_HTTP_MAX_TARGET)
		return -414;

	question = memchr(target.at, '?', target.length);
	path = question ? (size_t)(question - target.at) : target.length;
	memcpy(req->path, target.at, path);
	req->path[path] = '\0';
	if (question) {
		memcpy(req->query, question + 1, target.length - path - 1);
		req->query[target.length - path - 1] = '\0';
	}
	return 0;
}

/* "METHOD target HTTP/1.x"; *@ret_method_ok tells whether we serve the method at all. */
static int parse_request_line(struct slice line, struct pep_http_request *req, bool *ret_method_ok,
			      bool *ret_host_needed)
{
	struct slice method = take_word(&line), target = take_word(&line), version = line;
	int err;

	if (method.length == 0 || method.length > 32)
		return -400;
	for (size_t i = 0; i < method.length; i++)
		if (!is_token(method.at[i]))
			return -400;
	err = parse_target(target, req);
	if (err)
		return err;
	if (version.length != 8 || memcmp(version.at, "HTTP/", 5) != 0 || version.at[6] != '.' ||
	    version.at[5] < '0' || version.at[5] > '9' || version.at[7] < '0' ||
	    version.at[7] > '9')
		return -400;
	if (version.at[5] != '1')
		return -505;

	req->keep_alive = version.at[7] != '0';
	*ret_host_needed = version.at[7] != '0';
	req->head = method.length == 4 && memcmp(method.at, "HEAD", 4) == 0;
	*ret_method_ok = req->head || (method.length == 3 && memcmp(method.at, "GET", 3) == 0);
	return 0;
}

static struct slice trim(struct slice s)
{
	while (s.length && (*s.at == ' ' || *s.at == '\t')) {
		s.at++;
		s.length--;
	}
	while (s.length && (s.at[s.length - 1] == ' ' || s.at[s.length - 1] == '\t'))
		s.length--;
	return s;
}

/* The next element of a comma-separated list; false at its end. */
static bool take_element(struct slice *list, struct slice *ret)
{
	const char *comma;

	if (list->length == 0)
		return false;
	comma = memchr(list->at, ',', list->length);
	ret->at = list->at;
	ret->length = comma ? (size_t)(comma - list->at) : list->length;
	list->at += ret->length + (comma ? 1 : 0);
	list->length -= ret->length + (comma ? 1 : 0);
	*ret = trim(*ret);
	return true;
}

struct headers {
	unsigned int count, hosts, lengths;
	bool chunked;
};

static int parse_length(struct slice value, struct headers *h, struct pep_http_request *req)
{
	size_t n = 0;

	if (value.length == 0)
		return -400;
	for (size_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return -400;
		if (n <= PEP_HTTP_MAX_BODY) /* beyond that the exact number is of no use */
			n = n * 10 + (size_t)(value.at[i] - '0');
	}
	if (h->lengths++ && n != req->body_length)
		return -400;
	req->body_length = n;
	return 0;
}

static void join_accept(struct slice value, struct pep_http_request *req)
{
	size_t have = strlen(req->accept), room = sizeof(req->accept) - have;

	if (have + 2 < sizeof(req->accept) && have) {
		req->accept[have++] = ',';
		room--;
	}
	if (value.length >= room)
		value.length = room - 1;
	memcpy(req->accept + have, value.at, value.length);
	req->accept[have + value.length] = '\0';
}

static int parse_header(struct slice line, struct headers *h, struct pep_http_request *req)
{
	const char *colon = memchr(line.at, ':', line.length);
	struct slice name, value, element;

	if (!colon || colon == line.at)
		return -400;
	name = (struct slice){line.at, (size_t)(colon - line.at)};
	for (size_t i = 0; i < name.length; i++)
		if (!is_token(name.at[i])) /* also a blank, and with it folded lines */
			return -400;
	value = trim((struct slice){colon + 1, line.length - name.length - 1});
	for (size_t i = 0; i < value.length; i++)
		if (((unsigned char)value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 127)
			return -400;
	if (++h->count > PEP_HTTP_MAX_HEADERS)
		return -431;

	if (slice_is(name, "host"))
		h->hosts++;
	else if (slice_is(name, "content-length"))
		return parse_length(value, h, req);
	else if (slice_is(name, "transfer-encoding"))
		h->chunked = true;
	else if (slice_is(name, "accept"))
		join_accept(value, req);
	else if (slice_is(name, "connection"))
		while (take_element(&value, &element)) {
			if (slice_is(element, "close"))
				req->keep_alive = false;
			else if (slice_is(element, "keep-alive") && !h->chunked)
				req->keep_alive = true;
		}
	return 0;
}

/* No end of head yet: is there still a chance? */
static int incomplete(const char *data, size_t length)
{
	if (length > 0 && !is_token(data[0]) && data[0] != '\r' && data[0] != '\n')
		return -400; /* TLS, for instance: do not let it wait for the timeout */
	if (length >= PEP_HTTP_MAX_HEAD)
		return memchr(data, '\n', PEP_HTTP_MAX_HEAD) ? -431 : -414;
	return 0;
}

int pep_http_parse(const char *data, size_t length, struct pep_http_request *ret)
{
	struct cursor c = {data, data + (length < PEP_HTTP_MAX_HEAD ? length : PEP_HTTP_MAX_HEAD)};
	struct pep_http_request req = {0};
	struct headers headers = {0};
	bool method_ok, host_needed;
	struct slice line;
	int err;

	do { /* an empty line before a request is a client's slip that RFC 9112 forgives */
		if (!take_line(&c, &line))
			return incomplete(data, length);
	} while (line.length == 0);
	err = parse_request_line(line, &req, &method_ok, &host_needed);
	if (err)
		return err;
	for (;;) {
		if (!take_line(&c, &line))
			return incomplete(data, length);
		if (line.length == 0)
			break;
		err = parse_header(line, &headers, &req);
		if (err)
			return err;
	}

	if (headers.hosts > 1 || (host_needed && headers.hosts != 1) ||
	    (headers.chunked && headers.lengths))
		return -400;
	if (req.body_length > PEP_HTTP_MAX_BODY)
		return -413;
	if (!method_ok)
		return -405;
	if (headers.chunked)
		return -411;
	*ret = req;
	return (int)(c.at - data);
}

const char *pep_http_reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 411:
		return "Length Required";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 500:
		return "Internal Server Error";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "";
	}
}

/* "0", "0.25", "1.000" in thousandths; anything else counts as 1. */
static int parse_quality(struct slice s)
{
	int value = 0, scale = 1000;

	if (s.length == 0 || (s.at[0] != '0' && s.at[0] != '1') ||
	    (s.length > 1 && s.at[1] != '.') || s.length > 5)
		return 1000;
	value = (s.at[0] - '0') * 1000;
	for (size_t i = 2; i < s.length; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return 1000;
		scale /= 10;
		value += (s.at[i] - '0') * scale;
	}
	return value > 1000 ? 1000 : value;
}

/* The q parameter of "range;a=b;q=0.5"; @range is cut to what is before the first ';'. */
static int take_quality(struct slice *range)
{
	const char *semicolon = memchr(range->at, ';', range->length);
	struct slice rest;
	int quality = 1000;

	if (!semicolon)
		return quality;
	rest = (struct slice){semicolon + 1, range->length - (size_t)(semicolon - range->at) - 1};
	range->length = (size_t)(semicolon - range->at);
	*range = trim(*range);
	while (rest.length) {
		const char *next = memchr(rest.at, ';', rest.length);
		size_t n = next ? (size_t)(next - rest.at) : rest.length;
		struct slice parameter = trim((struct slice){rest.at, n});

		if (parameter.length > 2 && (parameter.at[0] == 'q' || parameter.at[0] == 'Q') &&
		    parameter.at[1] == '=')
			quality = parse_quality(
				(struct slice){parameter.at + 2, parameter.length - 2});
		rest.at += n + (next ? 1 : 0);
		rest.length -= n + (next ? 1 : 0);
	}
	return quality;
}

int pep_http_accept_quality(const char *accept, const char *type)
{
	struct slice list = {accept, strlen(accept)}, range;
	size_t major = strcspn(type, "/");
	int best = 0, rank = 0;

	if (trim(list).length == 0)
		return 1000;
	while (take_element(&list, &range)) {
		int quality = take_quality(&range), this_rank = 0;

		if (slice_is(range, type))
			this_rank = 3;
		else if (range.length == major + 2 && strncasecmp(range.at, type, major + 1) == 0 &&
			 range.at[major + 1] == '*')
			this_rank = 2;
		else if (slice_is(range, "*/*"))
			this_rank = 1;
		if (this_rank > rank || (this_rank && this_rank == rank && quality > best)) {
			rank = this_rank;
			best = quality;
		}
	}
	return best;
}
