/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variant is chosen from what the kernel says of itself, never from its version number. */
#include "cca/host.h"

#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define JIT_SWITCH "/proc/sys/net/core/bpf_jit_enable"

static const struct {
	const char *name, *text;
} supports[PEP_CCA_SUPPORT_COUNT_] = {
	[PEP_CCA_SUPPORT_FULL] = {"full", "every control of ours runs on this kernel"},
	[PEP_CCA_SUPPORT_REDUCED] = {"reduced",
				     "the controls run; samples of ProbeRTT cannot be marked, "
				     "for which the kernel is too old (6.4)"},
	[PEP_CCA_SUPPORT_NO_JIT] = {"no-jit",
				    "the BPF compiler is off: set net.core.bpf_jit_enable = 1"},
	[PEP_CCA_SUPPORT_NO_OBJECTS] = {"no-objects",
					"this program was built without BPF (--disable-bpf)"},
	[PEP_CCA_SUPPORT_NO_OPS] = {"no-struct-ops",
				    "the kernel takes no congestion controls in BPF that we "
				    "know: use Linux 6.0 or later"},
	[PEP_CCA_SUPPORT_NO_BTF] = {"no-btf", "the kernel describes itself nowhere "
					      "(/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)"},
};

static const char *const variant_names[PEP_CCA_VARIANT_COUNT_] = {"2", "4", "4t"};

const char *pep_cca_variant_name(enum pep_cca_variant variant)
{
	return variant < PEP_CCA_VARIANT_COUNT_ ? variant_names[variant] : "?";
}

const char *pep_cca_support_name(enum pep_cca_support support)
{
	return support < PEP_CCA_SUPPORT_COUNT_ ? supports[support].name : "?";
}

const char *pep_cca_support_text(enum pep_cca_support support)
{
	return support < PEP_CCA_SUPPORT_COUNT_ ? supports[support].text : "?";
}

bool pep_cca_host_usable(const struct pep_cca_host *host)
{
	return host->support == PEP_CCA_SUPPORT_FULL || host->support == PEP_CCA_SUPPORT_REDUCED;
}

static const struct btf_type *find_struct(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
}

static const struct btf_member *find_member(const struct btf *btf, const struct btf_type *type,
					    const char *name)
{
	const struct btf_member *members = btf_members(type);

	for (int i = 0; i < btf_vlen(type); i++) {
		const char *member = btf__name_by_offset(btf, members[i].name_off);

		if (member && strcmp(member, name) == 0)
			return &members[i];
	}
	return NULL;
}

/* Arguments of the function that @member points to, 0 when it points to none. */
static unsigned int count_arguments(const struct btf *btf, const struct btf_member *member)
{
	const struct btf_type *type = btf__type_by_id(btf, member->type);

	while (type && (btf_is_ptr(type) || btf_is_mod(type) || btf_is_typedef(type)))
		type = btf__type_by_id(btf, type->type);
	return type && btf_is_func_proto(type) ? btf_vlen(type) : 0;
}

/* bpf_struct_ops_common_value is as old as bpf_map_inc'ing programs: its fields are "refcnt",
 * "state". */
static bool read_value_layout(struct pep_cca_host *host, const struct btf *btf)
{
	const struct btf_type *value = find_struct(btf, "bpf_struct_ops_tcp_congestion_ops");
	const struct btf_member *data;

	if (!value)
		return false;
	data = find_member(btf, value, "data");
	if (!data)
		return false;
	host->value_offset = data->offset / 8;
	host->value_size = value->size;
	return true;
}

static bool choose_variant(struct pep_cca_host *host)
{
	if (host->arguments == 2 && !host->tx_start)
		host->variant = PEP_CCA_VARIANT_2;
	else if (host->arguments == 4)
		host->variant = host->tx_start ? PEP_CCA_VARIANT_4T : PEP_CCA_VARIANT_4;
	else
		return false;
	return true;
}

void pep_cca_host_probe_btf(struct pep_cca_host *host, const struct btf *btf)
{
	const struct btf_type *ops;
	const struct btf_member *control;

	host->support = PEP_CCA_SUPPORT_NO_BTF;
	if (!btf)
		return;
	host->support = PEP_CCA_SUPPORT_NO_OPS;
	ops = find_struct(btf, "tcp_congestion_ops");
	control = ops ? find_member(btf, ops, "cong_control") : NULL;
	if (!control || !read_value_layout(host, btf))
		return;
	host->cong_control_offset = control->offset / 8;
	host->arguments = count_arguments(btf, control);
	host->tx_start = find_member(btf, ops, "cwnd_event_tx_start");
	if (!choose_variant(host))
		return;
	host->support = host->app_limited ? PEP_CCA_SUPPORT_FULL : PEP_CCA_SUPPORT_REDUCED;
}

/* tcp_sock.app_limited may be written since 6.4; only a message rests on this guess. */
static bool guess_app_limited(const char *release)
{
	unsigned int major = 0, minor = 0;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 4);
}

/* A kernel without the interpreter has no switch, or one that says 1. */
static bool jit_is_on(void)
{
	FILE *in = fopen(JIT_SWITCH, "re");
	int on = 1;

	if (!in)
		return true;
	if (fscanf(in, "%d", &on) != 1)
		on = 1;
	fclose(in);
	return on != 0;
}

void pep_cca_host_probe(struct pep_cca_host *ret)
{
	struct utsname name;
	struct btf *btf;

	memset(ret, 0, sizeof(*ret));
	if (uname(&name) == 0)
		snprintf(ret->release, sizeof(ret->release), "%s", name.release);
	ret->app_limited = guess_app_limited(ret->release);
	ret->jit = jit_is_on();

	btf = btf__load_vmlinux_btf();
	pep_cca_host_probe_btf(ret, btf);
	btf__free(btf);
	if (pep_cca_host_usable(ret) && !ret->jit)
		ret->support = PEP_CCA_SUPPORT_NO_JIT;
	if (!pep_cca_objects_built())
		ret->support = PEP_CCA_SUPPORT_NO_OBJECTS;
}
