/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load.h"

#include "base/usage.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(const struct load_options *options);
} commands[] = {
	{"serve", load_serve}, {"echo", load_echo}, {"first-byte", load_first_byte},
	{"idle", load_idle},   {"age", load_age},   {"bulk", load_bulk},
	{"syn", load_syn},
};

static const struct pep_usage_option options_table[] = {
	{'t', "to", "ADDRESS:PORT",
	 "the server (serve: where to listen); the services follow PORT"},
	{'n', "count", "N", "flows or samples"},
	{'b', "bytes", "N", "bytes of a message (echo)"},
	{'s', "seconds", "S", "how long"},
	{'w', "warm-up", "S", "seconds before those that are not counted (bulk), then a line"},
	{'r', "rate", "N", "bytes per second (age) or packets per second (syn)"},
	{'R', "receive-buffer", "BYTES", "SO_RCVBUF of the client"},
	{'u', "upload", NULL, "the client sends (bulk)"},
	{'f', "from", "ADDRESS", "first client address (syn)"},
	{'S', "sources", "N", "number of client addresses (syn)"},
	{0},
};

static const struct pep_usage usage = {
	"benchload",
	"COMMAND [OPTION...]",
	"Servers and clients of the benchmark. Clients print one JSON object.",
	options_table,
	"\nCommands:\n"
	"  serve        echo, answer, source, sink and stamps, on five ports from PORT on\n"
	"  echo         times of --count messages of --bytes, one after the other\n"
	"  first-byte   times from connect() to the first byte of the answer, --count flows\n"
	"  idle         opens --count flows, proves each, holds them until its input ends\n"
	"  age          reads --rate bytes/s of stamped data, tells its age each second\n"
	"  bulk         --count flows at full speed for --seconds\n"
	"  syn          sends --rate SYNs/s of --sources made-up clients for --seconds\n",
	false,
};

static double number(const char *text, const char *option)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0) || value > 1e15)
		exit(pep_usage_error(&usage, "--%s: '%s' is no number from 0 to 1e15", option,
				     text));
	return value;
}

static unsigned int count(const char *text, const char *option)
{
	double value = number(text, option);

	if (value < 1 || value > 1e9)
		exit(pep_usage_error(&usage, "--%s: '%s' is not from 1 to 1e9", option, text));
	return (unsigned int)value;
}

static void endpoint(const char *text, struct sockaddr_in *ret)
{
	char host[INET_ADDRSTRLEN];
	const char *colon = strchr(text, ':');
	char *end = NULL;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;

	ret->sin_family = AF_INET;
	if (!colon || *end || port < 1 || port > 65535 - LOAD_SERVICE_COUNT_ ||
	    colon - text >= (long)sizeof(host))
		exit(pep_usage_error(&usage, "--to: '%s' is not ADDRESS:PORT", text));
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	if (inet_pton(AF_INET, host, &ret->sin_addr) != 1)
		exit(pep_usage_error(&usage, "--to: '%s' is no IPv4 address", host));
	ret->sin_port = htons((uint16_t)port);
}

int main(int argc, char **argv)
{
	struct load_options options = {
		.count = 1,
		.bytes = 64,
		.seconds = 1,
		.rate = 1e6,
		.sources = 1,
	};
	int option;

	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		switch (option) {
		case 't':
			endpoint(optarg, &options.to);
			break;
		case 'n':
			options.count = count(optarg, "count");
			break;
		case 'b':
			options.bytes = count(optarg, "bytes");
			break;
		case 's':
			options.seconds = number(optarg, "seconds");
			break;
		case 'w':
			options.warm_up = number(optarg, "warm-up");
			break;
		case 'r':
			options.rate = number(optarg, "rate");
			break;
		case 'R':
			options.receive_buffer = count(optarg, "receive-buffer");
			break;
		case 'u':
			options.upload = 1;
			break;
		case 'f':
			if (inet_pton(AF_INET, optarg, &options.from) != 1)
				return pep_usage_error(&usage, "--from: '%s' is no IPv4 address",
						       optarg);
			break;
		case 'S':
			options.sources = count(optarg, "sources");
			break;
		case PEP_USAGE_DONE:
			return 0;
		default:
			return PEP_EXIT_USAGE;
		}
	}
	if (optind != argc - 1)
		return pep_usage_error(&usage, "one COMMAND is needed");
	if (!options.to.sin_family)
		return pep_usage_error(&usage, "--to is needed");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, argv[optind]) == 0)
			return commands[i].run(&options);
	return pep_usage_error(&usage, "no command '%s'", argv[optind]);
}
