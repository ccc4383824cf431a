/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SYNs of made-up clients, from a raw socket, at a fixed rate. */
#include "load.h"

#include "base/clock.h"

#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH      32
#define SYN_LENGTH 60 /* IP, TCP, and 20 bytes of options as Linux sends them */

static uint32_t sum16(const void *data, size_t n, uint32_t sum)
{
	const uint8_t *at = data;

	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)(at[i] << 8 | at[i + 1]);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Client number @n: addresses first, then ports. */
static void make_syn(uint8_t *packet, const struct load_options *options, uint64_t n)
{
	static const uint8_t tcp_options[20] = {2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0,
						0, 1, 0, 0,    0, 0, 1, 3,  3, 7};
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = htons(SYN_LENGTH),
		.ttl = 64,
		.protocol = IPPROTO_TCP,
		.saddr = htonl(ntohl(options->from.s_addr) + (uint32_t)(n % options->sources)),
		.daddr = options->to.sin_addr.s_addr,
	};
	struct tcphdr tcp = {
		.source = htons((uint16_t)(1024 + n / options->sources % 60000)),
		.dest = options->to.sin_port,
		.seq = htonl((uint32_t)(n * 2654435761u)),
		.doff = 10,
		.syn = 1,
		.window = htons(64240),
	};
	uint32_t sum = IPPROTO_TCP + 40;

	sum = sum16(&ip.saddr, 8, sum);
	sum = sum16(&tcp, sizeof(tcp), sum);
	tcp.check = fold(sum16(tcp_options, sizeof(tcp_options), sum));
	memcpy(packet, &ip, sizeof(ip));
	memcpy(packet + 20, &tcp, sizeof(tcp));
	memcpy(packet + 40, tcp_options, sizeof(tcp_options));
}

static void pause_until(uint64_t when_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(when_ns / 1000000000u),
			      .tv_nsec = (long)(when_ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

int load_syn(const struct load_options *options)
{
	static uint8_t packets[BATCH][SYN_LENGTH];
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW), buffer = 4 << 20;
	struct mmsghdr messages[BATCH] = {0};
	struct iovec vectors[BATCH];
	uint64_t began, sent = 0, total = (uint64_t)(options->rate * options->seconds);

	if (fd < 0)
		load_fail("raw socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	if (connect(fd, (const struct sockaddr *)&options->to, sizeof(options->to)) < 0)
		load_fail("connect");
	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){packets[i], SYN_LENGTH};
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	began = pep_clock_mono_ns();
	while (sent < total) {
		int n;

		pause_until(began + (uint64_t)((double)sent / options->rate * 1e9));
		for (int i = 0; i < BATCH; i++)
			make_syn(packets[i], options, sent + (uint64_t)i);
		n = sendmmsg(fd, messages, BATCH, 0);
		if (n < 0)
			load_fail("sendmmsg");
		sent += (uint64_t)n;
	}
	printf("{\"sent\": %llu, \"seconds\": %.4f, \"per_second\": %.0f}\n",
	       (unsigned long long)sent, (double)(pep_clock_mono_ns() - began) / 1e9,
	       (double)sent * 1e9 / (double)(pep_clock_mono_ns() - began));
	return 0;
}
