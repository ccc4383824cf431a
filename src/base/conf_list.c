/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Elements of lists, and addresses. Whatever passes here is safe as an argument of iptables. */
#include "base/conf_internal.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#define V4_MAPPED_BITS 96

static int refuse(char *why, const char *expected)
{
	snprintf(why, CONF_WHY_SIZE, "%s", expected);
	return -EINVAL;
}

int conf_interface_parse(const char *text, char *ret, char why[CONF_WHY_SIZE])
{
	size_t length = strlen(text);

	if (length == 0 || length >= PEP_CONF_NAME_SIZE)
		return refuse(why, "an interface name has 1 to 15 characters");
	if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0 || text[0] == '-')
		return refuse(why, "not a name that an interface can have");
	for (const char *at = text; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr("._-@", *at))
			return refuse(why, "an interface name is made of letters, digits and ._-@");
	}
	memcpy(ret, text, length + 1);
	return 0;
}

/* Reads an IPv4 or IPv6 address; IPv4 becomes v4-mapped. *@ret_base is the bits before it. */
static int address_parse(const char *text, struct in6_addr *ret, unsigned int *ret_base)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		memset(ret, 0, sizeof(*ret));
		ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
		memcpy(&ret->s6_addr[12], &v4, sizeof(v4));
		*ret_base = V4_MAPPED_BITS;
		return 0;
	}
	if (inet_pton(AF_INET6, text, ret) == 1) {
		*ret_base = 0;
		return 0;
	}
	return -EINVAL;
}

static void prefix_mask(struct pep_prefix *prefix)
{
	for (unsigned int byte = 0; byte < 16; byte++) {
		int kept = (int)prefix->bits - (int)byte * 8;

		if (kept <= 0)
			prefix->addr.s6_addr[byte] = 0;
		else if (kept < 8)
			prefix->addr.s6_addr[byte] &= (uint8_t)(0xff00u >> kept);
	}
}

static void prefix_text(const struct pep_prefix *prefix, char *buffer, size_t size)
{
	bool v4 = prefix->bits >= V4_MAPPED_BITS && IN6_IS_ADDR_V4MAPPED(&prefix->addr);
	char address[INET6_ADDRSTRLEN];

	if (v4)
		inet_ntop(AF_INET, &prefix->addr.s6_addr[12], address, sizeof(address));
	else
		inet_ntop(AF_INET6, &prefix->addr, address, sizeof(address));
	snprintf(buffer, size, "%s/%u", address, prefix->bits - (v4 ? V4_MAPPED_BITS : 0u));
}

int conf_prefix_parse(const char *text, struct pep_prefix *ret, char why[CONF_WHY_SIZE])
{
	static const char expected[] = "expected an address prefix such as 10.1.0.0/16 or fd00::/8";
	char address[INET6_ADDRSTRLEN], proper[64];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	struct pep_prefix prefix = {0};
	struct in6_addr given;
	unsigned int base;
	uint64_t bits;

	if (length >= sizeof(address))
		return refuse(why, expected);
	memcpy(address, text, length);
	address[length] = '\0';
	if (address_parse(address, &prefix.addr, &base))
		return refuse(why, expected);

	bits = 128 - base;
	if (slash && (pep_units_parse_count(slash + 1, &bits) || bits > 128 - base)) {
		snprintf(why, CONF_WHY_SIZE, "a prefix length is 0 to %u here", 128 - base);
		return -EINVAL;
	}
	prefix.bits = (uint8_t)(base + bits);

	given = prefix.addr;
	prefix_mask(&prefix);
	if (memcmp(&given, &prefix.addr, sizeof(given)) != 0) {
		prefix_text(&prefix, proper, sizeof(proper));
		snprintf(why, CONF_WHY_SIZE,
			 "the address has bits behind the prefix; did you mean \"%s\"?", proper);
		return -EINVAL;
	}
	*ret = prefix;
	return 0;
}

void conf_prefix_print(const struct pep_prefix *prefix, FILE *out)
{
	char text[64];

	prefix_text(prefix, text, sizeof(text));
	fprintf(out, "\"%s\"", text);
}

static int port_parse(const char *text, size_t length, uint16_t *ret)
{
	char digits[8];
	uint64_t port;

	if (length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (pep_units_parse_count(digits, &port) || port < 1 || port > 65535)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

int conf_ports_parse(const char *text, struct pep_port_range *ret, char why[CONF_WHY_SIZE])
{
	const char *dash = strchr(text, '-');
	struct pep_port_range range;
	int err;

	if (dash) {
		err = port_parse(text, (size_t)(dash - text), &range.first);
		if (!err)
			err = port_parse(dash + 1, strlen(dash + 1), &range.last);
	} else {
		err = port_parse(text, strlen(text), &range.first);
		range.last = range.first;
	}
	if (err)
		return refuse(why, "expected a port 1 to 65535, or two as in 8000-8100");
	if (range.first > range.last)
		return refuse(why, "the range ends before it begins");
	*ret = range;
	return 0;
}

/* Whether all of @text[0..@length) is letters, digits or one of @others. */
static bool made_of(const char *text, size_t length, const char *others)
{
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr(others, text[i]))
			return false;
	}
	return length > 0;
}

int conf_param_parse(const char *text, struct pep_cca_param *ret, char why[CONF_WHY_SIZE])
{
	const char *sign = strchr(text, '=');
	struct pep_cca_param param = {0};
	size_t key_length, value_length;

	if (!sign)
		return refuse(why, "expected key=value, as in \"ratio=2.0\"");
	key_length = (size_t)(sign - text);
	value_length = strlen(sign + 1);
	if (!made_of(text, key_length, "_-") || !made_of(sign + 1, value_length, "._+-%"))
		return refuse(why, "a key is made of letters, digits and _-, a value also of .+%");
	if (key_length >= sizeof(param.key) || value_length >= sizeof(param.value))
		return refuse(why, "key and value have at most 31 characters each");
	memcpy(param.key, text, key_length);
	memcpy(param.value, sign + 1, value_length);
	memcpy(ret->key, param.key, sizeof(param.key));
	memcpy(ret->value, param.value, sizeof(param.value));
	return 0;
}

int conf_listen_check(const char *text, char why[CONF_WHY_SIZE])
{
	static const char expected[] =
		"expected address:port, [address]:port or unix:/path; the address as a number";
	char address[INET6_ADDRSTRLEN];
	const char *start = text, *colon;
	struct in6_addr parsed;
	unsigned int base;
	uint16_t port;
	size_t length;
	bool bracket = text[0] == '[';

	if (strncmp(text, "unix:", 5) == 0) {
		if (text[5] != '/' || !made_of(text + 5, strlen(text + 5), "/._-+@:"))
			return refuse(why, "expected unix:/path, the path made of letters, digits "
					   "and /._-+@:");
		return 0;
	}
	colon = strrchr(text, ':');
	if (!colon)
		return refuse(why, expected);
	length = (size_t)(colon - text);
	if (bracket) {
		if (length < 2 || text[length - 1] != ']')
			return refuse(why, expected);
		start++;
		length -= 2;
	}
	if (length >= sizeof(address))
		return refuse(why, expected);
	memcpy(address, start, length);
	address[length] = '\0';
	if (address_parse(address, &parsed, &base) || bracket != (base == 0))
		return refuse(why, expected);
	if (port_parse(colon + 1, strlen(colon + 1), &port))
		return refuse(why, "the port is a number 1 to 65535");
	return 0;
}
