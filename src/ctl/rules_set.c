/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of direct flows, made over netlink so that the ipset program is not needed. */
#include "ctl/rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <time.h>

#include "ctl/rules_netlink.h"

#define SET_TYPE    "hash:ip,port,ip"
#define SET_TIMEOUT 65u
#define SET_MAXELEM 262144u

/* With a protocol newer than ours the kernel refuses; 6 is what every kernel since 2014 takes. */
#define SET_PROTOCOL 6

static uint16_t command(uint8_t cmd)
{
	return (uint16_t)((NFNL_SUBSYS_IPSET << 8) | cmd);
}

static uint8_t address_family(enum rules_family family)
{
	return family == RULES_FAMILY_IPV4 ? AF_INET : AF_INET6;
}

int rules_set_create(enum rules_family family)
{
	uint8_t buf[RULES_NETLINK_SIZE] = {0};
	struct nlattr *data;
	struct nlmsghdr *nlh;
	int err;

	nlh = rules_netlink_begin(buf, command(IPSET_CMD_CREATE),
				  NLM_F_ACK | NLM_F_EXCL | NLM_F_CREATE, address_family(family), 0);
	mnl_attr_put_u8(nlh, IPSET_ATTR_PROTOCOL, SET_PROTOCOL);
	mnl_attr_put_strz(nlh, IPSET_ATTR_SETNAME, rules_set_name(family));
	mnl_attr_put_strz(nlh, IPSET_ATTR_TYPENAME, SET_TYPE);
	mnl_attr_put_u8(nlh, IPSET_ATTR_REVISION, 1);
	mnl_attr_put_u8(nlh, IPSET_ATTR_FAMILY, address_family(family));
	data = mnl_attr_nest_start(nlh, IPSET_ATTR_DATA);
	mnl_attr_put_u32(nlh, IPSET_ATTR_TIMEOUT | NLA_F_NET_BYTEORDER, htonl(SET_TIMEOUT));
	mnl_attr_put_u32(nlh, IPSET_ATTR_MAXELEM | NLA_F_NET_BYTEORDER, htonl(SET_MAXELEM));
	mnl_attr_nest_end(nlh, data);
	err = rules_netlink_talk(buf, nlh->nlmsg_len, NULL, NULL);
	if (err == -EEXIST)
		return 0;
	/* No subsystem, or no such set type. */
	return err == -EINVAL || err == -IPSET_ERR_FIND_TYPE ? -EOPNOTSUPP : err;
}

int rules_set_destroy(enum rules_family family)
{
	const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
	uint8_t buf[RULES_NETLINK_SIZE] = {0};
	struct nlmsghdr *nlh;
	int err = 0;

	/* nftables frees removed rules a little later; until then the set is in use. */
	for (int tries = 0; tries < 100; tries++) {
		nlh = rules_netlink_begin(buf, command(IPSET_CMD_DESTROY), NLM_F_ACK,
					  address_family(family), 0);
		mnl_attr_put_u8(nlh, IPSET_ATTR_PROTOCOL, SET_PROTOCOL);
		mnl_attr_put_strz(nlh, IPSET_ATTR_SETNAME, rules_set_name(family));
		err = rules_netlink_talk(buf, nlh->nlmsg_len, NULL, NULL);
		if (err != -IPSET_ERR_BUSY && err != -EBUSY)
			break;
		(void)nanosleep(&pause, NULL);
	}
	if (err == -IPSET_ERR_BUSY)
		return -EBUSY;
	/* Not there, or no ip sets at all. */
	return err == -ENOENT || err == -EINVAL ? 0 : err;
}
