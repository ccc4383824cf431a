/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets are received and verdicts sent in batches: one system call moves up to BATCH of either.
 * A verdict that the kernel does not take now waits and is sent again: without it its packet would
 * lie in the queue for ever.
 */
#include "proxy/gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH         32
#define BATCHES_MAX   8 /* per wake-up, so that SYNs cannot starve the relay */
#define PACKET_BYTES  1024
#define VERDICT_BYTES 128        /* header, verdict and mark; 44 today */
#define SOCKET_BUFFER (16 << 20) /* the queue at its longest */

struct verdict {
	uint32_t id; /* network order */
	int verdict;
	uint32_t mark;
	bool has_mark;
};

struct pep_gate {
	struct pep_gate_params params;
	struct pep_gate_handler handler;
	struct pep_gate_counters counters;
	struct mnl_socket *socket;
	struct event *event;
	bool batching;
	/* Verdicts to be sent, [first, end); the kernel holds no more packets than max_length. */
	struct verdict *pending;
	uint32_t pending_first, pending_end, pending_size;
	uint8_t message[BATCH * VERDICT_BYTES];
	uint8_t packets[BATCH][PACKET_BYTES];
};

/* Writes up to BATCH verdicts as messages into gate->message. Returns the bytes. */
static size_t encode_batch(struct pep_gate *gate, uint32_t *ret_count)
{
	uint32_t count = gate->pending_end - gate->pending_first;
	size_t bytes = 0;

	if (count > BATCH)
		count = BATCH;
	for (uint32_t i = 0; i < count; i++) {
		const struct verdict *v = &gate->pending[gate->pending_first + i];
		struct nlmsghdr *nlh = nfq_nlmsg_put((char *)gate->message + bytes,
						     NFQNL_MSG_VERDICT, gate->params.queue);

		nfq_nlmsg_verdict_put(nlh, (int)ntohl(v->id), v->verdict);
		if (v->has_mark)
			nfq_nlmsg_verdict_put_mark(nlh, v->mark);
		bytes += NLMSG_ALIGN(nlh->nlmsg_len);
	}
	*ret_count = count;
	return bytes;
}

void pep_gate_flush(struct pep_gate *gate)
{
	while (gate->pending_first < gate->pending_end) {
		uint32_t count;
		size_t bytes = encode_batch(gate, &count);

		if (mnl_socket_sendto(gate->socket, gate->message, bytes) < 0) {
			gate->counters.verdict_errors++;
			return; /* again with the next verdict or flush */
		}
		gate->pending_first += count;
	}
	gate->pending_first = gate->pending_end = 0;
}

static void put_verdict(struct pep_gate *gate, uint32_t id, int verdict, const uint32_t *mark)
{
	if (gate->pending_end == gate->pending_size && gate->pending_first > 0) {
		gate->pending_end -= gate->pending_first;
		memmove(gate->pending, gate->pending + gate->pending_first,
			gate->pending_end * sizeof(*gate->pending));
		gate->pending_first = 0;
	}
	if (gate->pending_end == gate->pending_size) {
		gate->counters.verdict_errors++;
		return;
	}
	gate->pending[gate->pending_end++] = (struct verdict){
		.id = id, .verdict = verdict, .mark = mark ? *mark : 0, .has_mark = mark != NULL};
	if (!gate->batching || gate->pending_end - gate->pending_first >= BATCH)
		pep_gate_flush(gate);
}

void pep_gate_mark(struct pep_gate *gate, const struct pep_gate_ticket *ticket,
		   enum pep_mark_kind kind)
{
	uint32_t mark =
		pep_mark_set(ticket->mark, gate->params.mark_mask, kind, gate->params.worker);

	put_verdict(gate, ticket->id, NF_REPEAT, &mark);
}

void pep_gate_drop(struct pep_gate *gate, const struct pep_gate_ticket *ticket)
{
	put_verdict(gate, ticket->id, NF_DROP, NULL);
}

static void on_packet(struct pep_gate *gate, struct nlattr **attr)
{
	const struct nfqnl_msg_packet_hdr *header;
	struct pep_gate_ticket ticket = {0};
	struct pep_syn syn;
	int err;

	header = mnl_attr_get_payload(attr[NFQA_PACKET_HDR]);
	ticket.id = header->packet_id;
	if (attr[NFQA_MARK])
		ticket.mark = ntohl(mnl_attr_get_u32(attr[NFQA_MARK]));
	err = attr[NFQA_PAYLOAD] ? pep_syn_parse(mnl_attr_get_payload(attr[NFQA_PAYLOAD]),
						 mnl_attr_get_payload_len(attr[NFQA_PAYLOAD]), &syn)
				 : -EBADMSG;
	gate->counters.packets++;

	if (header->hook == NF_INET_LOCAL_IN) {
		if (!err && syn.is_synack)
			gate->handler.on_synack(gate->handler.context, &syn);
		put_verdict(gate, ticket.id, NF_ACCEPT, NULL);
	} else if (err || syn.is_synack) {
		gate->handler.on_malformed(gate->handler.context, err ? err : -ENOMSG);
		pep_gate_mark(gate, &ticket, PEP_MARK_KIND_BYPASS);
	} else {
		gate->handler.on_syn(gate->handler.context, &ticket, &syn);
	}
}

static int on_message(const struct nlmsghdr *nlh, void *data)
{
	struct nlattr *attr[NFQA_MAX + 1] = {NULL};
	struct pep_gate *gate = data;

	if (nfq_nlmsg_parse(nlh, attr) < 0 || !attr[NFQA_PACKET_HDR])
		gate->counters.verdict_errors++;
	else
		on_packet(gate, attr);
	return MNL_CB_OK;
}

/* Receives one batch. Returns how many messages there were, or a negative errno. */
static int receive_batch(struct pep_gate *gate)
{
	struct mmsghdr messages[BATCH] = {0};
	struct iovec vectors[BATCH];
	int n;

	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){gate->packets[i], PACKET_BYTES};
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(mnl_socket_get_fd(gate->socket), messages, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		/* An error message from the kernel is about a verdict: the packet is gone. */
		if (mnl_cb_run(gate->packets[i], messages[i].msg_len, 0, 0, on_message, gate) < 0)
			gate->counters.verdict_errors++;
	}
	return n;
}

void pep_gate_run(struct pep_gate *gate)
{
	int n = BATCH;

	gate->batching = true;
	for (int i = 0; i < BATCHES_MAX && n == BATCH; i++) {
		n = receive_batch(gate);
		/* Lost messages: the kernel let those packets pass (fail-open), all that is left
		 * to do is to count and to go on. */
		if (n == -ENOBUFS) {
			gate->counters.overruns++;
			n = BATCH;
		}
		pep_gate_flush(gate);
	}
	gate->batching = false;
}

static void on_readable(evutil_socket_t fd, short what, void *data)
{
	(void)fd;
	(void)what;
	pep_gate_run(data);
}

/* Sends one configuration message and waits for its answer. */
static int configure(struct pep_gate *gate, struct nlmsghdr *nlh)
{
	unsigned int portid = mnl_socket_get_portid(gate->socket);
	ssize_t n;

	nlh->nlmsg_flags |= NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	if (mnl_socket_sendto(gate->socket, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	n = mnl_socket_recvfrom(gate->socket, gate->packets, sizeof(gate->packets));
	if (n < 0 || mnl_cb_run(gate->packets, (size_t)n, 1, portid, NULL, NULL) < 0)
		return -errno;
	return 0;
}

static int bind_queue(struct pep_gate *gate)
{
	char buffer[256];
	struct nlmsghdr *nlh;
	int err;

	nlh = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, gate->params.queue);
	nfq_nlmsg_cfg_put_cmd(nlh, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
	err = configure(gate, nlh);
	if (err)
		return err;

	nlh = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, gate->params.queue);
	nfq_nlmsg_cfg_put_params(nlh, NFQNL_COPY_PACKET, PEP_SYN_COPY_BYTES);
	nfq_nlmsg_cfg_put_qmaxlen(nlh, gate->params.max_length);
	mnl_attr_put_u32(nlh, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_FAIL_OPEN));
	mnl_attr_put_u32(nlh, NFQA_CFG_MASK, htonl(NFQA_CFG_F_FAIL_OPEN));
	return configure(gate, nlh);
}

int pep_gate_new(struct event_base *base, const struct pep_gate_params *params,
		 const struct pep_gate_handler *handler, struct pep_gate **ret)
{
	struct pep_gate *gate = calloc(1, sizeof(*gate));
	int buffer = SOCKET_BUFFER, err = -ENOMEM, fd;

	if (!gate)
		return err;
	gate->params = *params;
	gate->handler = *handler;
	gate->pending_size = params->max_length + BATCH;
	gate->pending = calloc(gate->pending_size, sizeof(*gate->pending));
	if (!gate->pending)
		goto fail;
	gate->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!gate->socket || mnl_socket_bind(gate->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		err = -errno;
		goto fail;
	}
	fd = mnl_socket_get_fd(gate->socket);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	err = bind_queue(gate);
	if (err)
		goto fail;
	if (evutil_make_socket_nonblocking(fd) < 0) {
		err = -errno;
		goto fail;
	}
	gate->event = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, gate);
	if (!gate->event || event_add(gate->event, NULL) < 0) {
		err = -ENOMEM;
		goto fail;
	}
	*ret = gate;
	return 0;

fail:
	pep_gate_free(gate);
	return err;
}

void pep_gate_free(struct pep_gate *gate)
{
	if (!gate)
		return;
	if (gate->event)
		event_free(gate->event);
	if (gate->socket) {
		pep_gate_flush(gate);
		mnl_socket_close(gate->socket);
	}
	free(gate->pending);
	free(gate);
}

int pep_gate_fd(const struct pep_gate *gate)
{
	return mnl_socket_get_fd(gate->socket);
}

void pep_gate_get_counters(const struct pep_gate *gate, struct pep_gate_counters *ret)
{
	*ret = gate->counters;
}
