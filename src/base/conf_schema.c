/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The only place where a configuration key exists. Order is the order of --dump-config. */
#include "base/conf_internal.h"

#include <string.h>

#define SIZEOF(type, member) sizeof(((type *)0)->member)

#define KiB    1024ull
#define MiB    (1024 * KiB)
#define GiB    (1024 * MiB)
#define MINUTE 60000ull
#define HOUR   (60 * MINUTE)

static const char *const accept_words[] = {"verified", "early", NULL};
static const char *const source_words[] = {"client", "gateway", NULL};
static const char *const overload_words[] = {"bypass", "refuse", NULL};
static const char *const fail_words[] = {"open", "closed", NULL};
static const char *const switch_words[] = {"off", "on", NULL};
static const char *const level_words[] = {"error", "warning", "notice", "info", "debug", NULL};

/* clang-format off */

#define FIELD(struct_name, member) \
	.offset = offsetof(struct struct_name, member), .size = SIZEOF(struct struct_name, member)

#define LIST(struct_name, member, counter) \
	.offset = offsetof(struct struct_name, member), \
	.size = SIZEOF(struct struct_name, member[0]), \
	.count_offset = offsetof(struct struct_name, counter), \
	.capacity = SIZEOF(struct struct_name, member) / SIZEOF(struct struct_name, member[0])

#define MATCH_KEYS(section, struct_name, member) \
	{ { section, "clients", "list of prefixes", "{}", \
	    "client addresses; an empty list beside a full one means any" }, \
	  .kind = CONF_KIND_PREFIXES, LIST(struct_name, member.clients, member.n_clients) }, \
	{ { section, "servers", "list of prefixes", "{}", \
	    "server addresses; an empty list beside a full one means any" }, \
	  .kind = CONF_KIND_PREFIXES, LIST(struct_name, member.servers, member.n_servers) }, \
	{ { section, "ports", "list of ports", "{}", \
	    "server ports, single or ranges; an empty list beside a full one means any" }, \
	  .kind = CONF_KIND_PORTS, LIST(struct_name, member.ports, member.n_ports) }

/*
 * The settings of a leg, three times: as "leg wireless" and "leg wired", and with a prefix in a
 * class. @leg is the index into leg[]; the last arguments are the defaults.
 */
#define LEG_KEY(section, name, type, value, help, kind_, struct_name, leg_, member, \
		inherit_, min_, max_, word_) \
	{ { section, name, type, value, help }, .kind = kind_, \
	  FIELD(struct_name, leg[leg_].member), \
	  .inherit = (inherit_) ? offsetof(struct pep_conf, leg[leg_].member) : 0, \
	  .min = min_, .max = max_, .word = word_ }

#define LEG_KEYS(section, prefix, struct_name, leg_, inherit_, cca, lowat, timeout, idle, interval, \
		 count, mss) \
	LEG_KEY(section, prefix "congestion-control", "name or system", cca, \
		"congestion control of the leg's sockets, as the kernel names it; system leaves the host's default", \
		CONF_KIND_CCA, struct_name, leg_, congestion_control, inherit_, 0, 0, "system"), \
	LEG_KEY(section, prefix "notsent-lowat", "size or off", lowat, \
		"most bytes waiting unsent in the socket (TCP_NOTSENT_LOWAT)", \
		CONF_KIND_SIZE, struct_name, leg_, notsent_lowat_bytes, inherit_, 4 * KiB, GiB, "off"), \
	LEG_KEY(section, prefix "user-timeout", "time or off", timeout, \
		"how long sent data may stay unacknowledged before the peer counts as gone (TCP_USER_TIMEOUT)", \
		CONF_KIND_TIME, struct_name, leg_, user_timeout_ms, inherit_, 1000, 24 * HOUR, "off"), \
	LEG_KEY(section, prefix "keepalive-idle", "time or off", idle, \
		"silence before the first keepalive probe", \
		CONF_KIND_SECONDS, struct_name, leg_, keepalive_idle_s, inherit_, 1, 32767, "off"), \
	LEG_KEY(section, prefix "keepalive-interval", "time", interval, \
		"time between keepalive probes", \
		CONF_KIND_SECONDS, struct_name, leg_, keepalive_interval_s, inherit_, 1, 32767, NULL), \
	LEG_KEY(section, prefix "keepalive-count", "number", count, \
		"unanswered probes after which the peer counts as gone", \
		CONF_KIND_COUNT, struct_name, leg_, keepalive_count, inherit_, 1, 127, NULL), \
	LEG_KEY(section, prefix "mss", "size or auto", mss, \
		"largest segment sent and announced (TCP_MAXSEG); auto leaves it to the path", \
		CONF_KIND_SIZE, struct_name, leg_, mss_bytes, inherit_, 88, 32767, "auto")

#define INHERITED "inherited", "inherited", "inherited", "inherited", "inherited", "inherited", \
	"inherited"

/* LEG_KEYS takes its defaults one by one: this expands INHERITED into seven of them first. */
#define LEG_KEYS_(...) LEG_KEYS(__VA_ARGS__)

const struct conf_key conf_keys[] = {
	{ { "", "wireless-interfaces", "list of interfaces", "{}",
	    "interfaces towards the user equipment; their TCP connections are split" },
	  .kind = CONF_KIND_INTERFACES, .restart = true,
	  LIST(pep_conf, wireless_interfaces, n_wireless_interfaces) },
	{ { "", "wired-interfaces", "list of interfaces", "{}",
	    "interfaces towards the servers" },
	  .kind = CONF_KIND_INTERFACES, .restart = true,
	  LIST(pep_conf, wired_interfaces, n_wired_interfaces) },
	{ { "", "accept", "verified|early", "verified",
	    "answer a client after the server answered (verified) or at once (early)" },
	  .kind = CONF_KIND_ENUM, FIELD(pep_conf, accept), .choices = accept_words },
	{ { "", "source", "client|gateway", "client",
	    "source address of the wired leg: the client's own address and port, or the gateway's" },
	  .kind = CONF_KIND_ENUM, FIELD(pep_conf, source), .choices = source_words },
	{ { "", "overload", "bypass|refuse", "bypass",
	    "what a flow over a limit gets: it goes end to end, or it is refused" },
	  .kind = CONF_KIND_ENUM, FIELD(pep_conf, overload), .choices = overload_words },
	{ { "", "fail", "open|closed", "open",
	    "new flows while no daemon runs: end to end (open) or dropped (closed)" },
	  .kind = CONF_KIND_ENUM, .restart = true, FIELD(pep_conf, fail), .choices = fail_words },
	{ { "", "workers", "number or auto", "auto",
	    "worker threads; auto is one per usable CPU" },
	  .kind = CONF_KIND_COUNT, .restart = true, FIELD(pep_conf, workers),
	  .min = 1, .max = PEP_CONF_MAX_WORKERS, .word = "auto" },
	{ { "", "max-flows", "number or auto", "auto",
	    "most flows split at once; auto follows the limit of file descriptors" },
	  .kind = CONF_KIND_COUNT, .restart = true, FIELD(pep_conf, max_flows),
	  .min = 1, .max = CONF_MAX_FLOWS, .word = "auto" },
	{ { "", "max-flows-per-client", "number or off", "off",
	    "most flows of one client address" },
	  .kind = CONF_KIND_COUNT, FIELD(pep_conf, max_flows_per_client),
	  .min = 1, .max = CONF_MAX_FLOWS, .word = "off" },
	{ { "", "max-pending", "number", "1024",
	    "most connection attempts of a worker that wait for a server or for the client" },
	  .kind = CONF_KIND_COUNT, .restart = true, FIELD(pep_conf, max_pending),
	  .min = 1, .max = 65535 },
	{ { "", "connect-timeout", "time", "30s",
	    "how long a server may take to answer" },
	  .kind = CONF_KIND_TIME, FIELD(pep_conf, connect_timeout_ms), .min = 100, .max = 10 * MINUTE },
	{ { "", "half-close-timeout", "time", "5min",
	    "how long a half-closed flow may be silent" },
	  .kind = CONF_KIND_TIME, FIELD(pep_conf, half_close_timeout_ms), .min = 1000, .max = 24 * HOUR },
	{ { "", "idle-timeout", "time or off", "off",
	    "how long an open flow may be silent; off leaves it to keepalive" },
	  .kind = CONF_KIND_TIME, FIELD(pep_conf, idle_timeout_ms),
	  .min = 1000, .max = 168 * HOUR, .word = "off" },
	{ { "", "user", "user name", "edgepep", "whom edgepepd becomes when started as root" },
	  .kind = CONF_KIND_NAME, .restart = true, FIELD(pep_conf, user) },
	{ { "", "group", "group name", "edgepep", "group that may use the control socket" },
	  .kind = CONF_KIND_NAME, .restart = true, FIELD(pep_conf, group) },
	{ { "", "run-dir", "folder", "/run/edgepep", "where the control socket and the stats live" },
	  .kind = CONF_KIND_PATH, .restart = true, FIELD(pep_conf, run_dir) },
	{ { "", "log-level", "error|warning|notice|info|debug", "notice",
	    "the least important messages that are printed" },
	  .kind = CONF_KIND_ENUM, FIELD(pep_conf, log_level), .choices = level_words },

	{ { "relay", "memory", "size", "256MiB", "most bytes held between legs by all flows together" },
	  .kind = CONF_KIND_SIZE, FIELD(pep_conf, relay.memory_bytes),
	  .min = MiB, .max = 1024 * GiB },
	{ { "relay", "pipe-size", "size", "256KiB", "size asked for the pipes that carry the bytes" },
	  .kind = CONF_KIND_SIZE, .restart = true, FIELD(pep_conf, relay.pipe_bytes),
	  .min = 4 * KiB, .max = 16 * MiB },
	{ { "relay", "buffer-min", "size", "64KiB", "least target of bytes held per flow and direction" },
	  .kind = CONF_KIND_SIZE, FIELD(pep_conf, relay.buffer_min_bytes), .min = 4 * KiB, .max = GiB },
	{ { "relay", "buffer-max", "size", "32MiB", "largest target of bytes held per flow and direction" },
	  .kind = CONF_KIND_SIZE, FIELD(pep_conf, relay.buffer_max_bytes), .min = 4 * KiB, .max = GiB },
	{ { "relay", "buffer-gain", "percent", "110%",
	    "the target as a part of wireless rate times wired round-trip time" },
	  .kind = CONF_KIND_PERCENT, FIELD(pep_conf, relay.buffer_gain_percent), .min = 10, .max = 1000 },
	{ { "relay", "splice", "on|off", "on",
	    "move bytes inside the kernel; off copies them through the daemon" },
	  .kind = CONF_KIND_ENUM, FIELD(pep_conf, relay.splice), .choices = switch_words },

	LEG_KEYS("leg wireless", "", pep_conf, PEP_SEGMENT_WIRELESS, false,
		 "pep_bbr_a", "128KiB", "60s", "60s", "10s", "6", "auto"),
	LEG_KEYS("leg wired", "", pep_conf, PEP_SEGMENT_WIRED, false,
		 "cubic", "off", "off", "5min", "30s", "6", "auto"),

	MATCH_KEYS("bypass", pep_conf, bypass),

	{ { "steering", "mark-mask", "hexadecimal mask", "0x07ff0000",
	    "bits of the firewall mark that are ours; contiguous" },
	  .kind = CONF_KIND_MASK, .restart = true, FIELD(pep_conf, steering.mark_mask) },
	{ { "steering", "table", "number", "7357", "routing table of the local route" },
	  .kind = CONF_KIND_COUNT, .restart = true, FIELD(pep_conf, steering.table),
	  .min = 1, .max = UINT32_MAX },
	{ { "steering", "rule-priority", "number", "7357", "priority of the routing rule" },
	  .kind = CONF_KIND_COUNT, .restart = true, FIELD(pep_conf, steering.rule_priority),
	  .min = 1, .max = 32765 },
	{ { "steering", "first-queue", "number", "7000", "netfilter queue of the first worker" },
	  .kind = CONF_KIND_COUNT, .restart = true, FIELD(pep_conf, steering.first_queue),
	  .min = 0, .max = 65535 },
	{ { "steering", "first-port", "number", "17000", "TCP port of the first worker's listeners" },
	  .kind = CONF_KIND_COUNT, .restart = true, FIELD(pep_conf, steering.first_port),
	  .min = 1, .max = 65535 },

	{ { "monitor", "listen", "address:port", "127.0.0.1:9955",
	    "where edgepep-mon listens: address:port, [address]:port or unix:/path" },
	  .kind = CONF_KIND_LISTEN, .restart = true, FIELD(pep_conf, monitor.listen) },

	{ { "cca", "param", "list of key=value", "{}",
	    "settings of the congestion control that the section names" },
	  .kind = CONF_KIND_PARAMS, LIST(pep_conf, cca_params, n_cca_params) },

	MATCH_KEYS("class", pep_class_conf, match),
	{ { "class", "bypass", "on|off", "off", "on: flows of this class go end to end" },
	  .kind = CONF_KIND_ENUM, FIELD(pep_class_conf, bypass), .choices = switch_words },
	{ { "class", "accept", "verified|early", "inherited", "as the general key" },
	  .kind = CONF_KIND_ENUM, FIELD(pep_class_conf, accept), .choices = accept_words,
	  .inherit = offsetof(struct pep_conf, accept) },
	LEG_KEYS_("class", "wireless-", pep_class_conf, PEP_SEGMENT_WIRELESS, true, INHERITED),
	LEG_KEYS_("class", "wired-", pep_class_conf, PEP_SEGMENT_WIRED, true, INHERITED),
};
/* clang-format on */

const size_t conf_n_keys = sizeof(conf_keys) / sizeof(conf_keys[0]);

const struct conf_key *conf_key_find(const char *section, const char *key)
{
	for (size_t i = 0; i < conf_n_keys; i++) {
		if (strcmp(conf_keys[i].doc.section, section) == 0 &&
		    strcmp(conf_keys[i].doc.key, key) == 0)
			return &conf_keys[i];
	}
	return NULL;
}

const struct pep_conf_key *pep_conf_key_get(size_t i)
{
	return i < conf_n_keys ? &conf_keys[i].doc : NULL;
}
