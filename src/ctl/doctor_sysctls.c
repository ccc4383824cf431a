/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel settings that others set for good reasons, and that break or slow a transparent proxy. */
#include <string.h>

#include "ctl/doctor.h"

#define PIPE_PAGES 16384 /* 256 pipes of 256 KiB */

/* The kernel uses the greater one of "all" and the interface's own. */
static long interface_sysctl(const char *interface, const char *name)
{
	char path[128];
	long all, own;

	(void)snprintf(path, sizeof(path), "net.ipv4.conf.all.%s", name);
	all = doctor_sysctl(path);
	(void)snprintf(path, sizeof(path), "net.ipv4.conf.%s", interface);
	for (char *dot = strchr(path + 14, '.'); dot; dot = strchr(dot, '.'))
		*dot = '/';
	(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), ".%s", name);
	own = doctor_sysctl(path);
	return own > all ? own : all;
}

static void check_interface(struct doctor *d, const char *name)
{
	char fix[192];

	if (interface_sysctl(name, "rp_filter") == 1) {
		(void)snprintf(
			fix, sizeof(fix),
			"where routes are asymmetric: sysctl -w net.ipv4.conf.%s.rp_filter=2, "
			"and 'all' not 1",
			name);
		doctor_say(
			d, DOCTOR_NOTE, "rp_filter", fix,
			"%s drops what would not go back through it (rp_filter 1); the rules cope",
			name);
	}
	if (interface_sysctl(name, "src_valid_mark") == 1)
		doctor_say(d, DOCTOR_NOTE, "src_valid_mark", "",
			   "%s validates sources with the mark (a VPN set src_valid_mark); our ip "
			   "rules name their interface and stay out of that",
			   name);
}

static void check_forwarding(struct doctor *d)
{
	if (doctor_sysctl("net.ipv4.ip_forward") == 1)
		doctor_say(d, DOCTOR_OK, "forwarding", "", "IPv4 is forwarded");
	else
		doctor_say(d, DOCTOR_ERROR, "forwarding", "sysctl -w net.ipv4.ip_forward=1",
			   "this host forwards no IPv4");
	if (!d->families[RULES_FAMILY_IPV6])
		doctor_say(d, DOCTOR_NOTE, "forwarding", "",
			   "IPv6 is disabled on the wireless interfaces: only IPv4 is steered");
	else if (doctor_sysctl("net.ipv6.conf.all.forwarding") != 1)
		doctor_say(d, DOCTOR_WARNING, "forwarding",
			   "sysctl -w net.ipv6.conf.all.forwarding=1",
			   "this host forwards no IPv6");
}

static void check_limits(struct doctor *d)
{
	long backlog = doctor_sysctl("net.core.somaxconn");
	long pages = doctor_sysctl("fs.pipe-user-pages-soft");
	long tracked = doctor_sysctl("net.netfilter.nf_conntrack_count");
	long max = doctor_sysctl("net.netfilter.nf_conntrack_max");
	char fix[96];

	if (backlog >= 0 && backlog < (long)d->conf->max_pending) {
		(void)snprintf(fix, sizeof(fix), "sysctl -w net.core.somaxconn=%u",
			       d->conf->max_pending);
		doctor_say(d, DOCTOR_WARNING, "somaxconn", fix,
			   "net.core.somaxconn is %ld, below max-pending %u: bursts of new "
			   "connections are dropped",
			   backlog, d->conf->max_pending);
	}
	if (d->conf->relay.splice && pages > 0 && pages < PIPE_PAGES) {
		(void)snprintf(fix, sizeof(fix), "sysctl -w fs.pipe-user-pages-soft=%d",
			       PIPE_PAGES);
		doctor_say(
			d, DOCTOR_WARNING, "pipes", fix,
			"fs.pipe-user-pages-soft is %ld: the daemon's pipes shrink, and bytes are "
			"copied",
			pages);
	}
	if (tracked >= 0 && max > 0 && tracked > max - max / 10) {
		(void)snprintf(fix, sizeof(fix), "sysctl -w net.netfilter.nf_conntrack_max=%ld",
			       2 * max);
		doctor_say(d, DOCTOR_WARNING, "conntrack", fix,
			   "%ld of %ld connections are tracked: new ones will be dropped", tracked,
			   max);
	}
	if (doctor_sysctl("net.ipv4.tcp_max_tw_buckets") == 0)
		doctor_say(d, DOCTOR_WARNING, "time_wait",
			   "sysctl -w net.ipv4.tcp_max_tw_buckets=65536",
			   "net.ipv4.tcp_max_tw_buckets is 0: a FIN whose answer was lost is not "
			   "answered again");
}

void doctor_sysctls(struct doctor *d)
{
	const struct pep_conf *conf = d->conf;

	check_forwarding(d);
	for (unsigned int i = 0; i < conf->n_wireless_interfaces; i++)
		check_interface(d, conf->wireless_interfaces[i]);
	for (unsigned int i = 0; i < conf->n_wired_interfaces; i++)
		check_interface(d, conf->wired_interfaces[i]);
	check_limits(d);
}
