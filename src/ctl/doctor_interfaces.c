/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interfaces: there, up, no bridge ports, offload. */
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/doctor.h"

/* One value of ethtool's; -1: the driver has none. */
static int ethtool_get(int fd, const char *name, uint32_t command)
{
	struct ethtool_value value = {.cmd = command};
	struct ifreq request = {0};

	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	request.ifr_data = (void *)&value;
	return ioctl(fd, SIOCETHTOOL, &request) < 0 ? -1 : (int)value.data;
}

static void check_offload(struct doctor *d, int fd, const char *name)
{
	int flags = ethtool_get(fd, name, ETHTOOL_GFLAGS);
	char fix[64];

	if (flags >= 0 && (flags & ETH_FLAG_LRO)) {
		(void)snprintf(fix, sizeof(fix), "ethtool -K %s lro off", name);
		doctor_say(d, DOCTOR_WARNING, "offload", fix,
			   "%s merges packets in hardware (LRO), which forwarding cannot undo",
			   name);
	}
	if (ethtool_get(fd, name, ETHTOOL_GGRO) == 0) {
		(void)snprintf(fix, sizeof(fix), "ethtool -K %s gro on", name);
		doctor_say(
			d, DOCTOR_NOTE, "offload", fix,
			"%s does not merge packets (GRO): each costs its own way through the rules",
			name);
	}
}

/* The rules see the bridge as the interface, never its ports. */
static bool check_bridge(struct doctor *d, const char *name)
{
	char path[128], target[256], fix[300];
	const char *bridge;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/sys/class/net/%s/brport/bridge", name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	bridge = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
	(void)snprintf(fix, sizeof(fix), "name '%s' in the configuration", bridge);
	doctor_say(d, DOCTOR_ERROR, "bridge", fix,
		   "%s is a port of bridge %s: its packets come from %s for the rules", name,
		   bridge, bridge);
	return true;
}

static void check_up(struct doctor *d, int fd, const char *key, const char *name)
{
	struct ifreq request = {0};
	char fix[64];

	if (if_nametoindex(name) == 0) {
		doctor_say(d, DOCTOR_ERROR, "interfaces", "create it, or correct the name",
			   "%s: there is no interface '%s' ('ip -brief link' lists them)", key,
			   name);
		return;
	}
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	(void)snprintf(fix, sizeof(fix), "ip link set %s up", name);
	if (ioctl(fd, SIOCGIFFLAGS, &request) < 0 || !(request.ifr_flags & IFF_UP))
		doctor_say(d, DOCTOR_ERROR, "interfaces", fix, "%s is down", name);
	else if (!check_bridge(d, name))
		doctor_say(d, DOCTOR_OK, "interfaces", "", "%s is there and up", name);
	check_offload(d, fd, name);
}

/* Bridges on this host, ours or another's. */
static bool has_bridge(void)
{
	DIR *dir = opendir("/sys/class/net");
	const struct dirent *entry;
	bool found = false;
	char path[300];

	while (dir && !found && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", entry->d_name);
		found = access(path, F_OK) == 0;
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

static void check_bridge_netfilter(struct doctor *d)
{
	static const char *const names[] = {"net.bridge.bridge-nf-call-iptables",
					    "net.bridge.bridge-nf-call-ip6tables"};

	for (size_t i = 0; i < 2; i++) {
		char fix[192];

		if (doctor_sysctl(names[i]) != 1 || !has_bridge())
			continue;
		(void)snprintf(
			fix, sizeof(fix),
			"sysctl -w %s=0; Docker and Kubernetes want 1: keep their bridges out "
			"of the configuration then",
			names[i]);
		doctor_say(
			d, DOCTOR_WARNING, "bridge", fix,
			"%s is 1: frames that a bridge only passes along meet the rules too, and "
			"TPROXY loses them",
			names[i]);
	}
}

void doctor_interfaces(struct doctor *d)
{
	const struct pep_conf *conf = d->conf;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned int i = 0; i < conf->n_wireless_interfaces; i++)
		check_up(d, fd, "wireless-interfaces", conf->wireless_interfaces[i]);
	for (unsigned int i = 0; i < conf->n_wired_interfaces; i++)
		check_up(d, fd, "wired-interfaces", conf->wired_interfaces[i]);
	if (fd >= 0)
		(void)close(fd);
	check_bridge_netfilter(d);
}
