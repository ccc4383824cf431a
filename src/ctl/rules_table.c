/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iptables-nft leaves an empty table behind, which iptables-save then shows; removing it is what
 * the iptables programs cannot do.
 */
#include "ctl/rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/rules_netlink.h"

static uint16_t nft(uint8_t cmd)
{
	return (uint16_t)((NFNL_SUBSYS_NFTABLES << 8) | cmd);
}

static int read_generation(const struct nlmsghdr *nlh, void *data)
{
	struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(attr) == NFTA_GEN_ID &&
		    mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
			*(uint32_t *)data = ntohl(mnl_attr_get_u32(attr));
	}
	return MNL_CB_OK;
}

int rules_table_generation(uint32_t *ret)
{
	uint8_t buf[RULES_NETLINK_SIZE] = {0};
	struct nlmsghdr *nlh =
		rules_netlink_begin(buf, nft(NFT_MSG_GETGEN), NLM_F_ACK, AF_UNSPEC, 0);
	uint32_t generation = 0;
	int err = rules_netlink_talk(buf, nlh->nlmsg_len, read_generation, &generation);

	if (!err)
		*ret = generation;
	return err;
}

int rules_table_delete(enum rules_family family, enum rules_table table, uint32_t generation)
{
	uint8_t af = family == RULES_FAMILY_IPV4 ? AF_INET : AF_INET6;
	uint8_t buf[RULES_NETLINK_SIZE] = {0};
	struct nlmsghdr *nlh;
	size_t used = 0;
	int err;

	nlh = rules_netlink_begin(buf, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	mnl_attr_put_u32(nlh, NFNL_BATCH_GENID, htonl(generation));
	used += NLMSG_ALIGN(nlh->nlmsg_len);
	nlh = rules_netlink_begin(buf + used, nft(NFT_MSG_DELTABLE), NLM_F_ACK, af, 0);
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, rules_table_name(table));
	used += NLMSG_ALIGN(nlh->nlmsg_len);
	nlh = rules_netlink_begin(buf + used, NFNL_MSG_BATCH_END, 0, AF_UNSPEC,
				  NFNL_SUBSYS_NFTABLES);
	used += NLMSG_ALIGN(nlh->nlmsg_len);

	err = rules_netlink_talk(buf, used, NULL, NULL);
	if (err == -ENOENT)
		return 0;
	return err == -ERESTART ? -EAGAIN : err;
}
