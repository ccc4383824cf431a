/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/rules_netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <time.h>

struct nlmsghdr *rules_netlink_begin(void *buf, uint16_t type, uint16_t flags, uint8_t family,
				     uint16_t res_id)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = (uint32_t)time(NULL);
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(res_id);
	return nlh;
}

int rules_netlink_talk(const void *buf, size_t size, mnl_cb_t cb, void *data)
{
	const struct timeval patience = {.tv_sec = 5};
	struct mnl_socket *nl = mnl_socket_open(NETLINK_NETFILTER);
	uint8_t answer[16384];
	ssize_t n;
	int ret = MNL_CB_OK;

	if (!nl)
		return -errno;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    setsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_RCVTIMEO, &patience,
		       sizeof(patience)) < 0 ||
	    mnl_socket_sendto(nl, buf, size) < 0) {
		ret = -errno;
		(void)mnl_socket_close(nl);
		return ret;
	}
	while (ret == MNL_CB_OK) {
		n = mnl_socket_recvfrom(nl, answer, sizeof(answer));
		ret = n < 0 ? MNL_CB_ERROR
			    : mnl_cb_run(answer, (size_t)n, 0, mnl_socket_get_portid(nl), cb, data);
	}
	ret = ret == MNL_CB_ERROR ? -errno : 0;
	(void)mnl_socket_close(nl);
	return ret;
}
