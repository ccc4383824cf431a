/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parameters as text, the manual page, the choice of the kernel variant, and what observers see. */
#include "unit/unit.h"

#include <bpf/btf.h>
#include <errno.h>

#include "cca/host.h"
#include "cca/params.h"
#include "cca/state.h"

static const struct pep_cca_param_def *find(enum pep_cca_kind kind, const char *key)
{
	const struct pep_cca_param_def *def;

	for (size_t i = 0; (def = pep_cca_param_get(kind, i)); i++) {
		if (strcmp(def->key, key) == 0)
			return def;
	}
	fail_msg("no parameter \"%s\"", key);
	return NULL;
}

static void controls_are_found_by_name(void **state)
{
	enum pep_cca_kind kind = PEP_CCA_KIND_COUNT_;

	(void)state;
	assert_int_equal(pep_cca_kind_parse("pep_bbr_a", &kind), 0);
	assert_int_equal(kind, PEP_CCA_BBR_A);
	assert_int_equal(pep_cca_kind_parse("bbr", &kind), -ENOENT);
	assert_int_equal(pep_cca_kind_parse("", &kind), -ENOENT);
	assert_int_equal(kind, PEP_CCA_BBR_A);
	assert_null(pep_cca_info_get(PEP_CCA_KIND_COUNT_));
	for (int i = 0; i < PEP_CCA_KIND_COUNT_; i++)
		assert_true(strlen(pep_cca_info_get((enum pep_cca_kind)i)->name) < 16);
}

static void every_default_is_in_its_range(void **state)
{
	const struct pep_cca_param_def *def;

	(void)state;
	for (int kind = 0; kind < PEP_CCA_KIND_COUNT_; kind++) {
		struct pep_cca_config config;

		pep_cca_config_init((enum pep_cca_kind)kind, &config);
		for (size_t i = 0; (def = pep_cca_param_get((enum pep_cca_kind)kind, i)); i++) {
			uint32_t value = pep_cca_param_value(def, &config);
			char text[32], why[PEP_CCA_WHY_SIZE];

			assert_int_equal(value, def->defaults[kind]);
			assert_in_range(value, def->min, def->max);
			assert_true(strlen(def->key) < 32);
			/* What is printed is what is read. */
			pep_cca_param_format(def, value, text, sizeof(text));
			assert_int_equal(pep_cca_param_set(&config, def->key, text, why), 0);
			assert_int_equal(pep_cca_param_value(def, &config), value);
		}
	}
}

static void the_presets_of_the_core_are_the_defaults(void **state)
{
	static const struct pep_bbr_params presets[] = {
		[PEP_CCA_BBR] = PEP_BBR_PARAMS_BBR,
		[PEP_CCA_BBR_ACD] = PEP_BBR_PARAMS_ACD,
		[PEP_CCA_BBR_A] = PEP_BBR_PARAMS_A,
		[PEP_CCA_BBR_D] = PEP_BBR_PARAMS_D,
	};
	static const struct pep_bwe_params bwe = PEP_BWE_PARAMS_DEFAULT;
	struct pep_cca_config config;

	(void)state;
	for (int kind = 0; kind < PEP_CCA_BWE; kind++) {
		pep_cca_config_init((enum pep_cca_kind)kind, &config);
		assert_memory_equal(&config.bbr, &presets[kind], sizeof(presets[kind]));
	}
	pep_cca_config_init(PEP_CCA_BWE, &config);
	assert_memory_equal(&config.bwe, &bwe, sizeof(bwe));
}

static void values_are_whole_numbers_in_range_or_words(void **state)
{
	static const struct {
		const char *key, *value;
		int result;
		uint32_t number;
	} cases[] = {
		{"cut-gain", "64", 0, 64},
		{"cut-gain", "256", 0, 256},
		{"cut-gain", "63", -EINVAL, 0},
		{"cut-gain", "257", -EINVAL, 0},
		{"cut-gain", "-1", -EINVAL, 0},
		{"cut-gain", "+64", -EINVAL, 0},
		{"cut-gain", " 64", -EINVAL, 0},
		{"cut-gain", "64 ", -EINVAL, 0},
		{"cut-gain", "0x40", -EINVAL, 0},
		{"cut-gain", "64.5", -EINVAL, 0},
		{"cut-gain", "", -EINVAL, 0},
		{"cut-gain", "4294967360", -EINVAL, 0},
		{"cut-gain", "99999999999999999999999", -EINVAL, 0},
		{"verdict", "off", 0, PEP_VERDICT_OFF},
		{"verdict", "standing", 0, PEP_VERDICT_STANDING},
		{"verdict", "author", 0, PEP_VERDICT_AUTHOR},
		{"verdict", "auth", -EINVAL, 0},
		{"verdict", "authors", -EINVAL, 0},
		{"verdict", "off|standing", -EINVAL, 0},
		{"verdict", "", -EINVAL, 0},
		{"verdict", "1", -EINVAL, 0},
		{"policer", "off", 0, 0},
		{"no-such-key", "1", -ENOENT, 0},
		{"", "1", -ENOENT, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char why[PEP_CCA_WHY_SIZE] = "";
		struct pep_cca_config config, before;

		pep_cca_config_init(PEP_CCA_BBR_A, &config);
		before = config;
		assert_int_equal(pep_cca_param_set(&config, cases[i].key, cases[i].value, why),
				 cases[i].result);
		if (cases[i].result) {
			assert_memory_equal(&config, &before, sizeof(config));
			assert_contains(why, cases[i].key);
			assert_contains(why, "pep_bbr_a");
		} else {
			const struct pep_cca_param_def *def = find(PEP_CCA_BBR_A, cases[i].key);

			assert_int_equal(pep_cca_param_value(def, &config), cases[i].number);
		}
	}
}

static void a_refusal_names_the_range(void **state)
{
	char why[PEP_CCA_WHY_SIZE];
	struct pep_cca_config config;

	(void)state;
	pep_cca_config_init(PEP_CCA_BWE, &config);
	assert_int_equal(pep_cca_param_set(&config, "tau", "5", why), -EINVAL);
	assert_contains(why, "from 10 to 10000");
	assert_int_equal(pep_cca_param_set(&config, "estimator", "best", why), -EINVAL);
	assert_contains(why, "tustin|westwood+|tsw|max");
}

static char *page_read(void)
{
	static char text[1 << 16];
	FILE *in = fopen(PEP_SOURCE_DIR "/doc/edgepep-cca.8", "r");
	size_t length;

	assert_non_null(in);
	length = fread(text, 1, sizeof(text) - 1, in);
	fclose(in);
	assert_true(length > 0 && length < sizeof(text) - 1);
	text[length] = '\0';
	return text;
}

/* Items look like: ".It Ic cut-gain" ".Pq 64..256, 1/256; default 256, pep_bbr_a 192". */
static void the_manual_page_has_every_parameter(void **state)
{
	static const enum pep_cca_kind families[] = {PEP_CCA_BBR, PEP_CCA_BWE};
	const struct pep_cca_param_def *def;
	const char *page = page_read();

	(void)state;
	for (size_t f = 0; f < COUNT_OF(families); f++) {
		for (size_t i = 0; (def = pep_cca_param_get(families[f], i)); i++) {
			char item[512], value[32];
			size_t used;

			pep_cca_param_format(def, def->defaults[families[f]], value, sizeof(value));
			if (strchr(def->unit, '|'))
				used = (size_t)snprintf(item, sizeof(item),
							".It Ic %s\n.Pq %s; default %s", def->key,
							def->unit, value);
			else
				used = (size_t)snprintf(
					item, sizeof(item), ".It Ic %s\n.Pq %u..%u, %s; default %s",
					def->key, def->min, def->max, def->unit, value);
			for (int kind = families[f] + 1; kind < PEP_CCA_BWE; kind++) {
				if (def->defaults[kind] == def->defaults[families[f]])
					continue;
				pep_cca_param_format(def, def->defaults[kind], value,
						     sizeof(value));
				used += (size_t)snprintf(
					item + used, sizeof(item) - used, ", %s %s",
					pep_cca_info_get((enum pep_cca_kind)kind)->name, value);
			}
			snprintf(item + used, sizeof(item) - used, "\n");
			assert_contains(page, item);
		}
	}
}

/* What a kernel says of its tcp_congestion_ops. */
struct kernel {
	int arguments;
	bool tx_start, no_value;
};

static struct btf *kernel_btf(const struct kernel *k)
{
	struct btf *btf = btf__new_empty();
	int u32, proto, pointer, ops, value;

	u32 = btf__add_int(btf, "unsigned int", 4, 0);
	proto = btf__add_func_proto(btf, 0);
	for (int i = 0; i < k->arguments; i++)
		assert_int_equal(btf__add_func_param(btf, "x", u32), 0);
	pointer = btf__add_ptr(btf, proto);
	ops = btf__add_struct(btf, "tcp_congestion_ops", 192);
	assert_int_equal(btf__add_field(btf, "ssthresh", pointer, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "cong_control", pointer, 72 * 8, 0), 0);
	if (k->tx_start)
		assert_int_equal(btf__add_field(btf, "cwnd_event_tx_start", pointer, 80 * 8, 0), 0);
	if (!k->no_value) {
		value = btf__add_struct(btf, "bpf_struct_ops_tcp_congestion_ops", 256);
		assert_true(value > 0);
		assert_int_equal(btf__add_field(btf, "common", u32, 0, 0), 0);
		assert_int_equal(btf__add_field(btf, "data", ops, 64 * 8, 0), 0);
	}
	return btf;
}

static void the_variant_follows_the_kernels_description(void **state)
{
	static const struct {
		struct kernel kernel;
		enum pep_cca_support support;
		enum pep_cca_variant variant;
	} cases[] = {
		{{2, false, false}, PEP_CCA_SUPPORT_FULL, PEP_CCA_VARIANT_2},
		{{4, false, false}, PEP_CCA_SUPPORT_FULL, PEP_CCA_VARIANT_4},
		{{4, true, false}, PEP_CCA_SUPPORT_FULL, PEP_CCA_VARIANT_4T},
		{{2, true, false}, PEP_CCA_SUPPORT_NO_OPS, 0},
		{{5, false, false}, PEP_CCA_SUPPORT_NO_OPS, 0},
		{{4, false, true}, PEP_CCA_SUPPORT_NO_OPS, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct btf *btf = kernel_btf(&cases[i].kernel);
		struct pep_cca_host host = {.app_limited = true};

		pep_cca_host_probe_btf(&host, btf);
		assert_int_equal(host.support, cases[i].support);
		if (pep_cca_host_usable(&host)) {
			assert_int_equal(host.variant, cases[i].variant);
			assert_int_equal(host.value_offset, 64);
			assert_int_equal(host.value_size, 256);
			assert_int_equal(host.cong_control_offset, 72);
		}
		btf__free(btf);
	}
}

static void a_kernel_without_a_description_is_told(void **state)
{
	struct pep_cca_host host = {0};
	struct btf *btf = btf__new_empty();

	(void)state;
	pep_cca_host_probe_btf(&host, NULL);
	assert_int_equal(host.support, PEP_CCA_SUPPORT_NO_BTF);
	assert_false(pep_cca_host_usable(&host));
	pep_cca_host_probe_btf(&host, btf);
	assert_int_equal(host.support, PEP_CCA_SUPPORT_NO_OPS);
	btf__free(btf);
	for (int i = 0; i < PEP_CCA_SUPPORT_COUNT_; i++)
		assert_true(strlen(pep_cca_support_text((enum pep_cca_support)i)) > 10);
}

static void an_old_kernel_carries_them_reduced(void **state)
{
	struct kernel old = {2, false, false};
	struct pep_cca_host host = {.app_limited = false};
	struct btf *btf = kernel_btf(&old);

	(void)state;
	pep_cca_host_probe_btf(&host, btf);
	assert_int_equal(host.support, PEP_CCA_SUPPORT_REDUCED);
	assert_true(pep_cca_host_usable(&host));
	btf__free(btf);
}

static void observers_see_base_units(void **state)
{
	struct pep_cc_flow flow = {
		.layout = PEP_CCA_LAYOUT, .mss_bytes = 1448, .kind = PEP_CCA_BBR_A};
	struct pep_cca_view view;

	(void)state;
	flow.bbr.mode = PEP_BBR_PROBE_BW;
	flow.bbr.min_rtt_us = 20000;
	flow.bbr.rtt.now_us = 25000;
	flow.bbr.rtt.before_us = PEP_RTT_NONE;
	flow.bbr.applied_gain = 192;
	flow.bbr.cuts = 3;
	pep_max_filter_reset(&flow.bbr.bw, 0, pep_bw(100, 20000));
	assert_int_equal(pep_cca_view_from(&flow, &view), 0);
	assert_string_equal(view.mode, "probe-bw");
	assert_in_range(view.bandwidth, 7239000, 7240000); /* 5000 packets/s of 1448 bytes */
	assert_int_equal(view.min_rtt_us, 20000);
	assert_int_equal(view.standing_rtt_us, 25000);
	assert_int_equal(view.pacing_gain, 192);
	assert_int_equal(view.cuts, 3);

	flow.kind = PEP_CCA_BWE;
	memset(&flow.bwe, 0, sizeof(flow.bwe));
	flow.bwe.min_rtt_us = PEP_RTT_NONE;
	flow.estimate = pep_bw(100, 20000);
	assert_int_equal(pep_cca_view_from(&flow, &view), 0);
	assert_string_equal(view.mode, "avoid");
	assert_int_equal(view.min_rtt_us, 0);
	assert_in_range(view.bandwidth, 7239000, 7240000);
}

static void state_of_another_version_is_refused(void **state)
{
	struct pep_cc_flow flow = {.layout = PEP_CCA_LAYOUT + 1, .kind = PEP_CCA_BBR};
	struct pep_cca_view view = {.cuts = 77};

	(void)state;
	assert_int_equal(pep_cca_view_from(&flow, &view), -EPROTO);
	flow.layout = PEP_CCA_LAYOUT;
	flow.kind = PEP_CCA_KIND_COUNT_;
	assert_int_equal(pep_cca_view_from(&flow, &view), -EPROTO);
	assert_int_equal(view.cuts, 77);
}

static void a_reader_without_a_map_says_so(void **state)
{
	struct pep_cca_state *reader = NULL;

	(void)state;
	assert_int_equal(pep_cca_state_open("/nonexistent", &reader), -ENOENT);
	assert_null(reader);
	assert_int_equal(pep_cca_state_list("/nonexistent", NULL, NULL), -ENOENT);
	pep_cca_state_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(controls_are_found_by_name),
		cmocka_unit_test(every_default_is_in_its_range),
		cmocka_unit_test(the_presets_of_the_core_are_the_defaults),
		cmocka_unit_test(values_are_whole_numbers_in_range_or_words),
		cmocka_unit_test(a_refusal_names_the_range),
		cmocka_unit_test(the_manual_page_has_every_parameter),
		cmocka_unit_test(the_variant_follows_the_kernels_description),
		cmocka_unit_test(a_kernel_without_a_description_is_told),
		cmocka_unit_test(an_old_kernel_carries_them_reduced),
		cmocka_unit_test(observers_see_base_units),
		cmocka_unit_test(state_of_another_version_is_refused),
		cmocka_unit_test(a_reader_without_a_map_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
