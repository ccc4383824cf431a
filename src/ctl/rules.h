/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_RULES_H
#define PEP_CTL_RULES_H

/*
 * The steering rules: what is loaded (rules_text.c), what is there (rules_save.c), what has to be
 * put back (rules_state.c), and the parts outside of iptables (rules_route.c, rules_set.c,
 * rules_table.c). rules_apply.c joins them; rules.c is the sub-command.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/conf.h"

#define RULES_CHAIN_PREFIX "EDGEPEP-"
#define RULES_ERROR_SIZE   1024

enum rules_family {
	RULES_FAMILY_IPV4,
	RULES_FAMILY_IPV6,
	RULES_FAMILY_COUNT_,
};

enum rules_table {
	RULES_TABLE_RAW,
	RULES_TABLE_MANGLE,
	RULES_TABLE_FILTER,
	RULES_TABLE_COUNT_,
};

const char *rules_family_name(enum rules_family family); /* "ipv4", "ipv6" */
const char *rules_family_tool(enum rules_family family); /* "iptables", "ip6tables" */
const char *rules_table_name(enum rules_table table);    /* "raw", ... */
bool rules_table_parse(const char *name, enum rules_table *ret);

/** The set that remembers direct flows whose addresses a TIME_WAIT socket of ours still holds. */
const char *rules_set_name(enum rules_family family);

/* ---- what an iptables-save says about us ---------------------------------------------------- */

struct rules_save_line {
	enum rules_table table;
	char *text;
};

struct rules_save {
	bool present[RULES_TABLE_COUNT_]; /* the table exists */
	bool empty[RULES_TABLE_COUNT_];   /* no rule, no own chain, every policy ACCEPT */
	bool nat;                         /* the nat table has rules: conntrack is in use */
	struct rules_save_line *jumps;    /* rules of other chains into ours, without "-A " */
	size_t n_jumps;
	struct rules_save_line *chains; /* names of our chains */
	size_t n_chains;
};

/** Reads the text of an iptables-save. Returns 0 or -ENOMEM; release with rules_save_fini. */
int rules_save_parse(const char *text, struct rules_save *ret);
void rules_save_fini(struct rules_save *save);

/* ---- the rules as text ----------------------------------------------------------------------- */

struct rules_text_options {
	bool sets;    /* the kernel has ip sets, rules_set_name() exists */
	bool by_port; /* the kernel has xt_u32: a client's flows go to all workers */
	bool nat;     /* wired legs are translated, and -m socket does not see through it */
	const struct rules_save *old; /* what to replace; NULL: nothing is there */
};

/** Writes the input of "iptables-restore --noflush" that puts the rules of @conf in place. */
void rules_text_up(FILE *out, const struct pep_conf *conf, enum rules_family family,
		   const struct rules_text_options *options);

/** Writes the input that removes every trace of ours in @save; nothing when there is none. */
void rules_text_down(FILE *out, const struct rules_save *save);

/** What "rules print" shows: iptables-restore input per family, and the rest as shell commands. */
struct rules_print {
	char *commands;
	char *rules[RULES_FAMILY_COUNT_];
};

/** Returns 0 or -ENOMEM; release with rules_print_fini. */
int rules_print_make(const struct pep_conf *conf, const struct rules_text_options *options,
		     struct rules_print *ret);
void rules_print_write(const struct rules_print *print, FILE *out);
void rules_print_fini(struct rules_print *print);

/* ---- what must be put back --------------------------------------------------------------------
 */

#define RULES_MAX_ROUTE_RULES (2 * 2 * PEP_CONF_MAX_INTERFACES)

/** One ip rule of ours. */
struct rules_ip_rule {
	enum rules_family family;
	char iif[PEP_CONF_NAME_SIZE]; /* "": any */
	uint32_t mark;                /* value and mask at once */
	uint32_t table;
	uint32_t priority;
};

/** A sysctl that the rules need; the table of them is in rules_apply.c. */
struct rules_sysctl {
	const char *name; /* "net.ipv4.tcp_early_demux" */
	const char *value;
	const char *why;
};

extern const struct rules_sysctl rules_sysctls[]; /* the last has no name */
#define RULES_MAX_SYSCTLS 4

struct rules_state {
	bool created[RULES_FAMILY_COUNT_][RULES_TABLE_COUNT_]; /* tables that were not there */
	bool sets[RULES_FAMILY_COUNT_];                        /* sets that we made */
	uint32_t route_table[RULES_FAMILY_COUNT_];             /* local default route; 0: none */
	struct rules_ip_rule rules[RULES_MAX_ROUTE_RULES];
	size_t n_rules;
	char sysctl_old[RULES_MAX_SYSCTLS][16]; /* by rules_sysctls; "": untouched */
};

/**
 * Reads the state file in @run_dir. The folder belongs to the daemon's user, so the content is
 * checked as if a stranger had written it. Returns 0, -ENOENT when there is none, -EINVAL when it
 * is not one of ours.
 */
int rules_state_load(const char *run_dir, struct rules_state *ret);

/** Writes it, in one step. Makes the folder when it is missing. */
int rules_state_store(const char *run_dir, const struct rules_state *state);
void rules_state_remove(const char *run_dir);

/** Takes the lock against a second edgepepctl; returns a descriptor or a negative errno. */
int rules_state_lock(const char *run_dir);

/* ---- outside of iptables -----------------------------------------------------------------------
 */

/** The ip rules that @conf wants for @family, added behind *@n of @rules. */
void rules_route_wanted(const struct pep_conf *conf, enum rules_family family,
			struct rules_ip_rule *rules, size_t *n);

/** Both are safe to repeat; the reason of a failure is in @error. Return 0 or a negative errno. */
int rules_route_up(const struct rules_state *state, enum rules_family family,
		   char error[RULES_ERROR_SIZE]);
int rules_route_down(const struct rules_state *state, enum rules_family family,
		     char error[RULES_ERROR_SIZE]);

/**
 * Runs "ip" with @words ("ip" first, NULL last); @ret_json (may be NULL) gets what it printed.
 * Returns 0, or a negative errno with the reason in @error.
 */
int rules_ip(const char *const words[], json_t **ret_json, char error[RULES_ERROR_SIZE]);

/** Names in @what the first ip rule or route of @conf that is not there; "" when all are. */
int rules_route_missing(const struct pep_conf *conf, enum rules_family family, char *what,
			size_t size, char error[RULES_ERROR_SIZE]);

/** Whether routing table @table holds anything but our local route. */
int rules_route_table_foreign(enum rules_family family, uint32_t table, bool *ret,
			      char error[RULES_ERROR_SIZE]);

/** Makes the set; 0 also when it is there. -EOPNOTSUPP: the kernel has no ip sets. */
int rules_set_create(enum rules_family family);

/** Removes the set; 0 also when there is none. Waits a moment for rules that still name it. */
int rules_set_destroy(enum rules_family family);

/**
 * Removes an nftables table of the iptables-nft backend, as one transaction that fails with -EAGAIN
 * when anybody changed the rules after @generation. 0 also when there is none.
 */
int rules_table_generation(uint32_t *ret);
int rules_table_delete(enum rules_family family, enum rules_table table, uint32_t generation);

/** Reads or writes a sysctl by its dotted name; interface names may hold dots, written as '/'. */
int rules_sysctl_read(const char *name, char *value, size_t size);
int rules_sysctl_write(const char *name, const char *value);

/* ---- all together -------------------------------------------------------------------------------
 */

/** What was done, for --json and for people. */
struct rules_report {
	json_t *warnings; /* array of strings */
	bool families[RULES_FAMILY_COUNT_];
	bool sets;     /* in: ip sets may be used; out: they are */
	bool bad_conf; /* what @error says is to be mended in the configuration */
	char error[RULES_ERROR_SIZE];
};

/** Whether IPv6 is on for any wireless interface of @conf. */
bool rules_ipv6_usable(const struct pep_conf *conf);

/** Families that this host has; 0 or a negative errno with report->error. */
int rules_families(const struct pep_conf *conf, struct rules_report *report);

int rules_up(const struct pep_conf *conf, struct rules_report *report);

/** @conf may be NULL when the configuration cannot be read: the state file in @run_dir decides. */
int rules_down(const char *run_dir, const struct pep_conf *conf, struct rules_report *report);

#endif
