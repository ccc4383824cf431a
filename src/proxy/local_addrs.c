/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/local_addrs.h"

#include "proxy/tuple.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct pep_local_addrs {
	_Atomic unsigned int references;
	size_t n;
	struct in6_addr addr[]; /* sorted */
};

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct in6_addr));
}

int pep_local_addrs_load(struct pep_local_addrs **ret)
{
	struct pep_local_addrs *addrs;
	struct ifaddrs *list;
	size_t n = 0;

	if (getifaddrs(&list) < 0)
		return -errno;
	for (struct ifaddrs *i = list; i; i = i->ifa_next)
		n++;
	addrs = calloc(1, sizeof(*addrs) + n * sizeof(addrs->addr[0]));
	if (!addrs) {
		freeifaddrs(list);
		return -ENOMEM;
	}
	atomic_init(&addrs->references, 1);
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct sockaddr_storage sa = {0};
		uint16_t port;

		if (!i->ifa_addr)
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			memcpy(&sa, i->ifa_addr, sizeof(struct sockaddr_in));
		else if (i->ifa_addr->sa_family == AF_INET6)
			memcpy(&sa, i->ifa_addr, sizeof(struct sockaddr_in6));
		if (pep_endpoint_from_sockaddr(&sa, &addrs->addr[addrs->n], &port) == 0)
			addrs->n++;
	}
	freeifaddrs(list);
	qsort(addrs->addr, addrs->n, sizeof(addrs->addr[0]), compare);
	*ret = addrs;
	return 0;
}

struct pep_local_addrs *pep_local_addrs_ref(struct pep_local_addrs *addrs)
{
	atomic_fetch_add(&addrs->references, 1);
	return addrs;
}

void pep_local_addrs_unref(struct pep_local_addrs *addrs)
{
	if (addrs && atomic_fetch_sub(&addrs->references, 1) == 1)
		free(addrs);
}

bool pep_local_addrs_contains(const struct pep_local_addrs *addrs, const struct in6_addr *addr)
{
	return bsearch(addr, addrs->addr, addrs->n, sizeof(addrs->addr[0]), compare) != NULL;
}

bool pep_local_addrs_equal(const struct pep_local_addrs *a, const struct pep_local_addrs *b)
{
	return a->n == b->n && memcmp(a->addr, b->addr, a->n * sizeof(a->addr[0])) == 0;
}
