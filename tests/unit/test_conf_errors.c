/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whatever is wrong gives one line that names file, line, value and what was expected. */
#include "unit/unit.h"

#include "base/conf.h"

#include <errno.h>

struct mistake {
	const char *text;
	const char *message; /* the whole of it, without the line end */
};

/* What is said about @text, which must be refused. The caller frees it. */
static char *errors_of(const char *text, size_t length)
{
	struct pep_conf *conf = (void *)1;
	char *errors = NULL;
	size_t size;
	FILE *out = open_memstream(&errors, &size);
	int err;

	assert_non_null(out);
	err = pep_conf_parse("t.conf", text, length, out, &conf);
	fclose(out);
	if (err != -EINVAL || conf != (void *)1)
		fail_msg("\"%s\": error %d, expected %d", text, err, -EINVAL);
	return errors;
}

static void check(const struct mistake *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *errors = errors_of(cases[i].text, strlen(cases[i].text));
		char expected[512];

		snprintf(expected, sizeof(expected), "%s\n", cases[i].message);
		if (strcmp(errors, expected) != 0)
			fail_msg("\"%s\" gives \"%s\", expected \"%s\"", cases[i].text, errors,
				 expected);
		free(errors);
	}
}

static void unknown_words_get_a_suggestion(void **state)
{
	static const struct mistake cases[] = {
		{"acept = early", "t.conf:1: unknown key \"acept\"; did you mean \"accept\"?"},
		{"# one\n\n// three\n/* four\nfive */ wrokers = 1",
		 "t.conf:5: unknown key \"wrokers\"; did you mean \"workers\"?"},
		{"relay {\n  memroy = 1MiB\n}",
		 "t.conf:2: unknown key \"memroy\"; did you mean \"memory\"?"},
		{"memory = 1MiB",
		 "t.conf:1: unknown key \"memory\"; did you mean \"memory\" in section \"relay\"?"},
		{"relay { workers = 1 }", "t.conf:1: unknown key \"workers\"; did you mean "
					  "\"workers\", outside of any section?"},
		{"lge wired { }", "t.conf:1: unknown key \"lge\"; did you mean \"leg\"?"},
		{"leg wired { mss = 1400 B }", "t.conf:1: unknown key \"B\"; write a unit right "
					       "behind its number, without a blank"},
		{"xyzzy-plugh-plover = 1", "t.conf:1: unknown key \"xyzzy-plugh-plover\""},
		{"leg wirless { }", "t.conf:1: leg \"wirless\" above: must be wireless or wired"},
	};

	(void)state;
	check(cases, COUNT_OF(cases));
}

static void wrong_values_tell_what_was_expected(void **state)
{
	static const struct mistake cases[] = {
		{"accept = maybe", "t.conf:1: accept = \"maybe\": must be verified or early"},
		{"log-level = loud",
		 "t.conf:1: log-level = \"loud\": must be error, warning, notice, "
		 "info or debug"},
		{"connect-timeout = 30", "t.conf:1: connect-timeout = \"30\": the unit is missing; "
					 "expected a time such as 30s (ms, s, min, h)"},
		{"idle-timeout = 0",
		 "t.conf:1: idle-timeout = \"0\": the unit is missing; expected "
		 "a time such as 30s (ms, s, min, h), or off"},
		{"relay { memory = 64K }",
		 "t.conf:1: memory = \"64K\": expected a size such as 256KiB "
		 "(B, kB, KiB, MB, MiB, GB, GiB)"},
		{"relay { memory = 99999999999999999999TiB }",
		 "t.conf:1: memory = \"99999999999999999999TiB\": must be between 1MiB and 1TiB"},
		{"leg wired { keepalive-idle = 1500ms }",
		 "t.conf:1: keepalive-idle = \"1500ms\": expected a time of whole seconds such as "
		 "30s "
		 "(s, min, h), or off"},
		{"workers = 65", "t.conf:1: workers = \"65\": must be between 1 and 64, or auto"},
		{"workers = 0", "t.conf:1: workers = \"0\": must be between 1 and 64, or auto"},
		{"workers = off", "t.conf:1: workers = \"off\": expected a plain number, or auto"},
		{"relay { buffer-gain = 1.5 }", "t.conf:1: buffer-gain = \"1.5\": the unit is "
						"missing; expected a percentage such as 150%"},
		{"run-dir = run", "t.conf:1: run-dir = \"run\": must be an absolute path"},
		{"user = ''", "t.conf:1: user = \"\": must have 1 to 31 characters"},
		{"user = 'a;b'",
		 "t.conf:1: user = \"a;b\": must be made of letters, digits and _-."},
		{"leg wired { congestion-control = a_name_of_16_chs }",
		 "t.conf:1: congestion-control = \"a_name_of_16_chs\": must have 1 to 15 "
		 "characters"},
		{"steering { mark-mask = 123 }",
		 "t.conf:1: mark-mask = \"123\": expected a mask of "
		 "32 bits such as 0x07ff0000"},
		{"steering { mark-mask = 0x123456789 }",
		 "t.conf:1: mark-mask = \"0x123456789\": expected a mask of 32 bits such as "
		 "0x07ff0000"},
		{"steering { mark-mask = 0xffff00ff }",
		 "t.conf:1: mark-mask = \"0xffff00ff\": the "
		 "mask has a gap; its bits must be contiguous"},
		{"steering { mark-mask = 0x3ff0 }",
		 "t.conf:1: mark-mask = \"0x3ff0\": the mask has "
		 "10 bits; at least 11 are needed"},
		{"monitor { listen = localhost:1 }",
		 "t.conf:1: listen = \"localhost:1\": expected address:port, [address]:port or "
		 "unix:/path; the address as a number"},
		{"monitor { listen = \"::1:80\" }", "t.conf:1: listen = \"::1:80\": expected "
						    "address:port, [address]:port or unix:/path; "
						    "the address as a number"},
		{"monitor { listen = 127.0.0.1:0 }",
		 "t.conf:1: listen = \"127.0.0.1:0\": the port is "
		 "a number 1 to 65535"},
	};

	(void)state;
	check(cases, COUNT_OF(cases));
}

static void wrong_list_elements_are_named(void **state)
{
	static const struct mistake cases[] = {
		{"wired-interfaces = {\n\"a\",\n\"sixteen-letters-\"}",
		 "t.conf:3: wired-interfaces = \"sixteen-letters-\": an interface name has 1 to 15 "
		 "characters"},
		{"wired-interfaces = {\"eth+\"}", "t.conf:1: wired-interfaces = \"eth+\": an "
						  "interface name is made of letters, digits "
						  "and ._-@"},
		{"wired-interfaces = {\"-j\"}",
		 "t.conf:1: wired-interfaces = \"-j\": not a name that an interface can have"},
		{"bypass { clients = {10.0.0.0/33} }",
		 "t.conf:1: clients = \"10.0.0.0/33\": a prefix length is 0 to 32 here"},
		{"bypass { clients = {fd00::/129} }",
		 "t.conf:1: clients = \"fd00::/129\": a prefix length is 0 to 128 here"},
		{"bypass { clients = {10.1.2.3/16} }",
		 "t.conf:1: clients = \"10.1.2.3/16\": the address has bits behind the prefix; did "
		 "you "
		 "mean \"10.1.0.0/16\"?"},
		{"bypass { servers = {example.org} }",
		 "t.conf:1: servers = \"example.org\": expected an address prefix such as "
		 "10.1.0.0/16 "
		 "or fd00::/8"},
		{"bypass { ports = {0} }",
		 "t.conf:1: ports = \"0\": expected a port 1 to 65535, or two as in 8000-8100"},
		{"bypass { ports = {65536} }",
		 "t.conf:1: ports = \"65536\": expected a port 1 to 65535, or two as in 8000-8100"},
		{"bypass { ports = {9-} }",
		 "t.conf:1: ports = \"9-\": expected a port 1 to 65535, or two as in 8000-8100"},
		{"bypass { ports = {9-8} }",
		 "t.conf:1: ports = \"9-8\": the range ends before it begins"},
		{"cca x { param = {ratio} }",
		 "t.conf:1: param = \"ratio\": expected key=value, as in \"ratio=2.0\""},
		{"cca x { param = {\"a=1\", \"a=2\"} }",
		 "t.conf:1: param = \"a=2\": this key is given twice"},
	};

	(void)state;
	check(cases, COUNT_OF(cases));
}

static void values_that_do_not_fit_together_are_told(void **state)
{
	static const struct mistake cases[] = {
		{"relay {\n buffer-min = 33MiB }",
		 "t.conf:2: relay: buffer-min = 33MiB is above buffer-max = 32MiB"},
		{"relay { memory = 1MiB }",
		 "t.conf: relay: buffer-max = 32MiB is above memory = 1MiB"},
		{"workers = 2\nsteering { first-queue = 65535 }",
		 "t.conf:2: steering: first-queue = 65535 leaves no queue for the last of 2 "
		 "workers; "
		 "at most 65534"},
		{"workers = 64 steering { first-port = 65473 }",
		 "t.conf:1: steering: first-port = 65473 leaves no port for the last of 64 "
		 "workers; "
		 "at most 65472"},
		{"steering { table = 254 }", "t.conf:1: steering: table is one of the kernel's own "
					     "tables (253, 254, 255); choose another"},
		{"wired-interfaces = {a, b}\nwireless-interfaces = b",
		 "t.conf:1: wired-interfaces: \"b\" is in wireless-interfaces too; an interface "
		 "has "
		 "one side"},
		{"wired-interfaces = {a, b, a}",
		 "t.conf:1: wired-interfaces: \"a\" is listed twice"},
		{"class x {\n}", "t.conf:2: class \"x\" above matches nothing; give it clients, "
				 "servers or ports"},
		{"class default { ports = 1 }",
		 "t.conf:1: class \"default\" above: the name stands for flows of no class; choose "
		 "another"},
		{"class 'a b' { ports = 1 }",
		 "t.conf:1: class \"a b\" above: the name must be made "
		 "of letters, digits and _-."},
	};

	(void)state;
	check(cases, COUNT_OF(cases));
}

static void a_second_value_in_one_file_is_refused(void **state)
{
	static const struct mistake cases[] = {
		{"workers = 1\nworkers = 1",
		 "t.conf:1: workers is given again further down; keep one"},
		{"wired-interfaces = {a, b}\nwired-interfaces = {c, d}",
		 "t.conf:1: wired-interfaces is given again further down; keep one"},
		{"wired-interfaces = {a, b}\nwired-interfaces = {}",
		 "t.conf:1: wired-interfaces is given again further down; keep one"},
		{"relay { splice = on }\nrelay { splice = on }",
		 "t.conf:1: splice is given again further down; keep one"},
		{"leg wired { }\nleg wired { }", "t.conf:2: a second section \"wired\"; keep one"},
		{"class a { ports = 1 }\nclass a { ports = 2 }",
		 "t.conf:2: a second section \"a\"; keep one"},
	};

	(void)state;
	check(cases, COUNT_OF(cases));
}

static void wrong_syntax_is_located(void **state)
{
	static const struct mistake cases[] = {
		{"workers 1", "t.conf:1: missing equal sign after option 'workers'"},
		{"cca x { param = {a=1} }",
		 "t.conf:1: unexpected token '='; a value that contains it needs quotes"},
		{"workers =", "t.conf:1: premature end of file"},
		{"relay\n{\n", "t.conf:2: this \"{\" is never closed"},
		{"relay {\n}\n}", "t.conf:3: this \"}\" closes nothing"},
		{"\nuser = \"a\nb\"", "t.conf:2: this string is not closed on its line"},
		{"\n/* user = a\n\n", "t.conf:2: this comment is never closed; expected */"},
		{"user = \"a\\x00b\"", "t.conf:1: a backslash has no meaning here; remove it"},
		{"user = ${HOME}", "t.conf:1: ${...} is not replaced here; write the value itself"},
		{"user = \"${HOME}\"",
		 "t.conf:1: ${...} is not replaced here; write the value itself"},
		{"relay|memory = 1MiB", "t.conf:1: unexpected \"|\""},
		{"wired-interfaces += a", "t.conf:1: unexpected \"+\"; a list is given as a whole"},
		{"bypass { ports = * }", "t.conf:1: unexpected \"*\""},
		{"user = a\x01", "t.conf:1: a control character; expected plain text"},
		{"user = \"a\x1b[31m\"", "t.conf:1: a control character; expected plain text"},
		{"\"\" = 1", "t.conf:1: not understood"},
		{"include(\"/etc/passwd\")", "t.conf:1: unknown key \"include\""},
		{"leg { }", "t.conf:1: missing title for section 'leg'"},
	};
	char *errors;

	(void)state;
	check(cases, COUNT_OF(cases));

	errors = errors_of("user = a\0b", 10);
	assert_string_equal(errors, "t.conf:1: a control character; expected plain text\n");
	free(errors);
}

static void several_wrong_values_give_a_line_each(void **state)
{
	static const char text[] = "accept = x\nsource = x\nleg wired { mss = 1B }\n";
	char *errors = errors_of(text, strlen(text));

	(void)state;
	assert_string_equal(errors,
			    "t.conf:1: accept = \"x\": must be verified or early\n"
			    "t.conf:2: source = \"x\": must be client or gateway\n"
			    "t.conf:3: mss = \"1B\": must be between 88B and 32767B, or auto\n");
	free(errors);
}

/* Fills a list or the classes one beyond what there is room for. */
static void too_many_entries_are_refused(void **state)
{
	char text[8192], *errors;
	size_t used = 0;

	(void)state;
	used += (size_t)snprintf(text, sizeof(text), "bypass { ports = {1");
	for (int i = 0; i < PEP_CONF_MAX_PORTS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, ", %d", i + 2);
	snprintf(text + used, sizeof(text) - used, "} }");
	errors = errors_of(text, strlen(text));
	assert_string_equal(errors,
			    "t.conf:1: ports = \"65\": too many entries; the list takes 64\n");
	free(errors);

	used = 0;
	for (int i = 0; i <= PEP_CONF_MAX_CLASSES; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "class c%d { ports = 1 }\n", i);
	errors = errors_of(text, strlen(text));
	assert_string_equal(errors, "t.conf:33: class \"c32\" above: too many classes; there is "
				    "room for 32\n");
	free(errors);
}

static void a_file_with_an_error_does_not_spoil_the_next(void **state)
{
	static const char *const broken[] = {
		"/* open", "user = 'open",           "relay {", "accept = x", "relay { memory = ",
		"{",       "workers = 1 workers = 2"};
	struct pep_conf *conf = NULL;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(broken); i++) {
		free(errors_of(broken[i], strlen(broken[i])));
		assert_int_equal(pep_conf_parse("t.conf", "workers = 7", 11, stderr, &conf), 0);
		assert_int_equal(conf->workers, 7);
		pep_conf_free(conf);
		conf = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_words_get_a_suggestion),
		cmocka_unit_test(wrong_values_tell_what_was_expected),
		cmocka_unit_test(wrong_list_elements_are_named),
		cmocka_unit_test(values_that_do_not_fit_together_are_told),
		cmocka_unit_test(a_second_value_in_one_file_is_refused),
		cmocka_unit_test(wrong_syntax_is_located),
		cmocka_unit_test(several_wrong_values_give_a_line_each),
		cmocka_unit_test(too_many_entries_are_refused),
		cmocka_unit_test(a_file_with_an_error_does_not_spoil_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
