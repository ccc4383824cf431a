/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "base/units.h"

#include <errno.h>

typedef int (*parse_fn)(const char *text, uint64_t *ret);

struct reading {
	parse_fn parse;
	const char *text;
	uint64_t value;
};

static void numbers_with_units_are_read_exactly(void **state)
{
	static const struct reading cases[] = {
		{pep_units_parse_size, "0B", 0},
		{pep_units_parse_size, "1B", 1},
		{pep_units_parse_size, "1kB", 1000},
		{pep_units_parse_size, "1KiB", 1024},
		{pep_units_parse_size, "256KiB", 262144},
		{pep_units_parse_size, "1.5MiB", 1572864},
		{pep_units_parse_size, "0.5KiB", 512},
		{pep_units_parse_size, "2GB", 2000000000},
		{pep_units_parse_size, "1TiB", 1ull << 40},
		{pep_units_parse_size, "18446744073709551615B", UINT64_MAX},
		{pep_units_parse_size, "16777215TiB", 16777215ull << 40},
		{pep_units_parse_time, "1ms", 1},
		{pep_units_parse_time, "1.5s", 1500},
		{pep_units_parse_time, "5min", 300000},
		{pep_units_parse_time, "24h", 86400000},
		{pep_units_parse_rate, "500Mbit/s", 500000000},
		{pep_units_parse_rate, "2.5Gbit/s", 2500000000},
		{pep_units_parse_rate, "9.6kbit/s", 9600},
		{pep_units_parse_rate, "1bit/s", 1},
		{pep_units_parse_percent, "150%", 150},
		{pep_units_parse_count, "007", 7},
		{pep_units_parse_count, "18446744073709551615", UINT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		uint64_t value = 99;
		int err = cases[i].parse(cases[i].text, &value);

		if (err || value != cases[i].value)
			fail_msg("\"%s\": error %d, value %llu, expected %llu", cases[i].text, err,
				 (unsigned long long)value, (unsigned long long)cases[i].value);
	}
}

struct refusal {
	parse_fn parse;
	const char *text;
	int err;
};

static void wrong_numbers_are_refused_and_change_nothing(void **state)
{
	static const struct refusal cases[] = {
		{pep_units_parse_size, "", -EINVAL},
		{pep_units_parse_size, "1", -ENODATA},
		{pep_units_parse_size, "0", -ENODATA},
		{pep_units_parse_size, "1.5", -ENODATA},
		{pep_units_parse_size, "KiB", -EINVAL},
		{pep_units_parse_size, "1 KiB", -EINVAL},
		{pep_units_parse_size, " 1KiB", -EINVAL},
		{pep_units_parse_size, "1KiB ", -EINVAL},
		{pep_units_parse_size, "1kib", -EINVAL},
		{pep_units_parse_size, "1K", -EINVAL},
		{pep_units_parse_size, "-1KiB", -EINVAL},
		{pep_units_parse_size, "+1KiB", -EINVAL},
		{pep_units_parse_size, "0x10B", -EINVAL},
		{pep_units_parse_size, "1e3B", -EINVAL},
		{pep_units_parse_size, "1.B", -EINVAL},
		{pep_units_parse_size, ".5KiB", -EINVAL},
		{pep_units_parse_size, "1.5B", -EINVAL},
		{pep_units_parse_size, "0.0001KiB", -EINVAL},
		{pep_units_parse_size, "1.0000000000KiB", -EINVAL},
		{pep_units_parse_size, "18446744073709551616B", -ERANGE},
		{pep_units_parse_size, "16777216TiB", -ERANGE},
		{pep_units_parse_size, "0.999999999TiB", -ERANGE},
		{pep_units_parse_size, "99999999999999999999999KiB", -ERANGE},
		{pep_units_parse_time, "30", -ENODATA},
		{pep_units_parse_time, "30sec", -EINVAL},
		{pep_units_parse_time, "0.5ms", -EINVAL},
		{pep_units_parse_rate, "10Mbps", -EINVAL},
		{pep_units_parse_rate, "10", -ENODATA},
		{pep_units_parse_percent, "150", -ENODATA},
		{pep_units_parse_percent, "1.5%", -EINVAL},
		{pep_units_parse_count, "", -EINVAL},
		{pep_units_parse_count, "1x", -EINVAL},
		{pep_units_parse_count, "-1", -EINVAL},
		{pep_units_parse_count, "18446744073709551616", -ERANGE},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		uint64_t value = 99;
		int err = cases[i].parse(cases[i].text, &value);

		if (err != cases[i].err || value != 99)
			fail_msg("\"%s\": error %d, expected %d; value %llu", cases[i].text, err,
				 cases[i].err, (unsigned long long)value);
	}
}

static void exact_texts_are_short_and_read_back(void **state)
{
	static const struct {
		uint64_t value;
		const char *size, *time;
	} cases[] = {
		{0, "0B", "0ms"},
		{1, "1B", "1ms"},
		{1000, "1kB", "1s"},
		{1024, "1KiB", "1024ms"},
		{1500, "1500B", "1500ms"},
		{60000, "60kB", "1min"},
		{300000, "300kB", "5min"},
		{262144, "256KiB", "262144ms"},
		{3600000, "3600kB", "1h"},
		{UINT64_MAX, "18446744073709551615B", "18446744073709551615ms"},
	};
	char buffer[PEP_UNITS_TEXT_SIZE];
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_string_equal(pep_units_exact_size(buffer, cases[i].value), cases[i].size);
		assert_int_equal(pep_units_parse_size(buffer, &value), 0);
		assert_true(value == cases[i].value);
		assert_string_equal(pep_units_exact_time(buffer, cases[i].value), cases[i].time);
		assert_int_equal(pep_units_parse_time(buffer, &value), 0);
		assert_true(value == cases[i].value);
	}
	assert_string_equal(pep_units_exact_percent(buffer, 150), "150%");
	assert_string_equal(pep_units_exact_count(buffer, 150), "150");
}

static void eyes_get_three_digits(void **state)
{
	static const struct {
		uint64_t value;
		const char *bytes, *rate, *time;
	} cases[] = {
		{0, "0 B", "0 bit/s", "0 us"},
		{1, "1 B", "1.00 bit/s", "1 us"},
		{999, "999 B", "999 bit/s", "999 us"},
		{1000, "1000 B", "1.00 kbit/s", "1.00 ms"},
		{1023, "1023 B", "1.02 kbit/s", "1.02 ms"},
		{1024, "1.00 KiB", "1.02 kbit/s", "1.02 ms"},
		{12345, "12.1 KiB", "12.3 kbit/s", "12.3 ms"},
		{999600, "976 KiB", "1.00 Mbit/s", "1.00 s"},
		{93400000, "89.1 MiB", "93.4 Mbit/s", "1 min 33 s"},
		{3900000000, "3.63 GiB", "3.90 Gbit/s", "1 h 05 min"},
	};
	char buffer[PEP_UNITS_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_string_equal(pep_units_format_bytes(buffer, cases[i].value), cases[i].bytes);
		assert_string_equal(pep_units_format_rate(buffer, (double)cases[i].value),
				    cases[i].rate);
		assert_string_equal(pep_units_format_time(buffer, cases[i].value), cases[i].time);
	}
}

static void rates_that_are_no_number_print_as_zero(void **state)
{
	char buffer[PEP_UNITS_TEXT_SIZE];

	(void)state;
	assert_string_equal(pep_units_format_rate(buffer, -5), "0 bit/s");
	assert_string_equal(pep_units_format_rate(buffer, __builtin_nan("")), "0 bit/s");
}

static void the_largest_values_fit_the_buffer(void **state)
{
	char buffer[PEP_UNITS_TEXT_SIZE];

	(void)state;
	assert_string_equal(pep_units_format_bytes(buffer, UINT64_MAX), "16384 PiB");
	assert_string_equal(pep_units_format_time(buffer, UINT64_MAX), "5124095576 h 01 min");
	assert_true(strlen(pep_units_format_rate(buffer, 1e300)) < PEP_UNITS_TEXT_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_with_units_are_read_exactly),
		cmocka_unit_test(wrong_numbers_are_refused_and_change_nothing),
		cmocka_unit_test(exact_texts_are_short_and_read_back),
		cmocka_unit_test(eyes_get_three_digits),
		cmocka_unit_test(rates_that_are_no_number_print_as_zero),
		cmocka_unit_test(the_largest_values_fit_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
