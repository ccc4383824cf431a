/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_LISTEN_ADDRESS_H
#define PEP_BASE_LISTEN_ADDRESS_H

/* Where edgepep-mon listens, as the socket calls want it. Addresses are numbers: no name is ever
 * looked up. */

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

struct pep_listen_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un local;
	};
	socklen_t size;
};

/**
 * Takes "address:port", "[v6]:port" or "unix:/path" apart. Returns 0, or -EINVAL for text that is
 * none of these.
 */
int pep_listen_address_parse(const char *text, struct pep_listen_address *ret);

#endif
