/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/clients.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ROWS 3

struct pep_clients {
	uint64_t key[ROWS][2];
	uint32_t mask;
	_Atomic uint32_t *rows[ROWS];
};

static _Atomic uint32_t *counter(const struct pep_clients *clients, int row,
				 const struct in6_addr *addr)
{
	uint64_t words[2];
	unsigned __int128 product;

	memcpy(words, addr, sizeof(words));
	product = (unsigned __int128)(words[0] ^ clients->key[row][0]) *
		  (words[1] ^ clients->key[row][1]);
	return &clients->rows[row][(uint32_t)((uint64_t)product ^ (uint64_t)(product >> 64)) &
				   clients->mask];
}

int pep_clients_new(uint32_t capacity, struct pep_clients **ret)
{
	struct pep_clients *clients = calloc(1, sizeof(*clients));
	uint32_t size = 1024;

	if (!clients)
		return -ENOMEM;
	while (size < capacity && size < 1u << 20)
		size <<= 1;
	clients->mask = size - 1;
	for (int row = 0; row < ROWS; row++) {
		clients->rows[row] = calloc(size, sizeof(*clients->rows[row]));
		if (!clients->rows[row]) {
			pep_clients_free(clients);
			return -ENOMEM;
		}
	}
	if (getrandom(clients->key, sizeof(clients->key), 0) != (ssize_t)sizeof(clients->key)) {
		pep_clients_free(clients);
		return -EIO;
	}
	*ret = clients;
	return 0;
}

void pep_clients_free(struct pep_clients *clients)
{
	if (!clients)
		return;
	for (int row = 0; row < ROWS; row++)
		free(clients->rows[row]);
	free(clients);
}

uint32_t pep_clients_count(const struct pep_clients *clients, const struct in6_addr *addr)
{
	uint32_t least = UINT32_MAX;

	for (int row = 0; row < ROWS; row++) {
		uint32_t n =
			atomic_load_explicit(counter(clients, row, addr), memory_order_relaxed);

		if (n < least)
			least = n;
	}
	return least;
}

void pep_clients_add(struct pep_clients *clients, const struct in6_addr *addr)
{
	for (int row = 0; row < ROWS; row++)
		atomic_fetch_add_explicit(counter(clients, row, addr), 1, memory_order_relaxed);
}

void pep_clients_remove(struct pep_clients *clients, const struct in6_addr *addr)
{
	for (int row = 0; row < ROWS; row++)
		atomic_fetch_sub_explicit(counter(clients, row, addr), 1, memory_order_relaxed);
}
