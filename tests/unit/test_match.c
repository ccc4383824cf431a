/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "base/conf.h"

#include <arpa/inet.h>

/* IPv4 comes v4-mapped, as everywhere inside. */
static struct in6_addr address(const char *text)
{
	struct in6_addr addr;
	char mapped[64];

	if (!strchr(text, ':')) {
		snprintf(mapped, sizeof(mapped), "::ffff:%s", text);
		text = mapped;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &addr), 1);
	return addr;
}

static struct pep_conf *conf_of(const char *text)
{
	struct pep_conf *conf = NULL;

	assert_int_equal(pep_conf_parse("t.conf", text, strlen(text), stderr, &conf), 0);
	return conf;
}

static void a_prefix_contains_its_addresses_only(void **state)
{
	static const struct {
		const char *prefix, *addr;
		bool inside;
	} cases[] = {
		{"10.1.0.0/16", "10.1.0.0", true},
		{"10.1.0.0/16", "10.1.255.255", true},
		{"10.1.0.0/16", "10.2.0.0", false},
		{"10.1.0.0/16", "10.0.255.255", false},
		{"10.1.0.0/17", "10.1.127.255", true},
		{"10.1.0.0/17", "10.1.128.0", false},
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.0", false},
		{"0.0.0.0/0", "255.255.255.255", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"0.0.0.0/0", "::1", false},
		{"::/0", "2001:db8::1", true},
		{"::/0", "10.0.0.1", true},
		{"2001:db8::/33", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false},
		{"2001:db8::1/128", "2001:db8::1", true},
		{"2001:db8::1/128", "2001:db8::", false},
		{"10.0.0.0/8", "::10.0.0.1", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct in6_addr addr = address(cases[i].addr);
		struct pep_conf *conf;
		char text[128];

		snprintf(text, sizeof(text), "bypass { clients = {\"%s\"} }", cases[i].prefix);
		conf = conf_of(text);
		if (pep_prefix_contains(&conf->bypass.clients[0], &addr) != cases[i].inside)
			fail_msg("%s in %s: expected %d", cases[i].addr, cases[i].prefix,
				 cases[i].inside);
		pep_conf_free(conf);
	}
}

static bool bypassed(const struct pep_conf *conf, const char *client, const char *server,
		     uint16_t port)
{
	struct in6_addr from = address(client), to = address(server);

	return pep_match_flow(&conf->bypass, &from, &to, port);
}

static void three_empty_lists_match_nothing(void **state)
{
	struct pep_conf *conf = conf_of("");

	(void)state;
	assert_false(bypassed(conf, "10.0.0.1", "192.0.2.1", 443));
	pep_conf_free(conf);
}

static void a_flow_must_match_each_list_that_is_not_empty(void **state)
{
	struct pep_conf *conf = conf_of("bypass { clients = {10.0.0.0/8, fd00::/8} "
					"ports = {22, 8000-8100} }");

	(void)state;
	assert_true(bypassed(conf, "10.0.0.1", "192.0.2.1", 22));
	assert_true(bypassed(conf, "fd00::1", "2001:db8::1", 8000));
	assert_true(bypassed(conf, "10.0.0.1", "192.0.2.1", 8100));
	assert_false(bypassed(conf, "10.0.0.1", "192.0.2.1", 7999));
	assert_false(bypassed(conf, "10.0.0.1", "192.0.2.1", 8101));
	assert_false(bypassed(conf, "11.0.0.1", "192.0.2.1", 22));
	pep_conf_free(conf);
}

static void the_first_class_that_matches_counts(void **state)
{
	struct pep_conf *conf = conf_of("class a { ports = {443} } "
					"class b { servers = {192.0.2.0/24} }");
	struct in6_addr client = address("10.0.0.1"), server = address("192.0.2.1"),
			other = address("198.51.100.1");
	unsigned int index = 99;

	(void)state;
	assert_ptr_equal(pep_conf_classify(conf, &client, &server, 443, &index), &conf->classes[0]);
	assert_int_equal(index, 0);
	assert_ptr_equal(pep_conf_classify(conf, &client, &server, 80, &index), &conf->classes[1]);
	assert_int_equal(index, 1);
	assert_null(pep_conf_classify(conf, &client, &other, 80, &index));
	assert_int_equal(index, 2);
	pep_conf_free(conf);
}

static void segments_have_names(void **state)
{
	(void)state;
	assert_string_equal(pep_segment_name(PEP_SEGMENT_WIRELESS), "wireless");
	assert_string_equal(pep_segment_name(PEP_SEGMENT_WIRED), "wired");
	assert_string_equal(pep_segment_name(PEP_SEGMENT_COUNT_), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_contains_its_addresses_only),
		cmocka_unit_test(three_empty_lists_match_nothing),
		cmocka_unit_test(a_flow_must_match_each_list_that_is_not_empty),
		cmocka_unit_test(the_first_class_that_matches_counts),
		cmocka_unit_test(segments_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
