/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test SYNs that come in through the wireless interfaces, as a client's would: does the daemon see
 * them? A BPF program of four instructions puts them there (bpf_clone_redirect to the interface's
 * receiving side), so that nothing has to be set up and nothing is left behind.
 *
 * They harm nobody: their TCP options are cut off, so the gate bypasses and counts them as
 * malformed, which ordinary traffic is not; and their hop limit of 1 keeps them from leaving this
 * host.
 */
#include "ctl/doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/control_client.h"

#define SYNS       16 /* their ports meet every worker */
#define PORT_STEP  32
#define FIRST_PORT 40000
#define WAIT_MS    1000
#define POLL_MS    20
#define TCP_BYTES  24

struct frame {
	uint8_t bytes[ETH_HLEN + 40 + TCP_BYTES];
	size_t size;
};

static void put16(uint8_t *at, unsigned int value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t sum16(const uint8_t *at, size_t bytes)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2)
		sum += (uint32_t)(at[i] << 8 | at[i + 1]);
	return sum;
}

static unsigned int fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* TCP at @at; the addresses lie before it. */
static void put_tcp(uint8_t *at, unsigned int port, const uint8_t *addrs, size_t addrs_bytes)
{
	put16(at, port);
	put16(at + 2, 80);
	put16(at + 4, port); /* any sequence number */
	at[12] = TCP_BYTES / 4 << 4;
	at[13] = 0x02; /* SYN */
	put16(at + 14, 1024);
	at[20] = 2; /* an option that says to be longer than the header is */
	at[21] = 40;
	put16(at + 16,
	      fold(sum16(addrs, addrs_bytes) + IPPROTO_TCP + TCP_BYTES + sum16(at, TCP_BYTES)));
}

/* From and to addresses for documentation: nobody has them. */
static void make_frame(struct frame *f, bool v6, const uint8_t mac[ETH_ALEN], unsigned int port)
{
	uint8_t *ip = f->bytes + ETH_HLEN;

	*f = (struct frame){.size = ETH_HLEN + (v6 ? 40 : 20) + TCP_BYTES};
	memcpy(f->bytes, mac, ETH_ALEN);
	f->bytes[6] = 0x02; /* a locally administered sender */
	put16(f->bytes + 12, v6 ? ETH_P_IPV6 : ETH_P_IP);
	if (v6) {
		ip[0] = 0x60;
		put16(ip + 4, TCP_BYTES);
		ip[6] = IPPROTO_TCP;
		ip[7] = 1;
		(void)inet_pton(AF_INET6, "2001:db8:1::1", ip + 8);
		(void)inet_pton(AF_INET6, "2001:db8:2::1", ip + 24);
		put_tcp(ip + 40, port, ip + 8, 32);
	} else {
		ip[0] = 0x45;
		put16(ip + 2, 20 + TCP_BYTES);
		ip[8] = 1;
		ip[9] = IPPROTO_TCP;
		(void)inet_pton(AF_INET, "198.51.100.1", ip + 12);
		(void)inet_pton(AF_INET, "192.0.2.1", ip + 16);
		put16(ip + 10, fold(sum16(ip, 20)));
		put_tcp(ip + 20, port, ip + 12, 8);
	}
}

static int bpf(int command, union bpf_attr *attr)
{
	int result = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : result;
}

/* return bpf_clone_redirect(skb, @interface, BPF_F_INGRESS) */
static int load_program(unsigned int interface)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = (int)interface},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = BPF_F_INGRESS},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_clone_redirect},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SCHED_CLS,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.insns = (uintptr_t)code,
		.license = (uintptr_t) "GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

static int find_mac(const char *name, uint8_t ret[ETH_ALEN])
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct ifreq request = {0};

	if (fd < 0)
		return -errno;
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFHWADDR, &request) < 0)
		err = -errno;
	else
		memcpy(ret, request.ifr_hwaddr.sa_data, ETH_ALEN);
	close(fd);
	return err;
}

/* Lets SYNS come in through @name. Returns 0, or a negative errno when that cannot be done here. */
static int send_in(const char *name, bool v6)
{
	uint8_t mac[ETH_ALEN] = {0};
	int err = find_mac(name, mac), program;

	if (err)
		return err;
	program = load_program(if_nametoindex(name));
	if (program < 0)
		return program;
	for (unsigned int i = 0; !err && i < SYNS; i++) {
		struct frame f;
		union bpf_attr attr = {0};

		make_frame(&f, v6, mac, FIRST_PORT + i * PORT_STEP);
		attr.test.prog_fd = (uint32_t)program;
		attr.test.data_in = (uintptr_t)f.bytes;
		attr.test.data_size_in = (uint32_t)f.size;
		attr.test.repeat = 1;
		err = bpf(BPF_PROG_TEST_RUN, &attr);
		if (!err && attr.test.retval != 0)
			err = (int)attr.test.retval < 0 ? (int)attr.test.retval : -EIO;
	}
	close(program);
	return err;
}

/* SYNs that the gate could not read, so far; -1: the daemon does not say. */
static long long count_seen(const struct doctor *d)
{
	long long count = -1;
	json_t *status = NULL;
	char path[256];

	if (pep_control_path(d->conf->run_dir, path, sizeof(path)) == 0 &&
	    pep_control_call(path, "status", WAIT_MS, &status) == 0)
		(void)json_unpack(status, "{s:{s:{s:I}}}", "counters", "bypassed", "malformed",
				  &count);
	json_decref(status);
	return count;
}

static long long wait_seen(const struct doctor *d, long long before)
{
	long long seen = 0;

	for (int ms = 0; ms < WAIT_MS && seen < SYNS; ms += POLL_MS) {
		long long now = count_seen(d);

		seen = now < 0 ? 0 : now - before;
		if (seen < SYNS)
			(void)usleep(POLL_MS * 1000);
	}
	return seen;
}

static void try_interface(struct doctor *d, const char *name, enum rules_family family)
{
	const char *v = family == RULES_FAMILY_IPV6 ? "IPv6" : "IPv4";
	long long before = count_seen(d), packets = doctor_gate_packets(family), seen;
	int err = before < 0 ? -EAGAIN : send_in(name, family == RULES_FAMILY_IPV6);

	if (err) {
		doctor_say(d, DOCTOR_NOTE, "syn",
			   "watch 'edgepepctl status' while a client connects",
			   "no test SYN can be let in through %s (%s): whether %s SYNs reach the "
			   "gate is not proven",
			   name, strerror(-err), v);
		return;
	}
	seen = wait_seen(d, before);
	if (seen >= SYNS)
		doctor_say(d, DOCTOR_OK, "syn", "", "%d %s SYNs let in through %s reached the gate",
			   SYNS, v, name);
	else if (doctor_gate_packets(family) <= packets)
		doctor_say(
			d, DOCTOR_ERROR, "syn",
			"look for what comes before our rules in raw PREROUTING (iptables-save -t "
			"raw), in nftables, in XDP and tc; 'edgepepctl rules up'",
			"%lld of %d %s SYNs let in through %s reached the gate: they do not come "
			"to its rule",
			seen, SYNS, v, name);
	else
		doctor_say(d, DOCTOR_ERROR, "syn", "systemctl restart edgepep",
			   "%lld of %d %s SYNs let in through %s reached the gate: its rule has "
			   "them, the daemon does not",
			   seen, SYNS, v, name);
}

void doctor_syn(struct doctor *d)
{
	if (!d->status)
		return;
	for (unsigned int i = 0; i < d->conf->n_wireless_interfaces; i++) {
		const char *name = d->conf->wireless_interfaces[i];

		for (int f = 0; f < RULES_FAMILY_COUNT_; f++)
			if (d->families[f] && if_nametoindex(name))
				try_interface(d, name, (enum rules_family)f);
	}
}
