/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each parameter once, each value in its range, or the whole query is refused. */
#include "mon/query.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mon/history.h"

#define DEFAULT_LIMIT 50
#define MAX_LIMIT     500
#define MAX_VALUE     64

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

/* Percent-decodes @length bytes into @ret; false when too long, malformed or with a NUL. */
static bool decode(const char *text, size_t length, char ret[MAX_VALUE])
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (c == '%') {
			int high = length - i > 2 ? hex(text[i + 1]) : -1;
			int low = high >= 0 ? hex(text[i + 2]) : -1;

			if (low < 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (c == '\0' || n + 1 >= MAX_VALUE)
			return false;
		ret[n++] = c;
	}
	ret[n] = '\0';
	return true;
}

static bool parse_number(const char *text, unsigned int max, unsigned int *ret)
{
	unsigned int n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (unsigned int)(*text - '0');
		if (n > max)
			return false;
	}
	*ret = n;
	return n > 0;
}

static bool set_seconds(struct pep_query *q, const char *value)
{
	return parse_number(value, PEP_HISTORY_SECONDS, &q->seconds);
}

static bool set_limit(struct pep_query *q, const char *value)
{
	return parse_number(value, MAX_LIMIT, &q->flows.limit);
}

static bool set_sort(struct pep_query *q, const char *value)
{
	for (int i = 0; i < PEP_FLOWSET_SORT_COUNT_; i++) {
		if (strcmp(value, pep_flowset_sort_name((enum pep_flowset_sort)i)) == 0) {
			q->flows.sort = (enum pep_flowset_sort)i;
			return true;
		}
	}
	return false;
}

static bool set_order(struct pep_query *q, const char *value)
{
	q->flows.ascending = strcmp(value, "asc") == 0;
	return q->flows.ascending || strcmp(value, "desc") == 0;
}

static bool set_client(struct pep_query *q, const char *value)
{
	struct in_addr v4;

	q->flows.by_client = true;
	if (inet_pton(AF_INET, value, &v4) == 1) {
		memset(&q->flows.client, 0, sizeof(q->flows.client));
		q->flows.client.s6_addr[10] = q->flows.client.s6_addr[11] = 0xff;
		memcpy(&q->flows.client.s6_addr[12], &v4, 4);
		return true;
	}
	return inet_pton(AF_INET6, value, &q->flows.client) == 1;
}

static bool set_state(struct pep_query *q, const char *value)
{
	q->closed = strcmp(value, "closed") == 0;
	return q->closed || strcmp(value, "live") == 0;
}

static const struct parameter {
	const char *name;
	enum pep_query_set set;
	bool (*apply)(struct pep_query *query, const char *value);
	const char *expected;
} parameters[] = {
	{"seconds", PEP_QUERY_SECONDS, set_seconds, "a whole number from 1 to 600"},
	{"limit", PEP_QUERY_FLOWS, set_limit, "a whole number from 1 to 500"},
	{"sort", PEP_QUERY_FLOWS, set_sort,
	 "rate, bytes, age, queued, wireless_rtt, wired_rtt or retransmitted"},
	{"order", PEP_QUERY_FLOWS, set_order, "asc or desc"},
	{"client", PEP_QUERY_FLOWS, set_client, "an IPv4 or IPv6 address"},
	{"state", PEP_QUERY_FLOWS, set_state, "live or closed"},
};

#define N_PARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

static const struct parameter *find(const char *name, size_t length, enum pep_query_set allowed)
{
	for (size_t i = 0; i < N_PARAMETERS; i++)
		if (parameters[i].set == allowed && strlen(parameters[i].name) == length &&
		    memcmp(parameters[i].name, name, length) == 0)
			return &parameters[i];
	return NULL;
}

static int refuse_unknown(enum pep_query_set allowed, char why[PEP_QUERY_WHY_SIZE])
{
	size_t n = (size_t)snprintf(why, PEP_QUERY_WHY_SIZE, "unknown parameter: expected ");
	const char *comma = "";

	if (allowed == PEP_QUERY_NONE)
		n += (size_t)snprintf(why + n, PEP_QUERY_WHY_SIZE - n, "none");
	for (size_t i = 0; i < N_PARAMETERS && n < PEP_QUERY_WHY_SIZE; i++) {
		if (parameters[i].set != allowed)
			continue;
		n += (size_t)snprintf(why + n, PEP_QUERY_WHY_SIZE - n, "%s%s", comma,
				      parameters[i].name);
		comma = ", ";
	}
	return -EINVAL;
}

int pep_query_parse(const char *text, enum pep_query_set allowed, struct pep_query *ret,
		    char why[PEP_QUERY_WHY_SIZE])
{
	struct pep_query q = {.flows.limit = DEFAULT_LIMIT};
	bool seen[N_PARAMETERS] = {false};

	while (*text) {
		size_t length = strcspn(text, "&"), name = strcspn(text, "=&");
		const struct parameter *p = find(text, name, allowed);
		char value[MAX_VALUE];

		if (length == 0) {
			text++;
			continue;
		}
		if (!p)
			return refuse_unknown(allowed, why);
		if (seen[p - parameters]) {
			snprintf(why, PEP_QUERY_WHY_SIZE, "%s: given twice", p->name);
			return -EINVAL;
		}
		seen[p - parameters] = true;
		if (name == length || !decode(text + name + 1, length - name - 1, value) ||
		    !p->apply(&q, value)) {
			snprintf(why, PEP_QUERY_WHY_SIZE, "%s: expected %s", p->name, p->expected);
			return -EINVAL;
		}
		text += length + (text[length] == '&' ? 1 : 0);
	}
	*ret = q;
	return 0;
}
