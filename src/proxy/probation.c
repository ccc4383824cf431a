/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set-associative table: a prefix that needs a place takes that of the stalest entry of its set,
 * so that a scan of many addresses can only make us forget, never grow.
 */
#include "proxy/probation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SETS 256
#define WAYS 4

struct entry {
	uint8_t prefix[16];
	bool used;
	uint8_t failures;
	uint8_t terms; /* probations so far */
	uint64_t touched_ns, until_ns;
};

struct pep_probation {
	uint64_t key[2];
	struct entry set[SETS][WAYS];
};

int pep_probation_new(struct pep_probation **ret)
{
	struct pep_probation *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	if (getrandom(p->key, sizeof(p->key), 0) != (ssize_t)sizeof(p->key)) {
		free(p);
		return -EIO;
	}
	*ret = p;
	return 0;
}

void pep_probation_free(struct pep_probation *p)
{
	free(p);
}

static void prefix_of(const struct in6_addr *addr, uint8_t ret[16])
{
	size_t bytes = IN6_IS_ADDR_V4MAPPED(addr) ? 15 : 8;

	memset(ret, 0, 16);
	memcpy(ret, addr, bytes);
}

static unsigned int set_of(const struct pep_probation *p, const uint8_t prefix[16])
{
	uint64_t words[2];
	unsigned __int128 product;

	memcpy(words, prefix, sizeof(words));
	product = (unsigned __int128)(words[0] ^ p->key[0]) * ((words[1] ^ p->key[1]) | 1);
	return (unsigned int)((uint64_t)product ^ (uint64_t)(product >> 64)) % SETS;
}

static struct entry *find(const struct pep_probation *p, const struct in6_addr *server)
{
	uint8_t prefix[16];
	struct entry *set;

	prefix_of(server, prefix);
	set = (struct entry *)p->set[set_of(p, prefix)];
	for (int i = 0; i < WAYS; i++)
		if (set[i].used && memcmp(set[i].prefix, prefix, sizeof(prefix)) == 0)
			return &set[i];
	return NULL;
}

static struct entry *find_or_take(struct pep_probation *p, const struct in6_addr *server)
{
	struct entry *e = find(p, server), *set;
	uint8_t prefix[16];

	if (e)
		return e;
	prefix_of(server, prefix);
	set = p->set[set_of(p, prefix)];
	e = &set[0];
	for (int i = 1; i < WAYS; i++)
		if (!set[i].used || (e->used && set[i].touched_ns < e->touched_ns))
			e = &set[i];
	*e = (struct entry){.used = true};
	memcpy(e->prefix, prefix, sizeof(prefix));
	return e;
}

uint32_t pep_probation_failed(struct pep_probation *p, const struct in6_addr *server,
			      uint64_t now_ns)
{
	struct entry *e = find_or_take(p, server);
	uint32_t seconds = PEP_PROBATION_FIRST_S;

	e->touched_ns = now_ns;
	/* Connects that were under way when the probation began fail late. */
	if (now_ns < e->until_ns || ++e->failures < PEP_PROBATION_FAILURES)
		return 0;
	for (int i = 0; i < e->terms && seconds < PEP_PROBATION_LAST_S; i++)
		seconds *= 2;
	if (e->terms < 255)
		e->terms++;
	e->failures = 0;
	e->until_ns = now_ns + (uint64_t)seconds * 1000000000u;
	return seconds;
}

void pep_probation_answered(struct pep_probation *p, const struct in6_addr *server)
{
	struct entry *e = find(p, server);

	if (e)
		e->used = false;
}

bool pep_probation_holds(const struct pep_probation *p, const struct in6_addr *server,
			 uint64_t now_ns)
{
	const struct entry *e = find(p, server);

	return e && now_ns < e->until_ns;
}

uint32_t pep_probation_count(const struct pep_probation *p, uint64_t now_ns)
{
	uint32_t count = 0;

	for (int s = 0; s < SETS; s++)
		for (int w = 0; w < WAYS; w++)
			count += p->set[s][w].used && now_ns < p->set[s][w].until_ns;
	return count;
}
