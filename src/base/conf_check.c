/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one value alone cannot tell: "auto", what classes inherit, and values against each other. */
#include "base/conf_internal.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FDS_PER_FLOW   2
#define FDS_RESERVE    128   /* log, control, queues, listeners, timers, one pipe per worker */
#define AUTO_MAX_FLOWS 65536 /* memory for more is an operator's decision */

/* CPUs this process may run on, at most PEP_CONF_MAX_WORKERS. */
static unsigned int usable_cpus(void)
{
	unsigned int count = 1;
	cpu_set_t set;

	/* a machine with more than 1024 CPUs does not fit the set and gets all the workers there
	 * are */
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		count = (unsigned int)CPU_COUNT(&set);
	else if (errno == EINVAL)
		count = PEP_CONF_MAX_WORKERS;
	return count > PEP_CONF_MAX_WORKERS ? PEP_CONF_MAX_WORKERS : count;
}

static uint64_t descriptors_allowed(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1024;
	return limit.rlim_max == RLIM_INFINITY ? UINT32_MAX : limit.rlim_max;
}

/* Flows for which @descriptors suffice; an eighth of them is left to the relay's pipes. */
static uint32_t flows_for(uint64_t descriptors)
{
	uint64_t kept = FDS_RESERVE + descriptors / 8;
	uint64_t flows = descriptors > kept ? (descriptors - kept) / FDS_PER_FLOW : 0;

	if (flows > AUTO_MAX_FLOWS)
		flows = AUTO_MAX_FLOWS;
	return flows > 0 ? (uint32_t)flows : 1;
}

static void report_at(struct conf_loader *loader, const char *section, const char *key,
		      const char *message)
{
	const struct conf_key *row = conf_key_find(section, key);
	const struct conf_origin *origin = &loader->origins[row - conf_keys];

	conf_report(loader, origin->file ? origin->file : loader->file, origin->line, "%s%s%s%s",
		    section, section[0] ? ": " : "", key, message);
}

static void check_relay(struct conf_loader *loader)
{
	const struct pep_relay_conf *relay = &loader->conf->relay;
	char a[PEP_UNITS_TEXT_SIZE], b[PEP_UNITS_TEXT_SIZE], message[CONF_WHY_SIZE];

	if (relay->buffer_min_bytes > relay->buffer_max_bytes) {
		snprintf(message, sizeof(message), " = %s is above buffer-max = %s",
			 pep_units_exact_size(a, relay->buffer_min_bytes),
			 pep_units_exact_size(b, relay->buffer_max_bytes));
		report_at(loader, "relay", "buffer-min", message);
	}
	if (relay->buffer_max_bytes > relay->memory_bytes) {
		snprintf(message, sizeof(message), " = %s is above memory = %s",
			 pep_units_exact_size(a, relay->buffer_max_bytes),
			 pep_units_exact_size(b, relay->memory_bytes));
		report_at(loader, "relay", "buffer-max", message);
	}
}

static void check_steering(struct conf_loader *loader)
{
	const struct pep_steering_conf *steering = &loader->conf->steering;
	unsigned int more = loader->conf->workers - 1;
	char message[CONF_WHY_SIZE];

	if (steering->first_queue + more > 65535) {
		snprintf(message, sizeof(message),
			 " = %u leaves no queue for the last of %u workers; at most %u",
			 steering->first_queue, more + 1, 65535 - more);
		report_at(loader, "steering", "first-queue", message);
	}
	if (steering->first_port + more > 65535) {
		snprintf(message, sizeof(message),
			 " = %u leaves no port for the last of %u workers; at most %u",
			 steering->first_port, more + 1, 65535 - more);
		report_at(loader, "steering", "first-port", message);
	}
	if (steering->table >= 253 && steering->table <= 255)
		report_at(loader, "steering", "table",
			  " is one of the kernel's own tables (253, 254, 255); choose another");
}

static bool listed_twice(char (*names)[PEP_CONF_NAME_SIZE], unsigned int count, unsigned int at)
{
	for (unsigned int i = 0; i < count; i++) {
		if (i != at && strcmp(names[i], names[at]) == 0)
			return true;
	}
	return false;
}

static void check_interfaces(struct conf_loader *loader)
{
	struct pep_conf *conf = loader->conf;
	char message[CONF_WHY_SIZE];

	for (unsigned int i = 0; i < conf->n_wireless_interfaces; i++) {
		const char *name = conf->wireless_interfaces[i];

		for (unsigned int j = 0; j < conf->n_wired_interfaces; j++) {
			if (strcmp(name, conf->wired_interfaces[j]) != 0)
				continue;
			snprintf(
				message, sizeof(message),
				": \"%s\" is in wireless-interfaces too; an interface has one side",
				name);
			report_at(loader, "", "wired-interfaces", message);
		}
		if (listed_twice(conf->wireless_interfaces, i, i)) {
			snprintf(message, sizeof(message), ": \"%s\" is listed twice", name);
			report_at(loader, "", "wireless-interfaces", message);
		}
	}
	for (unsigned int i = 0; i < conf->n_wired_interfaces; i++) {
		if (listed_twice(conf->wired_interfaces, i, i)) {
			snprintf(message, sizeof(message), ": \"%s\" is listed twice",
				 conf->wired_interfaces[i]);
			report_at(loader, "", "wired-interfaces", message);
		}
	}
}

static void class_inherit(struct conf_loader *loader, unsigned int index)
{
	const struct conf_key *first = conf_key_find("class", "clients");
	char *class = (char *)&loader->conf->classes[index];

	for (const struct conf_key *key = first; key < conf_keys + conf_n_keys; key++) {
		bool set = loader->class_set[index] >> (key - first) & 1;

		if (!set && key->inherit)
			memcpy(class + key->offset, (char *)loader->conf + key->inherit, key->size);
	}
}

static void check_classes(struct conf_loader *loader)
{
	for (unsigned int i = 0; i < loader->conf->n_classes; i++) {
		const struct pep_class_conf *class = &loader->conf->classes[i];
		const struct conf_origin *origin = &loader->class_origins[i];

		class_inherit(loader, i);
		if (class->match.n_clients + class->match.n_servers + class->match.n_ports == 0)
			conf_report(loader, origin->file, origin->line,
				    "class \"%s\" above matches nothing; give it clients, servers "
				    "or ports",
				    class->name);
	}
}

void conf_finish(struct conf_loader *loader)
{
	struct pep_conf *conf = loader->conf;

	if (conf->workers == 0)
		conf->workers = usable_cpus();
	if (conf->max_flows == 0)
		conf->max_flows = flows_for(descriptors_allowed());
	check_relay(loader);
	check_steering(loader);
	check_interfaces(loader);
	check_classes(loader);
}

int pep_conf_require_interfaces(const struct pep_conf *conf, const char *path, FILE *errors)
{
	struct conf_loader loader = {.errors = errors};

	if (conf->n_wireless_interfaces == 0)
		conf_report(&loader, path, 0,
			    "wireless-interfaces is not set; name the interfaces towards the user "
			    "equipment, as in wireless-interfaces = {\"radio0\"}");
	if (conf->n_wired_interfaces == 0)
		conf_report(&loader, path, 0,
			    "wired-interfaces is not set; name the interfaces towards the servers, "
			    "as in wired-interfaces = {\"core0\"}");
	return loader.n_errors ? -EINVAL : 0;
}

int pep_conf_require_descriptors(const struct pep_conf *conf, const char *path, FILE *errors)
{
	uint64_t needed = FDS_RESERVE + (uint64_t)conf->max_flows * FDS_PER_FLOW;
	uint64_t allowed = descriptors_allowed();
	struct conf_loader loader = {.errors = errors};

	if (needed <= allowed)
		return 0;
	conf_report(&loader, path, 0,
		    "max-flows = %" PRIu32 " needs %" PRIu64 " file descriptors, the hard limit is "
		    "%" PRIu64 "; raise LimitNOFILE (ulimit -Hn) or write max-flows = auto",
		    conf->max_flows, needed, allowed);
	return -EINVAL;
}
