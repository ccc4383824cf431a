/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_CONF_H
#define PEP_BASE_CONF_H

/*
 * The configuration of every edgepep program: /etc/edgepep/edgepep.conf and the drop-ins beside it.
 *
 * The schema table in conf_schema.c is the only place where a key exists; the parser, the defaults,
 * --dump-config and the manual page test are made from it.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PEP_CONF_MAX_INTERFACES 16
#define PEP_CONF_MAX_WORKERS    64
#define PEP_CONF_MAX_CLASSES    32
#define PEP_CONF_MAX_PREFIXES   64
#define PEP_CONF_MAX_PORTS      64
#define PEP_CONF_NAME_SIZE      16 /* interface, congestion control and class names, with NUL */

/** The two sides of the split. A leg's role follows the interface, not who connected. */
enum pep_segment {
	PEP_SEGMENT_WIRELESS, /* towards the user equipment */
	PEP_SEGMENT_WIRED,    /* towards the server */
	PEP_SEGMENT_COUNT_,
};

enum pep_accept {
	PEP_ACCEPT_VERIFIED, /* answer the client only after the server answered us */
	PEP_ACCEPT_EARLY,    /* answer the client at once, connect in parallel */
};

enum pep_source {
	PEP_SOURCE_CLIENT,  /* the wired leg keeps the client's address and port */
	PEP_SOURCE_GATEWAY, /* the wired leg uses the gateway's own address */
};

/** What happens to a new flow that a limit turns away. */
enum pep_overload {
	PEP_OVERLOAD_BYPASS, /* it goes end to end */
	PEP_OVERLOAD_REFUSE, /* the client gets a reset */
};

/** What happens to new flows while no daemon answers the gate. */
enum pep_fail {
	PEP_FAIL_OPEN,   /* they go end to end */
	PEP_FAIL_CLOSED, /* they are dropped */
};

/** An address prefix; IPv4 is kept as v4-mapped IPv6, so that /24 is 120 bits here. */
struct pep_prefix {
	struct in6_addr addr;
	uint8_t bits; /* 0..128 */
};

struct pep_port_range {
	uint16_t first, last; /* inclusive */
};

/** Matches nothing when all three lists are empty; an empty list beside a full one matches all. */
struct pep_match {
	struct pep_prefix clients[PEP_CONF_MAX_PREFIXES];
	struct pep_prefix servers[PEP_CONF_MAX_PREFIXES];
	struct pep_port_range ports[PEP_CONF_MAX_PORTS]; /* the server's port */
	unsigned int n_clients, n_servers, n_ports;
};

/** How sockets of one leg are set up. */
struct pep_leg_conf {
	char congestion_control[PEP_CONF_NAME_SIZE]; /* "" leaves the system's default */
	uint32_t notsent_lowat_bytes;                /* TCP_NOTSENT_LOWAT; 0 leaves it off */
	uint32_t user_timeout_ms;                    /* TCP_USER_TIMEOUT; 0 leaves the kernel's */
	uint32_t keepalive_idle_s;                   /* 0: no keepalive */
	uint32_t keepalive_interval_s;
	uint32_t keepalive_count;
	uint32_t mss_bytes; /* TCP_MAXSEG; 0 leaves it alone */
};

/** A policy class: flows that match get these settings in place of the general ones. */
struct pep_class_conf {
	char name[PEP_CONF_NAME_SIZE];
	struct pep_match match;
	bool bypass; /* never split */
	enum pep_accept accept;
	struct pep_leg_conf leg[PEP_SEGMENT_COUNT_];
};

struct pep_conf {
	char wireless_interfaces[PEP_CONF_MAX_INTERFACES][PEP_CONF_NAME_SIZE];
	char wired_interfaces[PEP_CONF_MAX_INTERFACES][PEP_CONF_NAME_SIZE];
	unsigned int n_wireless_interfaces, n_wired_interfaces;

	enum pep_accept accept;
	enum pep_source source;
	enum pep_overload overload;
	enum pep_fail fail;

	unsigned int workers;          /* 1..PEP_CONF_MAX_WORKERS; "auto" is resolved at load */
	uint32_t max_flows;            /* all workers together; 0 in the file: from RLIMIT_NOFILE */
	uint32_t max_flows_per_client; /* 0: no limit */
	uint32_t max_pending; /* SYNs being verified or waiting to be accepted, per worker */

	uint32_t connect_timeout_ms;
	uint32_t half_close_timeout_ms; /* inactivity of a half-closed flow */
	uint32_t idle_timeout_ms;       /* inactivity of an open flow; 0: keepalive alone decides */

	char user[32];    /* whom edgepepd becomes when started as root */
	char group[32];   /* group of the control socket */
	char run_dir[80]; /* control.sock and stats live here */
	int log_level;    /* enum pep_log_level */

	struct pep_relay_conf {
		uint64_t memory_bytes;     /* cap on bytes held by all relays */
		uint32_t pipe_bytes;       /* size asked for a pipe */
		uint32_t buffer_min_bytes; /* bounds of the per-direction target */
		uint32_t buffer_max_bytes;
		uint32_t buffer_gain_percent; /* target = gain x wireless rate x wired RTT */
		bool splice;                  /* off: copy path only */
	} relay;

	struct pep_leg_conf leg[PEP_SEGMENT_COUNT_];

	struct pep_match bypass;                             /* never split */
	struct pep_class_conf classes[PEP_CONF_MAX_CLASSES]; /* the first match wins */
	unsigned int n_classes;

	struct pep_steering_conf {
		uint32_t mark_mask;     /* contiguous, at least PEP_MARK_BITS bits */
		uint32_t table;         /* routing table of the local route */
		uint32_t rule_priority; /* of the ip rule */
		uint16_t first_queue;   /* NFQUEUE of worker 0; workers follow */
		uint16_t first_port;    /* TPROXY port of worker 0; workers follow */
	} steering;

	struct pep_monitor_conf {
		char listen[64]; /* address:port, [v6]:port or unix:/path */
	} monitor;

	/* Parameters of the BPF congestion controls, "name.key" -> value, in file order. */
	struct pep_cca_param {
		char cca[PEP_CONF_NAME_SIZE];
		char key[32];
		char value[32];
	} cca_params[64];
	unsigned int n_cca_params;
};

/**
 * Reads @path and the *.conf files of the folder @path.d (name order; later values win), over the
 * defaults.
 *
 * Every message, "FILE:LINE: what is wrong, what was expected[, did you mean ...]", goes to @errors
 * (one line each). Returns 0 and stores a new configuration in @ret (free with pep_conf_free), or
 * -ENOENT/-EACCES when the file cannot be read and -EINVAL when it is wrong; @ret is untouched
 * then.
 * @errors may be NULL. Any thread; one at a time inside.
 */
int pep_conf_load(const char *path, FILE *errors, struct pep_conf **ret);

/** Room for messages about a file: more than that is cut. */
#define PEP_CONF_ERRORS_SIZE 4096

/**
 * The same in a child process, so that neither a lack of memory in the parser's library nor a file
 * that never comes does any harm; with what edgepepd requires (below) when @for_daemon. @errors
 * gets the messages, cut to @size, when the result is not 0; -ENOMEM and -ETIMEDOUT are possible
 * too. One thread at a time.
 */
int pep_conf_load_apart(const char *path, bool for_daemon, char *errors, size_t size,
			struct pep_conf **ret);

/**
 * As pep_conf_load for @length bytes of @text, without drop-ins; @name stands for the file in
 * messages and must outlive the call. Safe for any bytes.
 */
int pep_conf_parse(const char *name, const char *text, size_t length, FILE *errors,
		   struct pep_conf **ret);

/**
 * Whether both sides have an interface, as edgepepd and `edgepepctl rules` need. @path names the
 * file in messages to @errors. Returns 0 or -EINVAL.
 */
int pep_conf_require_interfaces(const struct pep_conf *conf, const char *path, FILE *errors);

/**
 * Whether the hard limit of file descriptors (RLIMIT_NOFILE) suffices for max-flows; for edgepepd,
 * which should also raise its soft limit to the hard one. Not part of pep_conf_load because other
 * programs read the same file under limits of their own. Returns 0 or -EINVAL.
 */
int pep_conf_require_descriptors(const struct pep_conf *conf, const char *path, FILE *errors);

/** The defaults alone, as an empty file would give. Returns 0 or -ENOMEM. */
int pep_conf_new(struct pep_conf **ret);

/** NULL is a no-op. */
void pep_conf_free(struct pep_conf *conf);

/** Writes @conf to @out in the file's own syntax; reading it back gives an equal configuration. */
void pep_conf_dump(const struct pep_conf *conf, FILE *out);

/** Called for each key that differs, with both values as text; @restart: a running daemon keeps the
 *  old one until it is restarted. */
typedef void pep_conf_diff_fn(const char *name, const char *before, const char *after, bool restart,
			      void *user);

/** Compares two configurations. Returns 0 or -ENOMEM. */
int pep_conf_diff(const struct pep_conf *before, const struct pep_conf *after, pep_conf_diff_fn *fn,
		  void *user);

/** One key of the schema, for documentation and its test. */
struct pep_conf_key {
	const char *section; /* "", "relay", "leg wireless", "class", ... */
	const char *key;
	const char *type;  /* "size", "time", "list of interfaces", ... */
	const char *value; /* default, as it would be written; or "inherited" */
	const char *help;
};

/** Walks the schema: returns key number @i, or NULL past the last. */
const struct pep_conf_key *pep_conf_key_get(size_t i);

/** Whether @addr (IPv4 as v4-mapped) lies in @prefix. */
bool pep_prefix_contains(const struct pep_prefix *prefix, const struct in6_addr *addr);

/** Whether a flow from @client to @server:@port (host order) is meant by @match. */
bool pep_match_flow(const struct pep_match *match, const struct in6_addr *client,
		    const struct in6_addr *server, uint16_t port);

/**
 * The first class that matches, or NULL. *@ret_index gets its number (0..n_classes-1), or
 * n_classes, which is the place of the class "default" wherever classes are counted.
 */
const struct pep_class_conf *pep_conf_classify(const struct pep_conf *conf,
					       const struct in6_addr *client,
					       const struct in6_addr *server, uint16_t port,
					       unsigned int *ret_index);

const char *pep_segment_name(enum pep_segment segment); /* "wireless", "wired" */

#endif
