/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steering rules as iptables-restore reads them, each with the reason above it.
 * doc/ARCHITECTURE.md says how they work together. Only our own chains are filled; builtin chains
 * get jumps at their head.
 */
#include "ctl/rules.h"

#include <string.h>

#include "base/mark.h"

#define BARE_SYN "--tcp-flags FIN,SYN,RST,ACK SYN"
#define SYN_ACK  "--tcp-flags FIN,SYN,RST,ACK SYN,ACK"

/* A TIME_WAIT socket lives 60 s, so a direct flow need not be remembered for longer. */
#define DIRECT_TIMEOUT_S 65

/* What every piece of the text needs. */
struct text {
	FILE *out;
	const struct pep_conf *conf;
	const struct rules_text_options *options;
	enum rules_family family;
	uint32_t mask;
	uint32_t kind; /* mask of the kind */
	uint32_t divert;
	const char *icmp; /* protocol name */
	const char *set;  /* NULL without ip sets */
};

static uint32_t kind(const struct text *t, enum pep_mark_kind k)
{
	return pep_mark_make(t->mask, k, 0);
}

/* Where our chains begin: their names, then what takes the old jumps away. */
static void begin_table(const struct text *t, enum rules_table table, const char *const chains[])
{
	const struct rules_save *old = t->options->old;

	fprintf(t->out, "*%s\n", rules_table_name(table));
	for (size_t i = 0; chains[i]; i++)
		fprintf(t->out, ":%s - [0:0]\n", chains[i]);
	for (size_t i = 0; old && i < old->n_jumps; i++)
		if (old->jumps[i].table == table)
			fprintf(t->out, "-D %s\n", old->jumps[i].text);
}

/* Chains of another version of ours, which nothing uses any more. */
static void end_table(const struct text *t, enum rules_table table, const char *const chains[])
{
	const struct rules_save *old = t->options->old;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; old && i < old->n_chains; i++) {
			bool kept = old->chains[i].table != table;

			for (size_t k = 0; chains[k]; k++)
				kept = kept || strcmp(chains[k], old->chains[i].text) == 0;
			if (!kept)
				fprintf(t->out, "%s %s\n", pass ? "-X" : "-F", old->chains[i].text);
		}
	}
	fprintf(t->out, "COMMIT\n");
}

/* One jump per interface, the last inserted coming first. */
static void jump_from(const struct text *t, const char names[][PEP_CONF_NAME_SIZE], unsigned int n,
		      const char *chain, const char *match, const char *target)
{
	for (unsigned int i = n; i-- > 0;)
		fprintf(t->out, "-I %s 1 -i %s%s -j %s\n", chain, names[i], match, target);
}

/* xt_u32 compares with so many values at most. */
#define U32_VALUES 10u

/*
 * Writes "EXPRESSION=VALUE,VALUE...", true of a worker's share of the client's ports. A client that
 * opens flows one after the other gets ports one after the other (Linux: each second), so the
 * lowest bits deal them out. Not the very lowest: Linux gives even ports first.
 */
static void write_ports(const struct text *t, unsigned int worker, unsigned int workers)
{
	unsigned int n = 1;

	while (2 * n <= U32_VALUES * workers)
		n *= 2;
	fprintf(t->out, "%s&0x%x=", t->family == RULES_FAMILY_IPV4 ? "0>>22&0x3C@0>>17" : "38>>1",
		n - 1);
	for (unsigned int value = worker; value < n; value += workers)
		fprintf(t->out, "%s0x%x", value == worker ? "" : ",", value);
}

/*
 * A new SYN to a worker's queue. NFQUEUE itself balances by addresses alone, so that all flows
 * between two hosts would be one worker's.
 */
static void write_queue(const struct text *t)
{
	const struct pep_conf *conf = t->conf;
	const char *bypass = conf->fail == PEP_FAIL_OPEN ? " --queue-bypass" : "";
	unsigned int first = conf->steering.first_queue, workers = conf->workers;
	char match[160];

	snprintf(match, sizeof(match),
		 "-p tcp -m tcp " BARE_SYN
		 " -m mark --mark 0x0/0x%x -m addrtype ! --dst-type LOCAL",
		 t->kind);
	fprintf(t->out, "# every other new SYN is shown to the gate%s\n",
		conf->fail == PEP_FAIL_OPEN ? "; without a daemon it goes on, end to end"
					    : "; without a daemon it is dropped (fail = closed)");
	for (unsigned int w = 0; t->options->by_port && w + 1 < workers; w++) {
		fprintf(t->out, "-A EDGEPEP-GATE %s -m u32 --u32 \"", match);
		write_ports(t, w, workers);
		fprintf(t->out, "\" -j NFQUEUE --queue-num %u%s\n", first + w, bypass);
	}
	if (workers == 1 || t->options->by_port)
		fprintf(t->out, "-A EDGEPEP-GATE %s -j NFQUEUE --queue-num %u%s\n", match,
			first + workers - 1, bypass);
	else
		fprintf(t->out, "-A EDGEPEP-GATE %s -j NFQUEUE --queue-balance %u:%u%s\n", match,
			first, first + workers - 1, bypass);
}

static void write_gate(const struct text *t)
{
	fprintf(t->out, "# packets of the wireless legs; a bare SYN is always for the gate\n"
			"-A EDGEPEP-GATE -p tcp -m tcp ! " BARE_SYN
			" -m socket --transparent --restore-skmark -j EDGEPEP-SOCKET\n");
	fprintf(t->out,
		"# ICMP errors about packets that a wireless leg sent (path MTU)\n"
		"-A EDGEPEP-GATE -p %s -m socket --transparent --restore-skmark"
		" -m mark --mark 0x%x/0x%x -g EDGEPEP-CLIENT\n",
		t->icmp, kind(t, PEP_MARK_KIND_WIRELESS), t->kind);
	fprintf(t->out,
		"# a SYN that comes back from the gate to be split\n"
		"-A EDGEPEP-GATE -p tcp -m mark --mark 0x%x/0x%x -g EDGEPEP-SPLIT\n",
		kind(t, PEP_MARK_KIND_SPLIT), t->kind);
	write_queue(t);
}

static void write_raw(const struct text *t)
{
	static const char *const chains[] = {"EDGEPEP-GATE",  "EDGEPEP-SOCKET", "EDGEPEP-CLIENT",
					     "EDGEPEP-SPLIT", "EDGEPEP-OUT",    NULL};

	begin_table(t, RULES_TABLE_RAW, chains);
	fprintf(t->out, "# what the radio side sends passes the gate\n");
	jump_from(t, t->conf->wireless_interfaces, t->conf->n_wireless_interfaces, "PREROUTING", "",
		  "EDGEPEP-GATE");
	fprintf(t->out,
		"# what the wireless legs send is not tracked: both legs of a flow have the same"
		" addresses\n"
		"-I OUTPUT 1 -m mark --mark 0x%x/0x%x -j EDGEPEP-OUT\n"
		"-A EDGEPEP-OUT -j CT --notrack\n",
		kind(t, PEP_MARK_KIND_WIRELESS), t->kind);
	write_gate(t);
	fprintf(t->out,
		"# a full socket has given its own mark to the packet\n"
		"-A EDGEPEP-SOCKET -m mark --mark 0x%x/0x%x -g EDGEPEP-CLIENT\n",
		kind(t, PEP_MARK_KIND_WIRELESS), t->kind);
	fprintf(t->out,
		"# others are handshakes and TIME_WAIT%s\n"
		"-A EDGEPEP-SOCKET -m mark --mark 0x0/0x%x",
		t->set ? ", which must not eat a direct flow" : "", t->kind);
	if (t->set)
		fprintf(t->out, " -m set ! --match-set %s src,src,dst", t->set);
	fprintf(t->out, " -g EDGEPEP-CLIENT\n");
	fprintf(t->out,
		"# to the local socket, not tracked, past everybody else's raw rules\n"
		"-A EDGEPEP-CLIENT -j MARK --set-xmark 0x%x/0x%x\n"
		"-A EDGEPEP-CLIENT -j CT --notrack\n"
		"-A EDGEPEP-CLIENT -j ACCEPT\n",
		t->divert, t->divert);
	if (t->set)
		fprintf(t->out,
			"# this flow is not direct any more\n"
			"-A EDGEPEP-SPLIT -j SET --del-set %s src,src,dst\n",
			t->set);
	fprintf(t->out, "-A EDGEPEP-SPLIT -j CT --notrack\n"
			"-A EDGEPEP-SPLIT -j ACCEPT\n");
	end_table(t, RULES_TABLE_RAW, chains);
}

/*
 * Without ip sets TIME_WAIT itself has to clear the way: it answers the direct SYN with an ACK, the
 * client resets that, the reset ends TIME_WAIT, and the client's next SYN is free to pass.
 */
static void write_time_wait_syn(const struct text *t)
{
	static const enum pep_mark_kind direct[] = {PEP_MARK_KIND_NONE, PEP_MARK_KIND_BYPASS};

	fprintf(t->out, "# a direct SYN ends the TIME_WAIT socket in its way\n");
	for (size_t i = 0; i < 2; i++)
		fprintf(t->out,
			"-A EDGEPEP-DIVERT -p tcp -m tcp " BARE_SYN
			" -m mark --mark 0x%x/0x%x -m socket --transparent -g EDGEPEP-OURS\n",
			kind(t, direct[i]), t->kind);
}

/* Under IPv6 NAT the socket match fails for ICMP errors, and before Linux 6.15 for everything. */
static void write_translated(const struct text *t)
{
	uint32_t mask = pep_mark_kind_worker_mask(t->mask), wired = kind(t, PEP_MARK_KIND_WIRED);

	fprintf(t->out,
		"# packets that are translated, and errors about them: conntrack knows whose;"
		" a client's SYN has the same addresses\n");
	for (unsigned int i = 0; i < t->conf->n_wired_interfaces; i++)
		fprintf(t->out,
			"-A EDGEPEP-DIVERT -i %s -m connmark --mark 0x%x/0x%x"
			" -j CONNMARK --restore-mark --nfmask 0x%x --ctmask 0x%x\n"
			"-A EDGEPEP-DIVERT -i %s -m connmark --mark 0x%x/0x%x -g EDGEPEP-OURS\n",
			t->conf->wired_interfaces[i], wired, t->kind, mask, mask,
			t->conf->wired_interfaces[i], wired, t->kind);
	fprintf(t->out,
		"-I OUTPUT 1 -p tcp -m mark --mark 0x%x/0x%x -j EDGEPEP-REMEMBER\n"
		"-A EDGEPEP-REMEMBER -j CONNMARK --save-mark --nfmask 0x%x --ctmask 0x%x\n",
		wired, t->kind, mask, mask);
}

static void write_divert(const struct text *t)
{
	fprintf(t->out,
		"# decided in raw\n"
		"-A EDGEPEP-DIVERT -m mark --mark 0x%x/0x%x -j ACCEPT\n",
		t->divert, t->divert);
	fprintf(t->out, "# packets of our sockets; after conntrack, which knows the wired legs\n"
			"-A EDGEPEP-DIVERT -p tcp -m tcp ! " BARE_SYN
			" -m socket --transparent --restore-skmark -j EDGEPEP-SOCKET\n");
	fprintf(t->out,
		"# ICMP errors about packets that a wired leg sent (unreachable, path MTU)\n"
		"-A EDGEPEP-DIVERT -p %s -m socket --transparent --restore-skmark"
		" -m mark --mark 0x%x/0x%x -g EDGEPEP-OURS\n",
		t->icmp, kind(t, PEP_MARK_KIND_WIRED), t->kind);
	if (t->options->nat)
		write_translated(t);
	fprintf(t->out,
		"# a SYN to be split, to the listener of its worker\n"
		"-A EDGEPEP-DIVERT -p tcp -m mark --mark 0x%x/0x%x -j EDGEPEP-TPROXY\n",
		kind(t, PEP_MARK_KIND_SPLIT), t->kind);
	for (unsigned int w = 0; w < t->conf->workers; w++)
		fprintf(t->out,
			"-A EDGEPEP-TPROXY -p tcp -m mark --mark 0x%x/0x%x -j TPROXY --on-port %u"
			" --on-ip %s --tproxy-mark 0x%x/0x%x\n",
			pep_mark_make(t->mask, PEP_MARK_KIND_SPLIT, w),
			pep_mark_kind_worker_mask(t->mask), t->conf->steering.first_port + w,
			t->family == RULES_FAMILY_IPV4 ? "127.0.0.1" : "::1", t->divert, t->divert);
	if (t->set)
		fprintf(t->out,
			"# a SYN that goes on beside a TIME_WAIT socket of ours: a direct flow to "
			"remember\n"
			"-A EDGEPEP-DIVERT -p tcp -m tcp " BARE_SYN
			" -m socket --transparent -j SET --add-set %s src,src,dst --exist"
			" --timeout %u\n",
			t->set, DIRECT_TIMEOUT_S);
	else
		write_time_wait_syn(t);
}

static void write_mangle_sockets(const struct text *t)
{
	fprintf(t->out,
		"# a full socket has given its own mark to the packet\n"
		"-A EDGEPEP-SOCKET -m mark --mark 0x%x/0x%x -g EDGEPEP-OURS\n"
		"-A EDGEPEP-SOCKET -m mark --mark 0x%x/0x%x -g EDGEPEP-OURS\n",
		kind(t, PEP_MARK_KIND_WIRED), t->kind, kind(t, PEP_MARK_KIND_WIRELESS), t->kind);
	if (t->set) {
		fprintf(t->out,
			"# a SYN-ACK is never for TIME_WAIT: it answers a direct SYN\n"
			"-A EDGEPEP-SOCKET -p tcp -m tcp " SYN_ACK
			" -m mark --mark 0x0/0x%x -j SET --add-set %s dst,dst,src --exist"
			" --timeout %u\n",
			t->kind, t->set, DIRECT_TIMEOUT_S);
		fprintf(t->out,
			"# late packets for TIME_WAIT, if no direct flow has taken the addresses "
			"over\n"
			"-A EDGEPEP-SOCKET -m mark --mark 0x0/0x%x -m set ! --match-set %s "
			"dst,dst,src"
			" -m set ! --match-set %s src,src,dst -g EDGEPEP-OURS\n",
			t->kind, t->set, t->set);
	}
	fprintf(t->out,
		"# to the local socket, past everybody else's mangle rules\n"
		"-A EDGEPEP-OURS -j MARK --set-xmark 0x%x/0x%x\n"
		"-A EDGEPEP-OURS -j ACCEPT\n",
		t->divert, t->divert);
}

static void write_mangle(const struct text *t)
{
	static const char *const usual[] = {"EDGEPEP-DIVERT", "EDGEPEP-SOCKET", "EDGEPEP-OURS",
					    "EDGEPEP-TPROXY", "EDGEPEP-ANSWER", NULL};
	static const char *const with_nat[] = {"EDGEPEP-DIVERT",
					       "EDGEPEP-SOCKET",
					       "EDGEPEP-OURS",
					       "EDGEPEP-TPROXY",
					       "EDGEPEP-ANSWER",
					       "EDGEPEP-REMEMBER",
					       NULL};
	const char *const *chains = t->options->nat ? with_nat : usual;
	const struct pep_conf *conf = t->conf;

	begin_table(t, RULES_TABLE_MANGLE, chains);
	fprintf(t->out, "# packets for our sockets can come from either side\n");
	jump_from(t, conf->wired_interfaces, conf->n_wired_interfaces, "PREROUTING", "",
		  "EDGEPEP-DIVERT");
	jump_from(t, conf->wireless_interfaces, conf->n_wireless_interfaces, "PREROUTING", "",
		  "EDGEPEP-DIVERT");
	write_divert(t);
	write_mangle_sockets(t);
	fprintf(t->out,
		"# a server's SYN-ACK with a DSCP is shown to the worker, which copies it to"
		" the wireless leg\n");
	jump_from(t, conf->wired_interfaces, conf->n_wired_interfaces, "INPUT",
		  " -p tcp -m tcp " SYN_ACK " -m dscp ! --dscp 0x00", "EDGEPEP-ANSWER");
	for (unsigned int w = 0; w < conf->workers; w++)
		fprintf(t->out,
			"-A EDGEPEP-ANSWER -m mark --mark 0x%x/0x%x -j NFQUEUE --queue-num %u"
			" --queue-bypass\n",
			pep_mark_make(t->mask, PEP_MARK_KIND_WIRED, w),
			pep_mark_kind_worker_mask(t->mask), conf->steering.first_queue + w);
	end_table(t, RULES_TABLE_MANGLE, chains);
}

static void write_filter(const struct text *t)
{
	static const char *const chains[] = {"EDGEPEP-FORWARD", "EDGEPEP-INPUT", "EDGEPEP-OUTPUT",
					     NULL};
	bool v4 = t->family == RULES_FAMILY_IPV4;

	begin_table(t, RULES_TABLE_FILTER, chains);
	fprintf(t->out, "# the gate's answers to a SYN: refused, unreachable\n");
	jump_from(t, t->conf->wireless_interfaces, t->conf->n_wireless_interfaces, "FORWARD",
		  " -p tcp -m tcp " BARE_SYN, "EDGEPEP-FORWARD");
	fprintf(t->out,
		"-A EDGEPEP-FORWARD -p tcp -m mark --mark 0x%x/0x%x -j REJECT --reject-with "
		"tcp-reset\n"
		"-A EDGEPEP-FORWARD -m mark --mark 0x%x/0x%x -j REJECT --reject-with %s\n",
		kind(t, PEP_MARK_KIND_REFUSE), t->kind, kind(t, PEP_MARK_KIND_UNREACHABLE), t->kind,
		v4 ? "icmp-host-unreachable" : "icmp6-addr-unreachable");
	fprintf(t->out,
		"# packets for our sockets pass the host's own firewall\n"
		"-I INPUT 1 -m mark --mark 0x%x/0x%x -j EDGEPEP-INPUT\n"
		"-A EDGEPEP-INPUT -j ACCEPT\n",
		t->divert, t->divert);
	fprintf(t->out,
		"# and so do our answers to clients; wired legs are new connections of the host, "
		"left"
		" to it\n"
		"-I OUTPUT 1 -m mark --mark 0x%x/0x%x -j EDGEPEP-OUTPUT\n"
		"-A EDGEPEP-OUTPUT -j ACCEPT\n",
		kind(t, PEP_MARK_KIND_WIRELESS), t->kind);
	end_table(t, RULES_TABLE_FILTER, chains);
}

void rules_text_up(FILE *out, const struct pep_conf *conf, enum rules_family family,
		   const struct rules_text_options *options)
{
	const struct text t = {
		.out = out,
		.conf = conf,
		.options = options,
		.family = family,
		.mask = conf->steering.mark_mask,
		.kind = pep_mark_kind_mask(conf->steering.mark_mask),
		.divert = pep_mark_divert(conf->steering.mark_mask),
		.icmp = family == RULES_FAMILY_IPV4 ? "icmp" : "ipv6-icmp",
		.set = options->sets ? rules_set_name(family) : NULL,
	};

	/* The gate comes last, so that a SYN never meets half of the rules. */
	write_filter(&t);
	write_mangle(&t);
	write_raw(&t);
}

void rules_text_down(FILE *out, const struct rules_save *save)
{
	for (int table = 0; table < RULES_TABLE_COUNT_; table++) {
		bool begun = false;

		for (int pass = 0; pass < 3; pass++) {
			static const char *const verbs[] = {"-D", "-F", "-X"};
			const struct rules_save_line *lines = pass ? save->chains : save->jumps;
			size_t n = pass ? save->n_chains : save->n_jumps;

			for (size_t i = 0; i < n; i++) {
				if ((int)lines[i].table != table)
					continue;
				if (!begun)
					fprintf(out, "*%s\n",
						rules_table_name((enum rules_table)table));
				begun = true;
				fprintf(out, "%s %s\n", verbs[pass], lines[i].text);
			}
		}
		if (begun)
			fprintf(out, "COMMIT\n");
	}
}
