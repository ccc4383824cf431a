/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash is keyed with random bits drawn at start, so that a client cannot aim at one bucket. */
#include "proxy/tuple.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct pep_tuple_table {
	uint64_t key[2];
	uint32_t mask;
	struct pep_tuple_node *bucket[];
};

/* Multiply two words and fold the 128-bit product: one round of a keyed multiplicative hash. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t bucket_of(const struct pep_tuple_table *table, const struct pep_tuple *t)
{
	uint64_t words[4], hash;

	memcpy(&words[0], &t->client, 16);
	memcpy(&words[2], &t->server, 16);
	hash = mix(words[0] ^ table->key[0], words[1] ^ table->key[1]);
	hash = mix(hash ^ words[2], words[3] ^ table->key[0]);
	hash = mix(hash ^ ((uint64_t)t->client_port << 16 | t->server_port), table->key[1]);
	return (uint32_t)hash & table->mask;
}

int pep_tuple_table_new(uint32_t capacity, struct pep_tuple_table **ret)
{
	struct pep_tuple_table *table;
	uint32_t buckets = 16;

	while (buckets < capacity && buckets < 1u << 24)
		buckets <<= 1;
	table = calloc(1, sizeof(*table) + buckets * sizeof(table->bucket[0]));
	if (!table)
		return -ENOMEM;
	if (getrandom(table->key, sizeof(table->key), 0) != (ssize_t)sizeof(table->key)) {
		free(table);
		return -EIO;
	}
	table->key[0] |= 1;
	table->key[1] |= 1;
	table->mask = buckets - 1;
	*ret = table;
	return 0;
}

void pep_tuple_table_free(struct pep_tuple_table *table)
{
	free(table);
}

void pep_tuple_table_add(struct pep_tuple_table *table, struct pep_tuple_node *node)
{
	struct pep_tuple_node **bucket = &table->bucket[bucket_of(table, &node->tuple)];

	node->next = *bucket;
	*bucket = node;
}

void pep_tuple_table_remove(struct pep_tuple_table *table, struct pep_tuple_node *node)
{
	struct pep_tuple_node **link = &table->bucket[bucket_of(table, &node->tuple)];

	for (; *link; link = &(*link)->next) {
		if (*link == node) {
			*link = node->next;
			node->next = NULL;
			return;
		}
	}
}

struct pep_tuple_node *pep_tuple_table_find(const struct pep_tuple_table *table,
					    const struct pep_tuple *tuple)
{
	struct pep_tuple_node *node = table->bucket[bucket_of(table, tuple)];

	while (node && !pep_tuple_equal(&node->tuple, tuple))
		node = node->next;
	return node;
}

bool pep_tuple_equal(const struct pep_tuple *a, const struct pep_tuple *b)
{
	return a->client_port == b->client_port && a->server_port == b->server_port &&
	       memcmp(&a->client, &b->client, sizeof(a->client)) == 0 &&
	       memcmp(&a->server, &b->server, sizeof(a->server)) == 0;
}

bool pep_tuple_is_v4(const struct pep_tuple *tuple)
{
	return IN6_IS_ADDR_V4MAPPED(&tuple->server);
}

const char *pep_endpoint_text(const struct in6_addr *addr, uint16_t port,
			      char text[PEP_ENDPOINT_TEXT])
{
	char host[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		inet_ntop(AF_INET, &addr->s6_addr[12], host, sizeof(host));
		snprintf(text, PEP_ENDPOINT_TEXT, "%s:%u", host, port);
	} else {
		inet_ntop(AF_INET6, addr, host, sizeof(host));
		snprintf(text, PEP_ENDPOINT_TEXT, "[%s]:%u", host, port);
	}
	return text;
}

socklen_t pep_endpoint_to_sockaddr(const struct in6_addr *addr, uint16_t port,
				   struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		struct sockaddr_in *sin = (struct sockaddr_in *)ret;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		memcpy(&sin->sin_addr, &addr->s6_addr[12], 4);
		return sizeof(*sin);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ret;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		sin6->sin6_addr = *addr;
		return sizeof(*sin6);
	}
}

int pep_endpoint_from_sockaddr(const struct sockaddr_storage *sa, struct in6_addr *ret_addr,
			       uint16_t *ret_port)
{
	if (sa->ss_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;

		memset(ret_addr, 0, 10);
		memset(&ret_addr->s6_addr[10], 0xff, 2);
		memcpy(&ret_addr->s6_addr[12], &sin->sin_addr, 4);
		*ret_port = ntohs(sin->sin_port);
		return 0;
	}
	if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;

		*ret_addr = sin6->sin6_addr;
		*ret_port = ntohs(sin6->sin6_port);
		return 0;
	}
	return -EAFNOSUPPORT;
}
