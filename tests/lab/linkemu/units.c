/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	double factor;
};

/*
 * Splits "12.5Mbit" into number and unit. Only digits and one dot: strtod alone would also take
 * hexadecimal, exponents, infinity and signs.
 */
static int split(const char *text, double *ret_number, const char **ret_unit)
{
	size_t digits = strspn(text, "0123456789");
	size_t length = digits;

	if (text[length] == '.') {
		size_t more = strspn(text + length + 1, "0123456789");

		digits += more;
		length += more + 1;
	}
	if (!digits || length > 20)
		return -EINVAL;
	*ret_number = strtod(text, NULL);
	*ret_unit = text + length;
	return 0;
}

static int scaled(const char *text, const struct unit *units, double max, double *ret)
{
	const char *name;
	double number;
	int err = split(text, &number, &name);

	if (err)
		return err;
	for (; units->name; units++) {
		if (strcasecmp(name, units->name))
			continue;
		if (number * units->factor > max)
			return -EINVAL;
		*ret = number * units->factor;
		return 0;
	}
	return -EINVAL;
}

static int scaled_integer(const char *text, const struct unit *units, double max, uint64_t *ret)
{
	double value;
	int err = scaled(text, units, max, &value);

	if (!err)
		*ret = (uint64_t)(value + 0.5);
	return err;
}

int pep_units_rate(const char *text, uint64_t *ret)
{
	static const struct unit units[] = {
		{"bit", 1}, {"Kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {NULL, 0},
	};

	return scaled_integer(text, units, 100e9, ret);
}

int pep_units_time(const char *text, uint64_t *ret)
{
	static const struct unit units[] = {
		{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0},
	};

	if (!strcmp(text, "0")) {
		*ret = 0;
		return 0;
	}
	return scaled_integer(text, units, 86400e9, ret);
}

int pep_units_size(const char *text, uint64_t *ret)
{
	static const struct unit units[] = {
		{"B", 1},        {"KB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
		{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {NULL, 0},
	};

	return scaled_integer(text, units, 4294967296.0, ret);
}

int pep_units_share(const char *text, double *ret)
{
	static const struct unit units[] = {{"%", 0.01}, {"", 1}, {NULL, 0}};

	return scaled(text, units, 1.0, ret);
}

int pep_units_number(const char *text, double max, double *ret)
{
	static const struct unit units[] = {{"", 1}, {NULL, 0}};

	return scaled(text, units, max, ret);
}
