/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The manual page and the example file say what the schema says. */
#include "unit/unit.h"

#include "base/conf.h"

static char *file_read(const char *name)
{
	char path[4096], *text = calloc(1, 1 << 20);
	size_t length;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", PEP_SOURCE_DIR, name);
	in = fopen(path, "r");
	assert_non_null(text);
	assert_non_null(in);
	length = fread(text, 1, (1 << 20) - 1, in);
	assert_true(length > 0 && length < (1 << 20) - 1);
	fclose(in);
	return text;
}

/* A copy of what lies between @start and the next @end. */
static char *part_of(const char *text, const char *start, const char *end)
{
	const char *from = strstr(text, start), *to;

	if (!from)
		fail_msg("\"%s\" is missing", start);
	from += strlen(start);
	to = strstr(from, end);
	return to ? strndup(from, (size_t)(to - from)) : strdup(from);
}

/* What the manual page says of @key: from its item to the first "Default:" line. */
static char *item_of(const char *section, const struct pep_conf_key *key)
{
	char start[128];

	snprintf(start, sizeof(start), "\n.It Ic %s = ", key->key);
	return part_of(section, start, "\n.Sh");
}

static void the_manual_page_has_every_key_with_its_default(void **state)
{
	char *page = file_read("doc/edgepep.conf.5");
	const struct pep_conf_key *key;

	(void)state;
	for (size_t i = 0; (key = pep_conf_key_get(i)); i++) {
		char heading[128], expected[128], *section, *item, *value;

		if (key->section[0])
			snprintf(heading, sizeof(heading), "\n.Sh SECTION %s", key->section);
		else
			snprintf(heading, sizeof(heading), "\n.Sh GENERAL KEYS");
		section = part_of(page, heading, "\n.Sh");
		item = item_of(section, key);
		value = strstr(item, "\nDefault: ");
		snprintf(expected, sizeof(expected), "\nDefault: %s\n", key->value);
		if (!value || strncmp(value, expected, strlen(expected)) != 0)
			fail_msg("section \"%s\", %s: the manual page does not say \"%s\"",
				 key->section, key->key, key->value);
		free(item);
		free(section);
	}
	free(page);
}

static void the_manual_page_has_no_key_too_many(void **state)
{
	char *page = file_read("doc/edgepep.conf.5");
	size_t items = 0, keys = 0;

	(void)state;
	for (const char *at = page; (at = strstr(at, "\n.It Ic ")); at++)
		items++;
	while (pep_conf_key_get(keys))
		keys++;
	assert_int_equal(items, keys);
	free(page);
}

static void the_example_gives_the_defaults(void **state)
{
	char *text = file_read("conf/edgepep.conf");
	struct pep_conf *empty = NULL, *example = NULL;

	(void)state;
	assert_int_equal(pep_conf_new(&empty), 0);
	assert_int_equal(pep_conf_parse("edgepep.conf", text, strlen(text), stderr, &example), 0);
	assert_memory_equal(empty, example, sizeof(*empty));
	pep_conf_free(empty);
	pep_conf_free(example);
	free(text);
}

/* Takes away the "#" before each key and each section that is commented out. */
static void uncomment(char *text)
{
	for (char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
		char *mark = at + strspn(at, "\t");
		size_t word = strspn(mark + 1, "abcdefghijklmnopqrstuvwxyz_-");

		if (mark[0] == '#' && (strncmp(mark + 1 + word, " = ", 3) == 0 || mark[1] == '}' ||
				       strncmp(mark, "#class bulk {", 13) == 0 ||
				       strncmp(mark, "#cca pep_bbr_a {", 16) == 0))
			mark[0] = ' ';
	}
}

static void every_line_of_the_example_holds_when_uncommented(void **state)
{
	char *text = file_read("conf/edgepep.conf");
	struct pep_conf *empty = NULL, *example = NULL;
	const struct pep_conf_key *key;

	(void)state;
	uncomment(text);
	assert_int_equal(pep_conf_new(&empty), 0);
	assert_int_equal(pep_conf_parse("edgepep.conf", text, strlen(text), stderr, &example), 0);
	assert_string_equal(example->wireless_interfaces[0], "radio0");
	assert_int_equal(example->n_classes, 1);

	/* apart from interfaces and the class, the values shown are the defaults */
	memset(example->wireless_interfaces, 0, sizeof(example->wireless_interfaces));
	memset(example->wired_interfaces, 0, sizeof(example->wired_interfaces));
	example->n_wireless_interfaces = example->n_wired_interfaces = 0;
	memset(example->classes, 0, sizeof(example->classes));
	example->n_classes = 0;
	assert_memory_equal(empty, example, sizeof(*empty));

	for (size_t i = 0; (key = pep_conf_key_get(i)); i++) {
		char heading[128], line[128], *section;

		snprintf(heading, sizeof(heading), "\n%s%s", key->section[0] ? "" : "#",
			 strcmp(key->section, "class") == 0 ? " class bulk"
			 : strcmp(key->section, "cca") == 0 ? " cca"
							    : key->section);
		section = part_of(text, heading, "\n}");
		snprintf(line, sizeof(line), "%s = ", key->key);
		assert_contains(section, line);
		free(section);
	}
	pep_conf_free(empty);
	pep_conf_free(example);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_manual_page_has_every_key_with_its_default),
		cmocka_unit_test(the_manual_page_has_no_key_too_many),
		cmocka_unit_test(the_example_gives_the_defaults),
		cmocka_unit_test(every_line_of_the_example_holds_when_uncommented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
