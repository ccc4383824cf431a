/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Integer arithmetic throughout: what is read is exact or refused, never rounded. */
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KI (1ull << 10)
#define MI (1ull << 20)
#define GI (1ull << 30)
#define TI (1ull << 40)

#define FRACTION_DIGITS 9

struct unit {
	const char *name;
	uint64_t factor;
};

/* Each table runs from the largest unit to the smallest: the exact_* functions rely on it. */
static const struct unit size_units[] = {
	{"TiB", TI},     {"TB", 1000000000000}, {"GiB", GI},  {"GB", 1000000000}, {"MiB", MI},
	{"MB", 1000000}, {"KiB", KI},           {"kB", 1000}, {"B", 1},           {NULL, 0},
};

static const struct unit time_units[] = {
	{"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0},
};

static const struct unit rate_units[] = {
	{"Gbit/s", 1000000000}, {"Mbit/s", 1000000}, {"kbit/s", 1000}, {"bit/s", 1}, {NULL, 0},
};

static const struct unit percent_units[] = {{"%", 1}, {NULL, 0}};

/* Reads digits into *@ret and leaves *@text behind them. */
static int digits_read(const char **text, uint64_t *ret)
{
	const char *at = *text;
	uint64_t value = 0;

	if (*at < '0' || *at > '9')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return -ERANGE;
	}
	*text = at;
	*ret = value;
	return 0;
}

/* Reads what follows a decimal point: *@ret / *@ret_scale. */
static int fraction_read(const char **text, uint64_t *ret, uint64_t *ret_scale)
{
	const char *start = *text;
	uint64_t scale = 1;
	int err = digits_read(text, ret);

	if (err)
		return err;
	if (*text - start > FRACTION_DIGITS)
		return -EINVAL;
	for (const char *at = start; at < *text; at++)
		scale *= 10;
	*ret_scale = scale;
	return 0;
}

static const struct unit *unit_find(const struct unit *units, const char *name)
{
	for (; units->name; units++) {
		if (strcmp(units->name, name) == 0)
			return units;
	}
	return NULL;
}

static int number_parse(const char *text, const struct unit *units, uint64_t *ret)
{
	uint64_t whole, part = 0, scale = 1, value;
	const struct unit *unit;
	int err;

	err = digits_read(&text, &whole);
	if (err)
		return err;
	if (*text == '.') {
		text++;
		err = fraction_read(&text, &part, &scale);
		if (err)
			return err;
	}
	if (*text == '\0')
		return -ENODATA;
	unit = unit_find(units, text);
	if (!unit)
		return -EINVAL;

	/* part < 10^9 and factor <= 2^40 keep this product below 2^70: check it too */
	if (__builtin_mul_overflow(part, unit->factor, &part))
		return -ERANGE;
	if (part % scale)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit->factor, &value) ||
	    __builtin_add_overflow(value, part / scale, &value))
		return -ERANGE;
	*ret = value;
	return 0;
}

int pep_units_parse_size(const char *text, uint64_t *ret_bytes)
{
	return number_parse(text, size_units, ret_bytes);
}

int pep_units_parse_time(const char *text, uint64_t *ret_ms)
{
	return number_parse(text, time_units, ret_ms);
}

int pep_units_parse_rate(const char *text, uint64_t *ret_bps)
{
	return number_parse(text, rate_units, ret_bps);
}

int pep_units_parse_percent(const char *text, uint64_t *ret_percent)
{
	return number_parse(text, percent_units, ret_percent);
}

int pep_units_parse_count(const char *text, uint64_t *ret)
{
	uint64_t value;
	int err = digits_read(&text, &value);

	if (err)
		return err;
	if (*text != '\0')
		return -EINVAL;
	*ret = value;
	return 0;
}

static const char *exact(char *buffer, uint64_t value, const struct unit *units)
{
	while (units[1].name && (value == 0 || value % units->factor))
		units++;
	snprintf(buffer, PEP_UNITS_TEXT_SIZE, "%" PRIu64 "%s", value / units->factor, units->name);
	return buffer;
}

const char *pep_units_exact_size(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t bytes)
{
	return exact(buffer, bytes, size_units);
}

const char *pep_units_exact_time(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t ms)
{
	return exact(buffer, ms, time_units);
}

const char *pep_units_exact_percent(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t percent)
{
	return exact(buffer, percent, percent_units);
}

const char *pep_units_exact_count(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t count)
{
	snprintf(buffer, PEP_UNITS_TEXT_SIZE, "%" PRIu64, count);
	return buffer;
}

/* Prints @value, moved to the largest step of @names that keeps it at 1 or above. */
static const char *scaled(char *buffer, double value, double step, const char *const *names)
{
	int decimals;

	/* 999.5 would print as "1000": it belongs to the next step already */
	while (names[1] && value >= step - 0.5) {
		value /= step;
		names++;
	}
	decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(buffer, PEP_UNITS_TEXT_SIZE, "%.*f %s", decimals, value, names[0]);
	return buffer;
}

const char *pep_units_format_bytes(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL};

	if (bytes < KI) {
		snprintf(buffer, PEP_UNITS_TEXT_SIZE, "%" PRIu64 " B", bytes);
		return buffer;
	}
	return scaled(buffer, (double)bytes, 1024, names);
}

const char *pep_units_format_rate(char buffer[PEP_UNITS_TEXT_SIZE], double bits_per_second)
{
	static const char *const names[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", NULL};

	/* also turns NaN and negative noise of subtractions into a plain zero */
	if (!(bits_per_second >= 1)) {
		snprintf(buffer, PEP_UNITS_TEXT_SIZE, "0 bit/s");
		return buffer;
	}
	return scaled(buffer, bits_per_second, 1000, names);
}

const char *pep_units_format_time(char buffer[PEP_UNITS_TEXT_SIZE], uint64_t us)
{
	static const char *const names[] = {"us", "ms", "s", NULL};
	uint64_t s = us / 1000000;

	if (us < 1000)
		snprintf(buffer, PEP_UNITS_TEXT_SIZE, "%" PRIu64 " us", us);
	else if (s < 60)
		return scaled(buffer, (double)us, 1000, names);
	else if (s < 3600)
		snprintf(buffer, PEP_UNITS_TEXT_SIZE, "%" PRIu64 " min %02" PRIu64 " s", s / 60,
			 s % 60);
	else
		snprintf(buffer, PEP_UNITS_TEXT_SIZE, "%" PRIu64 " h %02" PRIu64 " min", s / 3600,
			 s / 60 % 60);
	return buffer;
}
