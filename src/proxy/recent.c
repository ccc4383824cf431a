/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set-associative table of 64-bit fingerprints under a secret key: two different SYNs share one
 * with a chance of 2^-64, and nobody outside can choose which of them meet in a set.
 */
#include "proxy/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SETS 4096
#define WAYS 4

struct entry {
	uint64_t fingerprint;
	uint64_t added_ns; /* 0: free */
};

struct pep_recent {
	uint64_t key[4];
	struct entry set[SETS][WAYS];
};

int pep_recent_new(struct pep_recent **ret)
{
	struct pep_recent *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (getrandom(r->key, sizeof(r->key), 0) != (ssize_t)sizeof(r->key)) {
		free(r);
		return -EIO;
	}
	*ret = r;
	return 0;
}

void pep_recent_free(struct pep_recent *r)
{
	free(r);
}

/* The halves of a 128-bit product folded together: every bit of either factor matters. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t fingerprint(const struct pep_recent *r, const struct pep_tuple *tuple,
			    uint32_t sequence)
{
	uint64_t client[2], server[2];
	uint64_t ports = (uint64_t)tuple->client_port << 16 | tuple->server_port;
	uint64_t hash;

	memcpy(client, &tuple->client, sizeof(client));
	memcpy(server, &tuple->server, sizeof(server));
	hash = fold(client[0] ^ r->key[0], client[1] ^ r->key[1]);
	hash = fold(hash ^ server[0] ^ r->key[2], server[1] ^ r->key[3]);
	hash = fold(hash ^ r->key[1], (ports << 32 | sequence) ^ r->key[2]);
	/* So far, ports and sequences that count up differ in one factor only. */
	return fold(hash ^ r->key[3], hash ^ r->key[0]);
}

static struct entry *set_of(const struct pep_recent *r, uint64_t print)
{
	return (struct entry *)r->set[print % SETS];
}

static bool is_fresh(const struct entry *e, uint64_t now_ns)
{
	return e->added_ns && now_ns - e->added_ns < PEP_RECENT_SECONDS * 1000000000ull;
}

void pep_recent_add(struct pep_recent *r, const struct pep_tuple *tuple, uint32_t sequence,
		    uint64_t now_ns)
{
	uint64_t print = fingerprint(r, tuple, sequence);
	struct entry *set = set_of(r, print), *place = &set[0];

	for (int i = 0; i < WAYS; i++) {
		if (set[i].added_ns && set[i].fingerprint == print) {
			place = &set[i];
			break;
		}
		if (set[i].added_ns < place->added_ns)
			place = &set[i];
	}
	*place = (struct entry){.fingerprint = print, .added_ns = now_ns};
}

bool pep_recent_holds(const struct pep_recent *r, const struct pep_tuple *tuple, uint32_t sequence,
		      uint64_t now_ns)
{
	uint64_t print = fingerprint(r, tuple, sequence);
	const struct entry *set = set_of(r, print);

	for (int i = 0; i < WAYS; i++)
		if (set[i].fingerprint == print && is_fresh(&set[i], now_ns))
			return true;
	return false;
}
