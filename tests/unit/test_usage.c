/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "base/usage.h"

#include <getopt.h>
#include <unistd.h>

enum {
	OPTION_DUMP = PEP_USAGE_LONG
};

static const struct pep_usage_option options[] = {
	{'c', "config", "FILE", "read FILE"},
	{'j', "json", NULL, "print JSON"},
	{OPTION_DUMP, "dump-a-very-long-name-of-an-option", NULL, "first line\nsecond line"},
	{0},
};

static const struct pep_usage usage = {
	.program = "prog",
	.synopsis = "[OPTION...]",
	.summary = "Does things.",
	.options = options,
	.more = "The end.\n",
};

static const struct pep_usage ordered = {
	.program = "prog",
	.synopsis = "[OPTION...] COMMAND",
	.summary = "Does things.",
	.options = options,
	.in_order = true,
};

/* What was written to @fd while @call ran; the caller frees it. */
static char *captured(int fd, int (*call)(int argc, char **argv), int argc, char **argv, int *ret)
{
	char *text = calloc(1, 8192);
	FILE *file = tmpfile();
	int saved = dup(fd);

	assert_non_null(text);
	assert_non_null(file);
	fflush(NULL);
	dup2(fileno(file), fd);
	*ret = call(argc, argv);
	fflush(NULL);
	dup2(saved, fd);
	close(saved);
	rewind(file);
	assert_true(fread(text, 1, 8191, file) < 8191);
	fclose(file);
	return text;
}

static int next(int argc, char **argv)
{
	return pep_usage_next(&usage, argc, argv);
}

static char **words(int *ret_count, const char *line)
{
	static char buffer[256];
	static char *argv[16];
	int count = 0;

	snprintf(buffer, sizeof(buffer), "%s", line);
	for (char *word = strtok(buffer, " "); word; word = strtok(NULL, " "))
		argv[count++] = word;
	argv[count] = NULL;
	*ret_count = count;
	optind = 0;
	return argv;
}

static void options_are_returned_with_their_arguments(void **state)
{
	int argc;
	char **argv =
		words(&argc, "prog word -j -cfile --config=other --dump-a-very-long-name-of-an"
			     "-option last");

	(void)state;
	assert_int_equal(pep_usage_next(&usage, argc, argv), 'j');
	assert_int_equal(pep_usage_next(&usage, argc, argv), 'c');
	assert_string_equal(optarg, "file");
	assert_int_equal(pep_usage_next(&usage, argc, argv), 'c');
	assert_string_equal(optarg, "other");
	assert_int_equal(pep_usage_next(&usage, argc, argv), OPTION_DUMP);
	assert_int_equal(pep_usage_next(&usage, argc, argv), PEP_USAGE_END);
	assert_string_equal(argv[optind], "word");
	assert_string_equal(argv[optind + 1], "last");
}

static void options_of_a_sub_command_are_left_to_it(void **state)
{
	int argc;
	char **argv = words(&argc, "prog -j status -c x");

	(void)state;
	assert_int_equal(pep_usage_next(&ordered, argc, argv), 'j');
	assert_int_equal(pep_usage_next(&ordered, argc, argv), PEP_USAGE_END);
	assert_string_equal(argv[optind], "status");
}

static void wrong_options_are_named_in_one_line(void **state)
{
	static const struct {
		const char *line, *expected;
	} cases[] = {
		{"prog --nope", "prog: option \"--nope\" is unknown or takes no value; "
				"try prog --help\n"},
		{"prog word --nope", "prog: option \"--nope\" is unknown or takes no value; "
				     "try prog --help\n"},
		{"prog --json=x", "prog: option \"--json=x\" is unknown or takes no value; "
				  "try prog --help\n"},
		{"prog -x", "prog: unknown option \"-x\"; try prog --help\n"},
		{"prog -xj", "prog: unknown option \"-x\"; try prog --help\n"},
		{"prog -c", "prog: option \"-c\" needs a value; try prog --help\n"},
		{"prog --config", "prog: option \"--config\" needs a value; try prog --help\n"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		int argc, result;
		char **argv = words(&argc, cases[i].line);
		char *text = captured(STDERR_FILENO, next, argc, argv, &result);

		assert_int_equal(result, PEP_USAGE_ERROR);
		assert_string_equal(text, cases[i].expected);
		free(text);
	}
}

static void help_shows_the_same_table(void **state)
{
	int argc, result;
	char **argv = words(&argc, "prog --help");
	char *text = captured(STDOUT_FILENO, next, argc, argv, &result);

	(void)state;
	assert_int_equal(result, PEP_USAGE_DONE);
	assert_string_equal(text, "Usage: prog [OPTION...]\n"
				  "Does things.\n"
				  "\n"
				  "  -c, --config=FILE         read FILE\n"
				  "  -j, --json                print JSON\n"
				  "      --dump-a-very-long-name-of-an-option\n"
				  "                            first line\n"
				  "                            second line\n"
				  "  -h, --help                print this help and end\n"
				  "      --version             print the version and end\n"
				  "\n"
				  "The end.\n");
	free(text);
}

static void version_is_answered(void **state)
{
	int argc, result;
	char **argv = words(&argc, "prog --version");
	char *text = captured(STDOUT_FILENO, next, argc, argv, &result);

	(void)state;
	assert_int_equal(result, PEP_USAGE_DONE);
	assert_int_equal(strncmp(text, "prog ", 5), 0);
	assert_true(text[5] >= '0' && text[5] <= '9');
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_returned_with_their_arguments),
		cmocka_unit_test(options_of_a_sub_command_are_left_to_it),
		cmocka_unit_test(wrong_options_are_named_in_one_line),
		cmocka_unit_test(help_shows_the_same_table),
		cmocka_unit_test(version_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
