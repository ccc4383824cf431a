/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Do SYNs reach the daemon: its queues in the kernel, its listeners, and the rule's own count. */
#include "config.h"

#include "ctl/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/run.h"

#define QUEUES "/proc/net/netfilter/nfnetlink_queue"

/* A bound queue's line: number, port id, waiting, copy mode, range, dropped twice, ... */
static bool find_queue(unsigned int queue, unsigned long *ret_dropped)
{
	FILE *in = fopen(QUEUES, "r");
	bool found = false;
	char line[256];

	while (in && !found && fgets(line, sizeof(line), in)) {
		unsigned long n, port, waiting, mode, range, dropped, user_dropped;

		if (sscanf(line, "%lu %lu %lu %lu %lu %lu %lu", &n, &port, &waiting, &mode, &range,
			   &dropped, &user_dropped) != 7 ||
		    n != queue)
			continue;
		*ret_dropped = dropped + user_dropped;
		found = true;
	}
	if (in)
		(void)fclose(in);
	return found;
}

/* Whether somebody listens on @port of the loopback address. */
static bool find_listener(const char *file, const char *address, unsigned int port)
{
	FILE *in = fopen(file, "r");
	char line[512], want[64];
	bool found = false;

	(void)snprintf(want, sizeof(want), "%s:%04X ", address, port);
	while (in && !found && fgets(line, sizeof(line), in)) {
		unsigned int state;
		char local[64], remote[64];

		if (sscanf(line, "%*s %63s %63s %x", local, remote, &state) != 3)
			continue;
		found = state == 0x0a && strncmp(local, want, strlen(want) - 1) == 0;
	}
	if (in)
		(void)fclose(in);
	return found;
}

static void check_queues(struct doctor *d)
{
	unsigned long dropped, sum = 0;

	for (unsigned int w = 0; w < d->conf->workers; w++) {
		unsigned int queue = d->conf->steering.first_queue + w;

		if (!find_queue(queue, &dropped)) {
			doctor_say(d, DOCTOR_ERROR, "gate", "systemctl restart edgepep",
				   "nobody reads netfilter queue %u: SYNs do not reach the daemon",
				   queue);
			return;
		}
		sum += dropped;
	}
	if (sum)
		doctor_say(d, DOCTOR_NOTE, "gate", "more workers, or a lower load",
			   "%lu SYNs were dropped in the queues", sum);
	else
		doctor_say(d, DOCTOR_OK, "gate", "", "all queues are read");
}

static void check_listeners(struct doctor *d)
{
	for (unsigned int w = 0; w < d->conf->workers; w++) {
		unsigned int port = d->conf->steering.first_port + w;
		bool v4 = find_listener("/proc/net/tcp", "0100007F", port);
		bool v6 = find_listener("/proc/net/tcp6", "00000000000000000000000001000000", port);

		if (v4 && (v6 || !d->families[RULES_FAMILY_IPV6]))
			continue;
		doctor_say(d, DOCTOR_ERROR, "gate", "systemctl restart edgepep",
			   "nobody listens on %s port %u: split SYNs of that worker are lost",
			   v4 ? "::1" : "127.0.0.1", port);
		return;
	}
}

/* iptables-save -c puts "[packets:bytes]" before a rule. */
long long doctor_gate_packets(enum rules_family family)
{
	char program[32];
	const char *const save[] = {program, "-c", "-t", "raw", NULL};
	long long packets = -1;
	struct pep_run run;

	(void)snprintf(program, sizeof(program), "%s-save", rules_family_tool(family));
	if (pep_run(save, NULL, 20, &run))
		return -1;
	for (const char *line = run.out; *line && packets < 0;) {
		const char *end = strchrnul(line, '\n');

		if (*line == '[' && memmem(line, (size_t)(end - line), " -j NFQUEUE", 11) &&
		    memmem(line, (size_t)(end - line), RULES_CHAIN_PREFIX "GATE", 12))
			packets = strtoll(line + 1, NULL, 10);
		line = *end ? end + 1 : end;
	}
	pep_run_fini(&run);
	return packets;
}

void doctor_gate(struct doctor *d)
{
	long long packets = 0;

	for (int f = 0; f < RULES_FAMILY_COUNT_; f++)
		if (d->families[f])
			packets += doctor_gate_packets((enum rules_family)f);
	if (packets == 0)
		doctor_say(d, DOCTOR_NOTE, "gate",
			   "do clients come in through the wireless interfaces?",
			   "no SYN has come from a client since the rules were loaded");
	if (!d->status)
		return;
	check_queues(d);
	check_listeners(d);
}
