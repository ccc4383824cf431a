/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rule sets beside the one that ours are in: nftables' own tables, iptables-legacy beside -nft. */
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>
#include <unistd.h>

#include "base/mark.h"
#include "ctl/doctor.h"
#include "ctl/rules_netlink.h"
#include "ctl/run.h"

/* A chain of another table through which our packets have to go. */
static void say_input(struct doctor *d, const char *family, const char *table, const char *chain)
{
	uint32_t divert = pep_mark_divert(d->conf->steering.mark_mask);
	char fix[256];

	(void)snprintf(fix, sizeof(fix),
		       "nft insert rule %s %s %s meta mark and 0x%x == 0x%x accept", family, table,
		       chain, divert, divert);
	doctor_say(
		d, DOCTOR_WARNING, "firewall", fix,
		"nftables table '%s %s' drops by default in chain '%s' (input): packets of split "
		"flows must pass it",
		family, table, chain);
}

/* The tables of iptables-nft; what is in them is checked as iptables' own. */
static bool is_iptables_table(const char *family, const char *table)
{
	static const char *const names[] = {"raw", "mangle", "filter", "nat", "security"};

	if (strcmp(family, "inet") == 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(table, names[i]) == 0)
			return true;
	return false;
}

static uint32_t attr_u32(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_U32) == 0 ? ntohl(mnl_attr_get_u32(attr))
								  : UINT32_MAX;
}

static uint32_t hook_of(const struct nlattr *nest)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) if (mnl_attr_get_type(attr) ==
						 NFTA_HOOK_HOOKNUM) return attr_u32(attr);
	return UINT32_MAX;
}

static int on_chain(const struct nlmsghdr *nlh, void *data)
{
	const struct nfgenmsg *nfg = mnl_nlmsg_get_payload(nlh);
	const char *family = nfg->nfgen_family == NFPROTO_IPV4   ? "ip"
			     : nfg->nfgen_family == NFPROTO_IPV6 ? "ip6"
			     : nfg->nfgen_family == NFPROTO_INET ? "inet"
								 : NULL;
	const char *table = NULL, *chain = NULL;
	uint32_t hook = UINT32_MAX, policy = NF_ACCEPT;
	struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(*nfg))
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type == NFTA_CHAIN_TABLE && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
			table = mnl_attr_get_str(attr);
		else if (type == NFTA_CHAIN_NAME &&
			 mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
			chain = mnl_attr_get_str(attr);
		else if (type == NFTA_CHAIN_HOOK)
			hook = hook_of(attr);
		else if (type == NFTA_CHAIN_POLICY)
			policy = attr_u32(attr);
	}
	if (family && table && chain && hook == NF_INET_LOCAL_IN && policy == NF_DROP &&
	    !is_iptables_table(family, table))
		say_input(data, family, table, chain);
	return MNL_CB_OK;
}

static void check_nftables(struct doctor *d)
{
	uint8_t buf[RULES_NETLINK_SIZE] = {0};
	struct nlmsghdr *nlh =
		rules_netlink_begin(buf, (uint16_t)((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETCHAIN),
				    NLM_F_DUMP, NFPROTO_UNSPEC, 0);

	(void)rules_netlink_talk(buf, nlh->nlmsg_len, on_chain, d);
}

/* Two backends at once: what is loaded with one is invisible to the other, and runs all the same.
 */
static void check_backends(struct doctor *d)
{
	const char *const version[] = {"iptables", "-V", NULL};
	char names[256] = "";
	struct pep_run run;
	FILE *in;
	bool nft;

	if (pep_run(version, NULL, 10, &run))
		return;
	nft = strstr(run.out, "nf_tables") != NULL;
	pep_run_fini(&run);
	in = fopen("/proc/net/ip_tables_names", "r");
	if (!in)
		return;
	if (nft && fgets(names, sizeof(names), in))
		doctor_say(d, DOCTOR_WARNING, "firewall",
			   "move them with iptables-legacy-save and iptables-restore",
			   "iptables-legacy has tables here beside iptables-nft: rules in them are "
			   "not seen by this check");
	(void)fclose(in);
}

void doctor_firewalls(struct doctor *d)
{
	enum doctor_severity before = d->worst;

	d->worst = DOCTOR_OK;
	check_nftables(d);
	check_backends(d);
	if (d->worst == DOCTOR_OK)
		doctor_say(d, DOCTOR_OK, "firewall", "", "no other rule set stands in the way");
	if (before > d->worst)
		d->worst = before;
}
