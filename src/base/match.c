/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asked once per SYN; lists are short and scanned in order, so that the file's order decides. */
#include "base/conf.h"

#include <string.h>

bool pep_prefix_contains(const struct pep_prefix *prefix, const struct in6_addr *addr)
{
	unsigned int bytes = prefix->bits / 8, rest = prefix->bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	if (memcmp(prefix->addr.s6_addr, addr->s6_addr, bytes) != 0)
		return false;
	return rest == 0 || ((prefix->addr.s6_addr[bytes] ^ addr->s6_addr[bytes]) & mask) == 0;
}

static bool prefixes_contain(const struct pep_prefix *prefixes, unsigned int count,
			     const struct in6_addr *addr)
{
	for (unsigned int i = 0; i < count; i++) {
		if (pep_prefix_contains(&prefixes[i], addr))
			return true;
	}
	return count == 0;
}

static bool ports_contain(const struct pep_port_range *ports, unsigned int count, uint16_t port)
{
	for (unsigned int i = 0; i < count; i++) {
		if (port >= ports[i].first && port <= ports[i].last)
			return true;
	}
	return count == 0;
}

bool pep_match_flow(const struct pep_match *match, const struct in6_addr *client,
		    const struct in6_addr *server, uint16_t port)
{
	if (match->n_clients == 0 && match->n_servers == 0 && match->n_ports == 0)
		return false;
	return ports_contain(match->ports, match->n_ports, port) &&
	       prefixes_contain(match->clients, match->n_clients, client) &&
	       prefixes_contain(match->servers, match->n_servers, server);
}

const struct pep_class_conf *pep_conf_classify(const struct pep_conf *conf,
					       const struct in6_addr *client,
					       const struct in6_addr *server, uint16_t port,
					       unsigned int *ret_index)
{
	for (unsigned int i = 0; i < conf->n_classes; i++) {
		if (pep_match_flow(&conf->classes[i].match, client, server, port)) {
			*ret_index = i;
			return &conf->classes[i];
		}
	}
	*ret_index = conf->n_classes;
	return NULL;
}

const char *pep_segment_name(enum pep_segment segment)
{
	switch (segment) {
	case PEP_SEGMENT_WIRELESS:
		return "wireless";
	case PEP_SEGMENT_WIRED:
		return "wired";
	case PEP_SEGMENT_COUNT_:
		break;
	}
	return "?";
}
