/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_REASON_H
#define PEP_BASE_REASON_H

/* Why things happened: the values of every `reason` label, and their names. */

/** Why a flow ended; each flow has one. */
enum pep_close {
	PEP_CLOSE_FINISHED,        /* both directions ended with FIN */
	PEP_CLOSE_CLIENT_RESET,    /* RST from the client */
	PEP_CLOSE_SERVER_RESET,    /* RST from the server */
	PEP_CLOSE_REFUSED,         /* the server refused the connection */
	PEP_CLOSE_UNREACHABLE,     /* ICMP unreachable while connecting */
	PEP_CLOSE_CONNECT_TIMEOUT, /* the server never answered */
	PEP_CLOSE_CONNECT_FAILED,  /* the wired leg could not be opened on this host */
	PEP_CLOSE_CLIENT_GONE,     /* wireless leg: user timeout, keepalive or unreachable */
	PEP_CLOSE_SERVER_GONE,     /* wired leg: the same */
	PEP_CLOSE_HANDSHAKE,       /* the client never completed its handshake with us */
	PEP_CLOSE_HALF_CLOSE_TIMEOUT,
	PEP_CLOSE_IDLE_TIMEOUT,
	PEP_CLOSE_KILLED,   /* by the operator */
	PEP_CLOSE_SHUTDOWN, /* the daemon ended */
	PEP_CLOSE_ERROR,    /* anything else; logged */
	PEP_CLOSE_COUNT_,
};

/** Why a SYN went end to end. */
enum pep_bypass {
	PEP_BYPASS_POLICY,    /* bypass list or class */
	PEP_BYPASS_MPTCP,     /* MP_CAPABLE, MP_JOIN */
	PEP_BYPASS_FAST_OPEN, /* data or a cookie in the SYN */
	PEP_BYPASS_LOCAL,     /* addressed to this host */
	PEP_BYPASS_MALFORMED, /* not a TCP SYN that the gate can read */
	PEP_BYPASS_FLOW_LIMIT,
	PEP_BYPASS_CLIENT_LIMIT,
	PEP_BYPASS_PENDING_LIMIT,
	PEP_BYPASS_RESOURCE,  /* no descriptor, memory or port */
	PEP_BYPASS_PROBATION, /* the prefix keeps failing */
	PEP_BYPASS_DRAIN,
	PEP_BYPASS_OPERATOR, /* bypass on */
	PEP_BYPASS_STALLED,  /* its worker stood still */
	PEP_BYPASS_COUNT_,
};

/** Why a SYN was refused by us, without asking the server. */
enum pep_refuse {
	PEP_REFUSE_LOOP,  /* would come back to ourselves */
	PEP_REFUSE_LIMIT, /* overload = refuse */
	PEP_REFUSE_COUNT_,
};

/** What holds a direction of a flow back during an interval. */
enum pep_limit {
	PEP_LIMIT_WIRED,
	PEP_LIMIT_WIRELESS,
	PEP_LIMIT_RECEIVER,
	PEP_LIMIT_APPLICATION,
	PEP_LIMIT_PROXY,
	PEP_LIMIT_COUNT_,
};

/** Label values: lower case, words joined by '_'. "?" for a number that is none. */
const char *pep_close_name(enum pep_close reason);
const char *pep_bypass_name(enum pep_bypass reason);
const char *pep_refuse_name(enum pep_refuse reason);
const char *pep_limit_name(enum pep_limit reason);

#endif
