/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse_path(const char *path, struct pep_listen_address *ret)
{
	struct pep_listen_address address;

	if (path[0] != '/' || strlen(path) >= sizeof(address.local.sun_path))
		return -EINVAL;
	memset(&address, 0, sizeof(address));
	address.size = sizeof(address.local);
	address.local.sun_family = AF_UNIX;
	strcpy(address.local.sun_path, path);
	*ret = address;
	return 0;
}

int pep_listen_address_parse(const char *text, struct pep_listen_address *ret)
{
	struct pep_listen_address address;
	const char *colon = strrchr(text, ':');
	char host[64];
	size_t length;
	unsigned long port;
	char *end;

	if (strncmp(text, "unix:", 5) == 0)
		return parse_path(text + 5, ret);
	if (!colon || colon[1] < '0' || colon[1] > '9')
		return -EINVAL;
	port = strtoul(colon + 1, &end, 10);
	length = (size_t)(colon - text);
	if (*end || port > 65535 || length >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = '\0';
	memset(&address, 0, sizeof(address));
	if (inet_pton(AF_INET, host, &address.v4.sin_addr) == 1) {
		address.size = sizeof(address.v4);
		address.v4.sin_family = AF_INET;
		address.v4.sin_port = htons((uint16_t)port);
		*ret = address;
		return 0;
	}
	if (length < 3 || host[0] != '[' || host[length - 1] != ']')
		return -EINVAL;
	host[length - 1] = '\0';
	if (inet_pton(AF_INET6, host + 1, &address.v6.sin6_addr) != 1)
		return -EINVAL;
	address.size = sizeof(address.v6);
	address.v6.sin6_family = AF_INET6;
	address.v6.sin6_port = htons((uint16_t)port);
	*ret = address;
	return 0;
}
