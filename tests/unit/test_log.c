/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#define THREADS 4
#define LINES   200

static int saved_stderr = -1;
static FILE *caught;

/* From here on stderr goes to a file. */
static void catch_begin(void)
{
	fflush(stderr);
	caught = tmpfile();
	assert_non_null(caught);
	saved_stderr = dup(STDERR_FILENO);
	assert_true(dup2(fileno(caught), STDERR_FILENO) >= 0);
}

/* What was written since; the caller frees it. */
static char *catch_end(void)
{
	char *text = calloc(1, 1 << 20);

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	assert_non_null(text);
	rewind(caught);
	assert_true(fread(text, 1, (1 << 20) - 1, caught) < (1 << 20) - 1);
	fclose(caught);
	return text;
}

static void a_line_has_program_level_and_text(void **state)
{
	char *text;

	(void)state;
	pep_log_init("prog", PEP_LOG_LEVEL_DEBUG);
	catch_begin();
	pep_error("flow=%d gone", 7);
	pep_warning("two");
	pep_notice("three");
	pep_info("four");
	pep_debug("five");
	text = catch_end();
	assert_string_equal(text, "prog: error: flow=7 gone\n"
				  "prog: warning: two\n"
				  "prog: notice: three\n"
				  "prog: info: four\n"
				  "prog: debug: five\n");
	free(text);
}

static void under_the_journal_a_line_has_its_priority(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(setenv("JOURNAL_STREAM", "1:2", 1), 0);
	pep_log_init("prog", PEP_LOG_LEVEL_DEBUG);
	assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
	catch_begin();
	pep_error("a");
	pep_debug("b");
	text = catch_end();
	assert_string_equal(text, "<3>error: a\n<7>debug: b\n");
	free(text);
	pep_log_init("prog", PEP_LOG_LEVEL_NOTICE);
}

static void lines_below_the_level_are_counted_but_not_printed(void **state)
{
	uint64_t before = pep_log_count(PEP_LOG_LEVEL_INFO);
	char *text;

	(void)state;
	pep_log_set_level(PEP_LOG_LEVEL_NOTICE);
	assert_true(pep_log_enabled(PEP_LOG_LEVEL_NOTICE));
	assert_false(pep_log_enabled(PEP_LOG_LEVEL_INFO));
	catch_begin();
	pep_info("hidden");
	pep_notice("seen");
	pep_log_set_level(PEP_LOG_LEVEL_INFO);
	pep_info("now seen");
	text = catch_end();
	assert_string_equal(text, "prog: notice: seen\nprog: info: now seen\n");
	assert_int_equal(pep_log_count(PEP_LOG_LEVEL_INFO) - before, 2);
	free(text);
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
	char long_text[4096], *text;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	catch_begin();
	pep_error("%s", long_text);
	pep_error("next");
	text = catch_end();
	assert_true(strchr(text, '\n') - text < 1024);
	assert_true(strchr(text, '\n') - text > 1000);
	assert_string_equal(strchr(text, '\n'), "\nprog: error: next\n");
	free(text);
}

static void hostile_text_stays_on_its_line(void **state)
{
	char *text;

	(void)state;
	catch_begin();
	pep_error("name='%s'", "x\nprog: error: forged\r\x1b[2J\x7f\t");
	text = catch_end();
	assert_string_equal(text, "prog: error: name='x?prog: error: forged?"
				  "?[2J?"
				  "?'\n");
	free(text);
}

static void *write_lines(void *data)
{
	for (int i = 0; i < LINES; i++)
		pep_notice("thread=%d text=abcdefghijklmnopqrstuvwxyz", *(int *)data);
	return NULL;
}

static void threads_never_mix_lines(void **state)
{
	pthread_t threads[THREADS];
	int numbers[THREADS], lines = 0;
	char *text;

	(void)state;
	catch_begin();
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &numbers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	text = catch_end();
	for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
		int thread, used = 0;

		*end = '\0';
		assert_int_equal(sscanf(at, "prog: notice: thread=%d text=%n", &thread, &used), 1);
		assert_string_equal(at + used, "abcdefghijklmnopqrstuvwxyz");
		lines++;
	}
	assert_int_equal(lines, THREADS * LINES);
	free(text);
}

static void levels_have_names_that_read_back(void **state)
{
	enum pep_log_level level = PEP_LOG_LEVEL_DEBUG;

	(void)state;
	for (int i = 0; i < PEP_LOG_LEVEL_COUNT_; i++) {
		assert_int_equal(
			pep_log_level_parse(pep_log_level_name((enum pep_log_level)i), &level), 0);
		assert_int_equal(level, i);
	}
	assert_int_equal(pep_log_level_parse("loud", &level), -EINVAL);
	assert_int_equal(level, PEP_LOG_LEVEL_DEBUG);
	assert_string_equal(pep_log_level_name(PEP_LOG_LEVEL_COUNT_), "?");
}

static void a_repeated_message_passes_once_per_interval(void **state)
{
	struct pep_log_limit limit = {0};
	uint32_t suppressed = 99;

	(void)state;
	assert_true(pep_log_limit_ok(&limit, 1000, 100, &suppressed));
	assert_int_equal(suppressed, 0);
	suppressed = 99;
	assert_false(pep_log_limit_ok(&limit, 1000, 100, &suppressed));
	assert_false(pep_log_limit_ok(&limit, 1099, 100, &suppressed));
	assert_int_equal(suppressed, 99);
	assert_true(pep_log_limit_ok(&limit, 1100, 100, &suppressed));
	assert_int_equal(suppressed, 2);
	assert_true(pep_log_limit_ok(&limit, 1200, 100, &suppressed));
	assert_int_equal(suppressed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_program_level_and_text),
		cmocka_unit_test(under_the_journal_a_line_has_its_priority),
		cmocka_unit_test(lines_below_the_level_are_counted_but_not_printed),
		cmocka_unit_test(a_long_line_is_cut_and_still_ends),
		cmocka_unit_test(hostile_text_stays_on_its_line),
		cmocka_unit_test(threads_never_mix_lines),
		cmocka_unit_test(levels_have_names_that_read_back),
		cmocka_unit_test(a_repeated_message_passes_once_per_interval),
	};

	unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
