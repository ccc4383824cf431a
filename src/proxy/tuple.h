/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_TUPLE_H
#define PEP_PROXY_TUPLE_H

/* The 4-tuple of a flow, and a hash table of fixed size that finds its owner. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** Client and server as the client sees them. IPv4 is kept as v4-mapped IPv6. */
struct pep_tuple {
	struct in6_addr client, server;
	uint16_t client_port, server_port; /* host order */
};

/** Embedded in what is looked up. */
struct pep_tuple_node {
	struct pep_tuple tuple;
	struct pep_tuple_node *next;
};

struct pep_tuple_table;

/** Makes a table for about @capacity nodes. Returns 0 or -ENOMEM. */
int pep_tuple_table_new(uint32_t capacity, struct pep_tuple_table **ret);
void pep_tuple_table_free(struct pep_tuple_table *table); /* NULL is a no-op */

/** @node->tuple must be set, and not be in the table yet. Never fails. */
void pep_tuple_table_add(struct pep_tuple_table *table, struct pep_tuple_node *node);

/** A node that is not in the table is a no-op. */
void pep_tuple_table_remove(struct pep_tuple_table *table, struct pep_tuple_node *node);
struct pep_tuple_node *pep_tuple_table_find(const struct pep_tuple_table *table,
					    const struct pep_tuple *tuple);

bool pep_tuple_equal(const struct pep_tuple *a, const struct pep_tuple *b);
bool pep_tuple_is_v4(const struct pep_tuple *tuple);

/** Big enough for "[v6]:port". */
#define PEP_ENDPOINT_TEXT 56
const char *pep_endpoint_text(const struct in6_addr *addr, uint16_t port,
			      char text[PEP_ENDPOINT_TEXT]);

/** Address and port (host order) as a socket address; v4-mapped gives AF_INET. Returns its size. */
socklen_t pep_endpoint_to_sockaddr(const struct in6_addr *addr, uint16_t port,
				   struct sockaddr_storage *ret);
/** Returns 0, or -EAFNOSUPPORT for another family. */
int pep_endpoint_from_sockaddr(const struct sockaddr_storage *sa, struct in6_addr *ret_addr,
			       uint16_t *ret_port);

#endif
