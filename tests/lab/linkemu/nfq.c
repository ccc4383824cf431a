/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant: verdicts are given in the order of packet numbers, so "all up to N" never names a
 * packet that has not had its turn.
 */
#include "nfq.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>

#define QUEUE_PACKETS 400000      /* what the kernel may hold for us */
#define SOCKET_BYTES  (256 << 20) /* the same, waiting to be read */
#define COPY_BYTES    8           /* of the payload; 0 would mean all */
#define BATCH         128         /* messages a recvmmsg() */
#define MESSAGE_BYTES 512         /* metadata of one packet, with room to spare */
#define AGE_MAX_US    1000000     /* older than that is a clock that was set */
#define VERDICT_BYTES                                                                \
	NLMSG_ALIGN(sizeof(struct nlmsghdr) + sizeof(struct nfgenmsg) + NLA_HDRLEN + \
		    sizeof(struct nfqnl_msg_verdict_hdr))
#define VERDICT_ROOM 64

struct pep_nfq {
	struct mnl_socket *socket;
	uint16_t queue;
	uint32_t last_id;
	uint64_t missed, overruns;

	struct mmsghdr headers[BATCH];
	struct iovec iovs[BATCH];
	char messages[BATCH][MESSAGE_BYTES] __attribute__((aligned(8)));

	/* Runs of equal verdicts; each is one message. */
	struct {
		uint32_t id, verdict;
	} runs[VERDICT_ROOM];
	unsigned int n_runs;
};

/* -- set-up ------------------------------------------------------------------------------------ */

/* Sends one request and waits for the kernel's answer to it. No packet can come before. */
static int request(struct pep_nfq *nfq, struct nlmsghdr *nlh)
{
	char reply[1024] __attribute__((aligned(8)));
	ssize_t n;

	nlh->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(nfq->socket, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	n = mnl_socket_recvfrom(nfq->socket, reply, sizeof(reply));
	if (n < 0)
		return -errno;
	n = mnl_cb_run(reply, (size_t)n, 0, mnl_socket_get_portid(nfq->socket), NULL, NULL);
	return n < 0 ? -errno : 0;
}

/*
 * A queue whose copy mode is still "none" takes no packets. The mode is set last and its answer is
 * not asked for, since it would stand among the first packets; the kernel has acted on the request
 * when sendto() returns, and rights were proved by the binding.
 */
static int open_queue(struct pep_nfq *nfq)
{
	char buffer[1024] __attribute__((aligned(8)));
	struct nlmsghdr *nlh;
	int err;

	nlh = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, nfq->queue);
	nfq_nlmsg_cfg_put_cmd(nlh, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
	err = request(nfq, nlh);
	if (err)
		return err;
	nlh = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, nfq->queue);
	nfq_nlmsg_cfg_put_qmaxlen(nlh, QUEUE_PACKETS);
	err = request(nfq, nlh);
	if (err)
		return err;
	nlh = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, nfq->queue);
	nfq_nlmsg_cfg_put_params(nlh, NFQNL_COPY_PACKET, COPY_BYTES);
	return mnl_socket_sendto(nfq->socket, nlh, nlh->nlmsg_len) < 0 ? -errno : 0;
}

int pep_nfq_open(uint16_t queue, struct pep_nfq **ret)
{
	struct pep_nfq *nfq = calloc(1, sizeof(*nfq));
	int bytes = SOCKET_BYTES;
	int err = -ENOMEM;
	unsigned int i;

	if (!nfq)
		return err;
	nfq->queue = queue;
	for (i = 0; i < BATCH; i++) {
		nfq->iovs[i] = (struct iovec){nfq->messages[i], MESSAGE_BYTES};
		nfq->headers[i].msg_hdr = (struct msghdr){
			.msg_iov = &nfq->iovs[i],
			.msg_iovlen = 1,
		};
	}
	nfq->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!nfq->socket || mnl_socket_bind(nfq->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		err = -errno;
		goto fail;
	}
	if (setsockopt(pep_nfq_fd(nfq), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes))) {
		err = -errno;
		goto fail;
	}
	err = open_queue(nfq);
	if (err)
		goto fail;
	*ret = nfq;
	return 0;

fail:
	pep_nfq_close(nfq);
	return err;
}

void pep_nfq_close(struct pep_nfq *nfq)
{
	if (!nfq)
		return;
	if (nfq->socket)
		mnl_socket_close(nfq->socket);
	free(nfq);
}

int pep_nfq_fd(const struct pep_nfq *nfq)
{
	return mnl_socket_get_fd(nfq->socket);
}

/* -- packets ----------------------------------------------------------------------------------- */

struct metadata {
	uint32_t id, bytes;
	uint64_t stamp_us; /* of CLOCK_REALTIME; 0: none */
	bool has_id, has_bytes;
};

static int metadata_attr(const struct nlattr *attr, void *arg)
{
	struct metadata *m = arg;
	const struct nfqnl_msg_packet_hdr *header;
	const struct nfqnl_msg_packet_timestamp *stamp;

	switch (mnl_attr_get_type(attr)) {
	case NFQA_PACKET_HDR:
		if (mnl_attr_get_payload_len(attr) < sizeof(*header))
			break;
		header = mnl_attr_get_payload(attr);
		m->id = ntohl(header->packet_id);
		m->has_id = true;
		break;
	case NFQA_CAP_LEN: /* there, because we never copy a whole packet */
		if (mnl_attr_get_payload_len(attr) < sizeof(uint32_t))
			break;
		m->bytes = ntohl(mnl_attr_get_u32(attr));
		m->has_bytes = true;
		break;
	case NFQA_TIMESTAMP:
		if (mnl_attr_get_payload_len(attr) < sizeof(*stamp))
			break;
		stamp = mnl_attr_get_payload(attr);
		m->stamp_us = be64toh(stamp->sec) * 1000000 + be64toh(stamp->usec);
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

/* Returns whether the message was a packet. */
static bool read_packet(struct pep_nfq *nfq, const struct nlmsghdr *nlh, int length,
			struct metadata *ret)
{
	const int type = (NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_PACKET;
	struct metadata m = {0};

	if (!mnl_nlmsg_ok(nlh, length) || nlh->nlmsg_type != type)
		return false;
	mnl_attr_parse(nlh, sizeof(struct nfgenmsg), metadata_attr, &m);
	if (!m.has_id)
		return false;
	nfq->missed += m.id - nfq->last_id - 1;
	nfq->last_id = m.id;
	if (!m.has_bytes) /* shorter than COPY_BYTES: not an IP packet of any use */
		m.bytes = COPY_BYTES;
	*ret = m;
	return true;
}

struct moment {
	uint64_t monotonic_ns, realtime_us;
};

static void read_clocks(struct moment *ret)
{
	ret->monotonic_ns = pep_clock_mono_ns();
	ret->realtime_us = pep_clock_ns(CLOCK_REALTIME) / 1000;
}

static uint64_t arrival_ns(const struct moment *now, uint64_t stamp_us)
{
	if (!stamp_us || now->realtime_us < stamp_us || now->realtime_us - stamp_us > AGE_MAX_US)
		return now->monotonic_ns;
	return now->monotonic_ns - (now->realtime_us - stamp_us) * 1000;
}

int pep_nfq_read(struct pep_nfq *nfq, pep_nfq_packet_fn packet, void *arg)
{
	struct moment now;
	int n, i, count = 0;

	n = recvmmsg(pep_nfq_fd(nfq), nfq->headers, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return 0;
		if (errno != ENOBUFS)
			return -errno;
		nfq->overruns++; /* the lost ones show as gaps in the numbers */
		return 1;        /* there is more to read */
	}
	read_clocks(&now);
	for (i = 0; i < n; i++) {
		struct metadata m;

		if (!read_packet(nfq, (struct nlmsghdr *)nfq->messages[i],
				 (int)nfq->headers[i].msg_len, &m))
			continue;
		packet(arg, m.id, m.bytes, arrival_ns(&now, m.stamp_us));
		count++;
	}
	return count;
}

/* -- verdicts ---------------------------------------------------------------------------------- */

static void put_verdict(struct pep_nfq *nfq, char *at, uint32_t id, uint32_t verdict)
{
	struct nlmsghdr *nlh = nfq_nlmsg_put(at, NFQNL_MSG_VERDICT_BATCH, nfq->queue);
	struct nfqnl_msg_verdict_hdr header = {htonl(verdict), htonl(id)};

	mnl_attr_put(nlh, NFQA_VERDICT_HDR, sizeof(header), &header);
}

int pep_nfq_flush(struct pep_nfq *nfq)
{
	char buffer[VERDICT_ROOM * VERDICT_BYTES] __attribute__((aligned(8)));
	unsigned int i, n = nfq->n_runs;

	if (!n)
		return 0;
	for (i = 0; i < n; i++)
		put_verdict(nfq, buffer + i * VERDICT_BYTES, nfq->runs[i].id, nfq->runs[i].verdict);
	nfq->n_runs = 0;
	return mnl_socket_sendto(nfq->socket, buffer, n * VERDICT_BYTES) < 0 ? -errno : 0;
}

int pep_nfq_verdict(struct pep_nfq *nfq, uint32_t id, bool drop)
{
	uint32_t verdict = drop ? NF_DROP : NF_ACCEPT;
	int err = 0;

	if (nfq->n_runs && nfq->runs[nfq->n_runs - 1].verdict == verdict) {
		nfq->runs[nfq->n_runs - 1].id = id;
		return 0;
	}
	if (nfq->n_runs == VERDICT_ROOM)
		err = pep_nfq_flush(nfq);
	nfq->runs[nfq->n_runs].id = id;
	nfq->runs[nfq->n_runs++].verdict = verdict;
	return err;
}

uint64_t pep_nfq_missed(const struct pep_nfq *nfq)
{
	return nfq->missed;
}

uint64_t pep_nfq_overruns(const struct pep_nfq *nfq)
{
	return nfq->overruns;
}
