/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF objects in the program: their layout, and whether this kernel's verifier takes them. */
#include "unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cca/host.h"
#include "cca/load.h"
#include "cca/params.h"

/*
 * What each PEP_CCA_VERSION looked like. Programs of two builds share sockets' states and read each
 * other's configuration: a layout that differs needs a number of its own. Append; never change.
 */
static const struct {
	uint32_t version, layout;
} versions[] = {
	{1, 0x446b4bab},
	{2, 0xa9fece90},
};

static struct bpf_object *open_object(const struct pep_cca_object *object)
{
	struct bpf_object *obj = bpf_object__open_mem(object->elf, object->size, NULL);

	assert_non_null(obj);
	return obj;
}

static struct bpf_object *open_control(enum pep_cca_kind kind, enum pep_cca_variant variant)
{
	struct pep_cca_object object;

	assert_int_equal(pep_cca_object_get(kind, variant, &object), 0);
	return open_object(&object);
}

/* -- layout -- */

/* Every field of a type with name, place and kind, as text. */
static void describe(const struct btf *btf, uint32_t id, FILE *out)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (btf_is_mod(type) || btf_is_typedef(type))
		type = btf__type_by_id(btf, type->type);
	if (btf_is_array(type)) {
		fprintf(out, "[%u]", btf_array(type)->nelems);
		describe(btf, btf_array(type)->type, out);
	} else if (btf_is_composite(type)) {
		const struct btf_member *member = btf_members(type);

		fputc('{', out);
		for (int i = 0; i < btf_vlen(type); i++, member++) {
			fprintf(out, "%s@%u:", btf__name_by_offset(btf, member->name_off),
				btf_member_bit_offset(type, (uint32_t)i));
			describe(btf, member->type, out);
		}
		fputc('}', out);
	} else {
		assert_true(btf_is_int(type) || btf_is_any_enum(type));
		fprintf(out, "%u/%u;", type->size,
			btf_is_int(type) ? (unsigned int)btf_int_encoding(type) : 0);
	}
}

static void describe_struct(struct bpf_object *obj, const char *name, FILE *out)
{
	const struct btf *btf = bpf_object__btf(obj);
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	assert_true(id > 0);
	describe(btf, (uint32_t)id, out);
}

/* FNV-1a over what the BPF side knows of both structs. */
static uint32_t layout_now(void)
{
	struct bpf_object *control = open_control(PEP_CCA_BBR, PEP_CCA_VARIANT_4);
	uint32_t hash = 2166136261U;
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	describe_struct(control, "pep_cc_flow", out);
	describe_struct(control, "pep_cca_config", out);
	assert_int_equal(fclose(out), 0);
	assert_true(length > 1000);
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619U;
	free(text);
	bpf_object__close(control);
	return hash;
}

static void another_layout_is_another_version(void **state)
{
	size_t last = sizeof(versions) / sizeof(versions[0]) - 1;
	uint32_t now = layout_now();

	(void)state;
	assert_int_equal(PEP_CCA_VERSION, versions[last].version);
	for (size_t i = 0; i <= last; i++)
		assert_int_equal(versions[i].version, i + 1);
	if (now != versions[last].layout)
		fail_msg("struct pep_cc_flow or pep_cca_config has changed: raise PEP_CCA_VERSION "
			 "to %u in cca/flow_state.h and append {%u, 0x%08x} here",
			 PEP_CCA_VERSION + 1, PEP_CCA_VERSION + 1, now);
}

/* Both fields of PEP_CCA_LAYOUT are 12 bits wide. */
static void sizes_fit_the_layout_number(void **state)
{
	(void)state;
	assert_in_range(sizeof(struct pep_cc_flow), 1, (1U << 12) - 1);
	assert_in_range(sizeof(struct pep_cca_config), 1, (1U << 12) - 1);
	assert_int_equal(PEP_CCA_LAYOUT >> 24, PEP_CCA_VERSION);
}

/* -- variants -- */

static bool has_program(struct bpf_object *obj, const char *name)
{
	return bpf_object__find_program_by_name(obj, name) != NULL;
}

static void every_variant_holds_what_its_kernel_has(void **state)
{
	(void)state;
	for (int kind = 0; kind < PEP_CCA_KIND_COUNT_; kind++) {
		bool is_bbr = kind != PEP_CCA_BWE;

		for (int variant = 0; variant < PEP_CCA_VARIANT_COUNT_; variant++) {
			struct bpf_object *obj = open_control((enum pep_cca_kind)kind,
							      (enum pep_cca_variant)variant);

			assert_true(has_program(obj, "pep_cong_control"));
			/* See bbr.bpf.c: with it a whole window goes as one packet now and then. */
			assert_false(has_program(obj, "pep_min_tso"));
			assert_int_equal(has_program(obj, "pep_tx_start"), is_bbr);
			bpf_object__close(obj);
		}
	}
}

static int load_unregistered(enum pep_cca_kind kind, enum pep_cca_variant variant, bool app_limited)
{
	struct bpf_object *obj = open_control(kind, variant);
	struct pep_cca_config config;
	int err;

	pep_cca_config_init(kind, &config);
	config.set_app_limited = app_limited;
	err = bpf_map__set_initial_value(bpf_object__find_map_by_name(obj, PEP_CCA_CONFIG_SECTION),
					 &config, sizeof(config));
	assert_int_equal(err, 0);
	err = bpf_object__load(obj);
	bpf_object__close(obj);
	return err;
}

/* The verifier's word on every control in the variant that this kernel takes. */
static void the_verifier_takes_them(void **state)
{
	struct pep_cca_host host;
	unsigned int loaded = 0;

	(void)state;
	pep_cca_host_probe(&host);
	if (geteuid() != 0 || !pep_cca_host_usable(&host))
		skip();
	for (int kind = 0; kind < PEP_CCA_KIND_COUNT_; kind++) {
		int err =
			load_unregistered((enum pep_cca_kind)kind, host.variant, host.app_limited);

		if (err == -EPERM) /* root without the right, as in a container */
			skip();
		if (err)
			fail_msg("%s, variant %s: %s\n%s",
				 pep_cca_info_get((enum pep_cca_kind)kind)->name,
				 pep_cca_variant_name(host.variant), strerror(-err),
				 pep_cca_load_log());
		loaded++;
	}
	print_message("  variant %s: every control loaded\n", pep_cca_variant_name(host.variant));
	assert_true(loaded >= PEP_CCA_KIND_COUNT_);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_layout_is_another_version),
		cmocka_unit_test(sizes_fit_the_layout_number),
		cmocka_unit_test(every_variant_holds_what_its_kernel_has),
		cmocka_unit_test(the_verifier_takes_them),
	};

	pep_cca_load_quiet();
	if (!pep_cca_objects_built()) {
		print_message("built without BPF\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
