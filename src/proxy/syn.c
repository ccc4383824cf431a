/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All reads go through a cursor that remembers the first error, so no length is trusted. */
#include "proxy/syn.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define TCP_FLAG_FIN 0x01
#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_RST 0x04
#define TCP_FLAG_ACK 0x10

#define TCP_OPTION_END       0
#define TCP_OPTION_NOP       1
#define TCP_OPTION_MSS       2
#define TCP_OPTION_MPTCP     30 /* RFC 8684 */
#define TCP_OPTION_FAST_OPEN 34 /* RFC 7413 */

#define MAX_EXTENSION_HEADERS 8

struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

static const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *at = c->at;

	if (c->failed || (size_t)(c->end - c->at) < n) {
		c->failed = true;
		return NULL;
	}
	c->at += n;
	return at;
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void map_v4(const uint8_t *p, struct in6_addr *ret)
{
	memset(ret, 0, 10);
	memset(&ret->s6_addr[10], 0xff, 2);
	memcpy(&ret->s6_addr[12], p, 4);
}

/* Leaves @c at the TCP header and @ret_segment at the bytes the IP header says belong to it. */
static int parse_ipv4(struct cursor *c, struct pep_syn *syn, size_t *ret_segment)
{
	const uint8_t *ip = take(c, 20);
	size_t header, total;

	if (!ip)
		return -EBADMSG;
	header = (size_t)(ip[0] & 0x0f) * 4;
	total = get16(ip + 2);
	if (header < 20 || total < header)
		return -EBADMSG;
	if (get16(ip + 6) & 0x3fff) /* more fragments, or an offset */
		return -EPROTONOSUPPORT;
	if (ip[9] != IPPROTO_TCP)
		return -EPROTONOSUPPORT;
	syn->dscp = ip[1] >> 2;
	map_v4(ip + 12, &syn->source);
	map_v4(ip + 16, &syn->destination);
	take(c, header - 20);
	*ret_segment = total - header;
	return c->failed ? -EBADMSG : 0;
}

static int skip_ipv6_extensions(struct cursor *c, uint8_t next, size_t *segment)
{
	for (int i = 0; i < MAX_EXTENSION_HEADERS; i++) {
		const uint8_t *ext;
		size_t size;

		if (next == IPPROTO_TCP)
			return 0;
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
			return -EPROTONOSUPPORT; /* fragments, ESP, other protocols */
		ext = take(c, 8);
		if (!ext)
			return -EBADMSG;
		size = (size_t)ext[1] * 8 + 8;
		next = ext[0];
		if (size > *segment || (size > 8 && !take(c, size - 8)))
			return -EBADMSG;
		*segment -= size;
	}
	return -EBADMSG;
}

static int parse_ipv6(struct cursor *c, struct pep_syn *syn, size_t *ret_segment)
{
	const uint8_t *ip = take(c, 40);

	if (!ip)
		return -EBADMSG;
	syn->dscp = (uint8_t)((get16(ip) >> 4 & 0xff) >> 2);
	memcpy(&syn->source, ip + 8, 16);
	memcpy(&syn->destination, ip + 24, 16);
	*ret_segment = get16(ip + 4);
	return skip_ipv6_extensions(c, ip[6], ret_segment);
}

static int parse_options(struct cursor *c, size_t length, struct pep_syn *syn)
{
	struct cursor o = {.at = c->at, .end = c->at + length};

	while (o.at < o.end) {
		const uint8_t *kind = take(&o, 1), *size;

		if (*kind == TCP_OPTION_END)
			break;
		if (*kind == TCP_OPTION_NOP)
			continue;
		size = take(&o, 1);
		if (!size || *size < 2 || !take(&o, (size_t)*size - 2))
			return -EBADMSG;
		if (*kind == TCP_OPTION_MSS && *size == 4)
			syn->mss_bytes = get16(kind + 2);
		else if (*kind == TCP_OPTION_MPTCP)
			syn->mptcp = true;
		else if (*kind == TCP_OPTION_FAST_OPEN)
			syn->fast_open = true;
	}
	return 0;
}

static int parse_tcp(struct cursor *c, size_t segment, struct pep_syn *syn)
{
	const uint8_t *tcp = take(c, 20);
	uint8_t flags;
	size_t header;
	int err;

	if (!tcp)
		return -EBADMSG;
	header = (size_t)(tcp[12] >> 4) * 4;
	if (header < 20 || header > segment || (size_t)(c->end - c->at) < header - 20)
		return -EBADMSG;

	flags = tcp[13] & (TCP_FLAG_FIN | TCP_FLAG_SYN | TCP_FLAG_RST | TCP_FLAG_ACK);
	if (flags != TCP_FLAG_SYN && flags != (TCP_FLAG_SYN | TCP_FLAG_ACK))
		return -ENOMSG;
	syn->is_synack = flags & TCP_FLAG_ACK;
	syn->source_port = get16(tcp);
	syn->destination_port = get16(tcp + 2);
	syn->sequence = get32(tcp + 4);
	err = parse_options(c, header - 20, syn);
	if (segment > header)
		syn->fast_open = true;
	return err;
}

int pep_syn_parse(const uint8_t *packet, size_t length, struct pep_syn *ret)
{
	struct cursor c = {.at = packet, .end = packet + length};
	struct pep_syn syn = {0};
	size_t segment = 0;
	int err;

	if (length < 1)
		return -EBADMSG;
	switch (packet[0] >> 4) {
	case 4:
		err = parse_ipv4(&c, &syn, &segment);
		break;
	case 6:
		err = parse_ipv6(&c, &syn, &segment);
		break;
	default:
		return -EPROTONOSUPPORT;
	}
	if (!err)
		err = parse_tcp(&c, segment, &syn);
	if (err)
		return err;
	*ret = syn;
	return 0;
}

void pep_syn_tuple(const struct pep_syn *syn, struct pep_tuple *ret)
{
	ret->client = syn->source;
	ret->client_port = syn->source_port;
	ret->server = syn->destination;
	ret->server_port = syn->destination_port;
}

void pep_synack_tuple(const struct pep_syn *synack, struct pep_tuple *ret)
{
	ret->client = synack->destination;
	ret->client_port = synack->destination_port;
	ret->server = synack->source;
	ret->server_port = synack->source_port;
}
