/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_SYN_H
#define PEP_PROXY_SYN_H

/* Reads a TCP SYN or SYN-ACK out of a raw IP packet. Pure; every byte is hostile. */

#include "proxy/tuple.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Enough of a packet for IPv6 extension headers and all TCP options. */
#define PEP_SYN_COPY_BYTES 512

struct pep_syn {
	struct in6_addr source, destination;
	uint16_t source_port, destination_port; /* host order */
	uint32_t sequence;
	uint16_t mss_bytes; /* 0: the option is absent */
	uint8_t dscp;       /* 0..63, without the ECN bits */
	bool is_synack;
	bool mptcp;     /* MP_CAPABLE, MP_JOIN or any other MPTCP option */
	bool fast_open; /* TFO cookie option, or data in the SYN */
};

/**
 * Parses @length bytes that start with the IP header (IPv4 or IPv6; the packet may be cut behind
 * the TCP header).
 *
 * Returns 0; -EBADMSG when the packet is truncated, its lengths lie or an option is malformed;
 * -EPROTONOSUPPORT when it is no TCP packet or a fragment; -ENOMSG when it is TCP but neither a
 * bare SYN nor a SYN-ACK. @ret is untouched on failure.
 */
int pep_syn_parse(const uint8_t *packet, size_t length, struct pep_syn *ret);

/** The tuple of a SYN: the source is the client. */
void pep_syn_tuple(const struct pep_syn *syn, struct pep_tuple *ret);

/** The tuple a SYN-ACK answers: the source is the server. */
void pep_synack_tuple(const struct pep_syn *synack, struct pep_tuple *ret);

#endif
