/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "proxy/syn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

struct packet {
	uint8_t bytes[512];
	size_t length;
};

static void put(struct packet *p, const void *bytes, size_t n)
{
	if (n)
		memcpy(p->bytes + p->length, bytes, n);
	p->length += n;
}

/* A TCP header from port 4660 to 443 with the given flags and options (padded by the caller). */
static void put_tcp(struct packet *p, uint8_t flags, const uint8_t *options, size_t n)
{
	uint8_t tcp[20] = {0x12, 0x34, 0x01, 0xbb, 0xde, 0xad, 0xbe, 0xef};

	tcp[12] = (uint8_t)((20 + n) / 4 << 4);
	tcp[13] = flags;
	put(p, tcp, sizeof(tcp));
	put(p, options, n);
}

static struct packet make_v4(uint8_t flags, const uint8_t *options, size_t n)
{
	struct packet p = {.length = 0};
	uint8_t ip[20] = {0x45, 0xb8, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9};

	ip[2] = (uint8_t)((40 + n) >> 8);
	ip[3] = (uint8_t)(40 + n);
	put(&p, ip, sizeof(ip));
	put_tcp(&p, flags, options, n);
	return p;
}

/* IPv6 with @n_extensions destination-options headers of 8 bytes. */
static struct packet make_v6(uint8_t flags, unsigned int n_extensions)
{
	struct packet p = {.length = 0};
	uint8_t ip[40] = {0x6b, 0x80};

	ip[4] = 0;
	ip[5] = (uint8_t)(20 + 8 * n_extensions);
	ip[6] = n_extensions ? 60 : 6;
	ip[7] = 64;
	inet_pton(AF_INET6, "2001:db8::1", ip + 8);
	inet_pton(AF_INET6, "2001:db8::2", ip + 24);
	put(&p, ip, sizeof(ip));
	for (unsigned int i = 0; i < n_extensions; i++) {
		uint8_t ext[8] = {i + 1 < n_extensions ? 60 : 6, 0};

		put(&p, ext, sizeof(ext));
	}
	put_tcp(&p, flags, NULL, 0);
	return p;
}

static void a_syn_of_either_family_is_read_whole(void **state)
{
	static const uint8_t options[] = {2, 4, 0x05, 0xb4, 1, 1, 1, 0};
	struct packet p4 = make_v4(SYN, options, sizeof(options));
	struct packet p6 = make_v6(SYN, 2);
	struct pep_tuple tuple;
	struct pep_syn syn;
	char text[PEP_ENDPOINT_TEXT];

	(void)state;
	assert_int_equal(pep_syn_parse(p4.bytes, p4.length, &syn), 0);
	assert_false(syn.is_synack);
	assert_int_equal(syn.dscp, 46);
	assert_int_equal(syn.mss_bytes, 1460);
	assert_int_equal(syn.sequence, 0xdeadbeef);
	assert_false(syn.mptcp);
	assert_false(syn.fast_open);
	pep_syn_tuple(&syn, &tuple);
	assert_string_equal(pep_endpoint_text(&tuple.client, tuple.client_port, text),
			    "10.0.0.1:4660");
	assert_string_equal(pep_endpoint_text(&tuple.server, tuple.server_port, text),
			    "192.0.2.9:443");

	assert_int_equal(pep_syn_parse(p6.bytes, p6.length, &syn), 0);
	assert_int_equal(syn.dscp, 46);
	pep_syn_tuple(&syn, &tuple);
	assert_string_equal(pep_endpoint_text(&tuple.client, tuple.client_port, text),
			    "[2001:db8::1]:4660");
}

static void a_synack_names_the_same_tuple_as_its_syn(void **state)
{
	struct packet p = make_v4(SYN | ACK, NULL, 0);
	struct pep_tuple tuple;
	struct pep_syn syn;

	(void)state;
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), 0);
	assert_true(syn.is_synack);
	pep_synack_tuple(&syn, &tuple);
	assert_int_equal(tuple.client_port, 443);
	assert_int_equal(tuple.server_port, 4660);
}

static void mptcp_and_fast_open_are_seen(void **state)
{
	static const uint8_t mp_capable[] = {30, 4, 0x01, 0x81};
	static const uint8_t mp_join[] = {1, 30, 12, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t tfo[] = {34, 2, 1, 0};
	struct pep_syn syn;
	struct packet p;

	(void)state;
	p = make_v4(SYN, mp_capable, sizeof(mp_capable));
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), 0);
	assert_true(syn.mptcp);
	p = make_v4(SYN, mp_join, sizeof(mp_join));
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), 0);
	assert_true(syn.mptcp);
	p = make_v4(SYN, tfo, sizeof(tfo));
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), 0);
	assert_true(syn.fast_open);
	p = make_v4(SYN, NULL, 0);
	p.bytes[3] += 5; /* five bytes of data that were not copied */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), 0);
	assert_true(syn.fast_open);
}

static void other_packets_are_told_apart(void **state)
{
	struct packet p = make_v4(SYN, NULL, 0);
	struct pep_syn syn;

	(void)state;
	p.bytes[9] = 17; /* UDP */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EPROTONOSUPPORT);
	p = make_v4(SYN, NULL, 0);
	p.bytes[6] = 0x20; /* first fragment */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EPROTONOSUPPORT);
	p = make_v4(ACK, NULL, 0);
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -ENOMSG);
	p = make_v4(SYN | FIN, NULL, 0);
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -ENOMSG);
	p = make_v4(SYN | RST, NULL, 0);
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -ENOMSG);
	p.bytes[0] = 0x55;
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EPROTONOSUPPORT);
	p = make_v6(SYN, 0);
	p.bytes[6] = 44; /* fragment header */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EPROTONOSUPPORT);
	p = make_v6(SYN, 9); /* more extension headers than anyone needs */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
}

static void lying_lengths_are_refused(void **state)
{
	static const uint8_t zero_size[] = {2, 0, 0, 0};
	static const uint8_t past_end[] = {2, 9, 0, 0};
	static const uint8_t no_size[] = {1, 1, 1, 2};
	struct packet p = make_v4(SYN, NULL, 0);
	struct pep_syn syn = {.sequence = 7};

	(void)state;
	p.bytes[0] = 0x44; /* IP header of 16 bytes */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	p = make_v4(SYN, NULL, 0);
	p.bytes[3] = 30; /* total length ends inside TCP */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	p = make_v4(SYN, NULL, 0);
	p.bytes[32] = 0x40; /* TCP header of 16 bytes */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	p.bytes[32] = 0xf0; /* of 60 bytes, more than there are */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	p = make_v4(SYN, zero_size, sizeof(zero_size));
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	p = make_v4(SYN, past_end, sizeof(past_end));
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	p = make_v4(SYN, no_size, sizeof(no_size));
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	p = make_v6(SYN, 1);
	p.bytes[41] = 200; /* extension header longer than the packet */
	assert_int_equal(pep_syn_parse(p.bytes, p.length, &syn), -EBADMSG);
	assert_int_equal(syn.sequence, 7); /* untouched on failure */
}

/* Each cut is parsed from a block of exactly its size, so that a sanitizer sees a read behind it.
 */
static void every_truncation_is_refused(void **state)
{
	static const uint8_t options[] = {2, 4, 0x05, 0xb4, 30, 4, 1, 1};
	struct packet p[2] = {make_v4(SYN, options, sizeof(options)), make_v6(SYN, 3)};

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (size_t cut = 0; cut < p[i].length; cut++) {
			uint8_t *copy = malloc(cut ? cut : 1);
			struct pep_syn syn;

			memcpy(copy, p[i].bytes, cut);
			assert_true(pep_syn_parse(copy, cut, &syn) < 0);
			free(copy);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_syn_of_either_family_is_read_whole),
		cmocka_unit_test(a_synack_names_the_same_tuple_as_its_syn),
		cmocka_unit_test(mptcp_and_fast_open_are_seen),
		cmocka_unit_test(other_packets_are_told_apart),
		cmocka_unit_test(lying_lengths_are_refused),
		cmocka_unit_test(every_truncation_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
