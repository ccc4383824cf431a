/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel version, BTF, congestion controls. */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ctl/doctor.h"

#define CONTROLS "net.ipv4.tcp_available_congestion_control"

static void check_version(struct doctor *d)
{
	unsigned int major = 0, minor = 0;
	struct utsname uts;

	if (uname(&uts) < 0 || sscanf(uts.release, "%u.%u", &major, &minor) != 2) {
		doctor_say(d, DOCTOR_WARNING, "kernel", "", "the kernel's version is not known");
		return;
	}
	if (major < 5 || (major == 5 && minor < 10))
		doctor_say(d, DOCTOR_ERROR, "kernel", "use a kernel of 5.10 or later",
			   "%s is older than what edgepep was made for", uts.release);
	else if (major < 6)
		doctor_say(d, DOCTOR_WARNING, "kernel", "use a kernel of 6.0 or later",
			   "%s does not run the pep_ congestion controls", uts.release);
	else
		doctor_say(d, DOCTOR_OK, "kernel", "", "%s", uts.release);
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		doctor_say(d, DOCTOR_OK, "btf", "", "the kernel describes itself");
	else
		doctor_say(
			d, DOCTOR_WARNING, "btf",
			"use a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's own",
			"there is no /sys/kernel/btf/vmlinux: the pep_ congestion controls cannot "
			"be loaded");
}

static void check_control(struct doctor *d, const char *available, const char *name,
			  const char *where)
{
	char fix[128];

	if (!*name || doctor_has_word(available, name))
		return;
	if (strncmp(name, "pep_", 4) == 0)
		(void)snprintf(fix, sizeof(fix), "systemctl start edgepep-cca");
	else
		(void)snprintf(fix, sizeof(fix), "modprobe tcp_%s", name);
	doctor_say(d, DOCTOR_WARNING, "controls", fix,
		   "congestion control %s (%s) is not there; another one is used in its place",
		   name, where);
}

void doctor_kernel(struct doctor *d)
{
	const struct pep_conf *conf = d->conf;
	enum doctor_severity before;
	char available[1024], where[64];

	check_version(d);
	if (rules_sysctl_read(CONTROLS, available, sizeof(available))) {
		doctor_say(d, DOCTOR_ERROR, "controls", "mount -t proc proc /proc",
			   "the list of congestion controls cannot be read");
		return;
	}
	before = d->worst;
	d->worst = DOCTOR_OK;
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		(void)snprintf(where, sizeof(where), "leg %s",
			       pep_segment_name((enum pep_segment)s));
		check_control(d, available, conf->leg[s].congestion_control, where);
		for (unsigned int c = 0; c < conf->n_classes; c++) {
			const char *name = conf->classes[c].leg[s].congestion_control;

			(void)snprintf(where, sizeof(where), "class %s", conf->classes[c].name);
			if (strcmp(name, conf->leg[s].congestion_control) != 0)
				check_control(d, available, name, where);
		}
	}
	if (d->worst == DOCTOR_OK)
		doctor_say(d, DOCTOR_OK, "controls", "", "wireless %s, wired %s are there",
			   conf->leg[PEP_SEGMENT_WIRELESS].congestion_control,
			   conf->leg[PEP_SEGMENT_WIRED].congestion_control);
	if (before > d->worst)
		d->worst = before;
}
