/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_DOCTOR_H
#define PEP_CTL_DOCTOR_H

/* What can keep edgepep from working on a host, looked for one by one, each with its cure. */

#include <jansson.h>

#include "ctl/rules.h"

enum doctor_severity {
	DOCTOR_OK,
	DOCTOR_NOTE,    /* worth knowing */
	DOCTOR_WARNING, /* works, but worse than it could, or not for everybody */
	DOCTOR_ERROR,   /* does not work */
	DOCTOR_SEVERITY_COUNT_,
};

struct doctor {
	const struct pep_conf *conf;
	bool families[RULES_FAMILY_COUNT_];
	json_t *status; /* the daemon's own; NULL: it does not answer */
	json_t *findings;
	enum doctor_severity worst;
};

/** Adds a finding of @check; @fix is "" where nothing needs to be done. */
void doctor_say(struct doctor *d, enum doctor_severity severity, const char *check, const char *fix,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/** A sysctl that is a number; -1 when there is none by that name. */
long doctor_sysctl(const char *name);

/** Whether the blank-separated words of @list have @word. */
bool doctor_has_word(const char *list, const char *word);

/* The checks; each says at least one thing. */
void doctor_kernel(struct doctor *d);     /* version, BTF, congestion controls */
void doctor_interfaces(struct doctor *d); /* there, up, bridges, offload */
void doctor_sysctls(struct doctor *d);    /* forwarding, rp_filter, limits ... */
void doctor_features(struct doctor *d);   /* what the rules need of the kernel */
void doctor_rules(struct doctor *d);      /* loaded, complete, first */
void doctor_routes(struct doctor *d);     /* ip rules and routes, and others before them */
void doctor_firewalls(struct doctor *d);  /* other rule sets beside ours */
void doctor_daemon(struct doctor *d);     /* answers, its state, limits, capabilities, counters */
void doctor_gate(struct doctor *d);       /* it is read, and has seen SYNs */
void doctor_syn(struct doctor *d);        /* SYNs of our own reach it */

/** Packets that the rule of the gate has seen; -1: there is none. */
long long doctor_gate_packets(enum rules_family family);

/** The rules of @conf as iptables-save prints them, from a network namespace made for that. */
enum doctor_probe {
	DOCTOR_PROBE_OK,
	DOCTOR_PROBE_NO_NAMESPACE, /* not allowed to make one */
	DOCTOR_PROBE_REFUSED,      /* the kernel or iptables does not take it */
};

/**
 * Loads @restore_input for @family in a network namespace of its own, with the set of direct flows
 * there. @ret_save (NULL: not wanted) gets what iptables-save says then; free it. What is refused
 * has its reason in @error.
 */
enum doctor_probe doctor_probe_rules(enum rules_family family, const char *restore_input,
				     char **ret_save, char error[RULES_ERROR_SIZE]);

#endif
