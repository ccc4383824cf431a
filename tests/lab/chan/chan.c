/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes radio channels as delivery traces in the Mahimahi format: one line, in milliseconds, for
 * each packet of 1500 bytes that the link can carry. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <getopt.h>

#include "base/usage.h"
#include "lte.h"
#include "mmwave.h"

#define PACKET_BITS (1500 * 8.0)

enum {
	OPTION_CHECK = PEP_USAGE_LONG,
	OPTION_PROFILE,
	OPTION_SPEED,
	OPTION_SINR,
	OPTION_RAMP,
	OPTION_CARRIER,
	OPTION_CQI,
	OPTION_ESTIMATE,
	OPTION_TRACKED,
	OPTION_MARGIN,
	OPTION_LOS,
	OPTION_BLOCK,
	OPTION_PEOPLE,
	OPTION_PEOPLE_LEFT,
};

static const struct pep_usage_option options[] = {
	{'o', "output", "FILE", "write to FILE in place of standard output"},
	{'t', "time", "SECONDS", "length of the trace, 0.001..3600 (default 20)"},
	{'s', "seed", "NUMBER", "of the random numbers (default 1)"},
	{'x', "scale", "FACTOR", "multiply all rates, 0.001..1000 (default 1)"},
	{OPTION_CHECK, "check", NULL, "compare the averages with the published ones and end"},
	{OPTION_PROFILE, "profile", "NAME", "lte: static, eva or hst (default static)"},
	{OPTION_SPEED, "speed", "KMH", "lte: speed of the UE, 0..500 (default 60; hst 300)"},
	{OPTION_SINR, "sinr", "DB", "lte: mean SINR at the start, -10..40 (default 20)"},
	{OPTION_RAMP, "ramp", "DB",
	 "lte: change of it each second, -20..20: away from\n"
	 "the cell below 0, towards it above (default 0)"},
	{OPTION_CARRIER, "carrier", "GHZ", "lte: carrier frequency, 0.1..10 (default 2.1)"},
	{OPTION_CQI, "cqi-delay", "MS", "lte: age of the channel report, 0..100 (default 8)"},
	{OPTION_ESTIMATE, "estimate-age", "MS",
	 "lte: age of the receiver's channel estimate, 0..1"},
	{OPTION_TRACKED, "tracked", "SHARE",
	 "lte: part of a train's Doppler the receiver corrects"},
	{OPTION_MARGIN, "margin", "DB", "lte: a block survives a channel worse by this, 0..10"},
	{OPTION_LOS, "los", "MBIT", "mmwave: rate in line of sight, 1..100000 (default 2500)"},
	{OPTION_BLOCK, "block", "AT:FOR:WHAT",
	 "mmwave: from second AT for FOR seconds, by metal (20 %\n"
	 "left), cardboard (80 %), body (50 %), or the share left;\n"
	 "may be repeated"},
	{OPTION_PEOPLE, "people", "PER_S", "mmwave: people crossing at random, 0..10 each second"},
	{OPTION_PEOPLE_LEFT, "people-left", "SHARE",
	 "mmwave: of the rate behind one, 0.001..1 (0.15)"},
	{0},
};

static const struct pep_usage usage = {
	.program = "chan",
	.synopsis = "lte|mmwave [OPTION...]",
	.summary = "Writes the channel of a radio link as a Mahimahi trace.",
	.options = options,
};

struct settings {
	struct pep_lte lte;
	struct pep_mmwave mmwave;
	const char *output;
	double seconds, scale;
	bool check, speed_given;
};

static bool number(const char *option, const char *text, double low, double high, double *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= low && value <= high)) {
		fprintf(stderr, "chan: --%s: \"%s\" is no number of %g to %g\n", option, text, low,
			high);
		return false;
	}
	*ret = value;
	return true;
}

static bool set_seed(struct settings *s, const char *text)
{
	double value;

	if (!number("seed", text, 0, 4294967295.0, &value))
		return false;
	s->lte.seed = s->mmwave.seed = (uint64_t)value;
	return true;
}

static bool set_profile(struct settings *s, const char *text)
{
	static const char *const names[] = {"static", "eva", "hst"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			s->lte.profile = (enum pep_lte_profile)i;
			return true;
		}
	fprintf(stderr, "chan: --profile: \"%s\" is none of static, eva, hst\n", text);
	return false;
}

static bool add_block(struct settings *s, const char *text)
{
	struct pep_mmwave_block b;
	char what[32], *end;
	int used = 0;

	if (s->mmwave.n_blocks == PEP_MMWAVE_BLOCKS_MAX) {
		fprintf(stderr, "chan: --block: more than %d\n", PEP_MMWAVE_BLOCKS_MAX);
		return false;
	}
	if (sscanf(text, "%lf:%lf:%31[a-z0-9.]%n", &b.at_s, &b.for_s, what, &used) != 3 ||
	    text[used] || !(b.at_s >= 0) || !(b.for_s > 0))
		goto bad;
	b.left = pep_mmwave_material(what);
	if (b.left < 0) {
		b.left = strtod(what, &end);
		if (end == what || *end || !(b.left >= 0 && b.left <= 1))
			goto bad;
	}
	s->mmwave.blocks[s->mmwave.n_blocks++] = b;
	return true;
bad:
	fprintf(stderr, "chan: --block: \"%s\" is not AT:FOR:WHAT, such as 7:3:metal\n", text);
	return false;
}

static bool set(struct settings *s, int option, const char *text)
{
	double value = 0;

	switch (option) {
	case 'o':
		s->output = text;
		return true;
	case 't':
		return number("time", text, 0.001, 3600, &s->seconds);
	case 's':
		return set_seed(s, text);
	case 'x':
		return number("scale", text, 0.001, 1000, &s->scale);
	case OPTION_CHECK:
		s->check = true;
		return true;
	case OPTION_PROFILE:
		return set_profile(s, text);
	case OPTION_SPEED:
		s->speed_given = true;
		return number("speed", text, 0, 500, &s->lte.speed_kmh);
	case OPTION_SINR:
		return number("sinr", text, -10, 40, &s->lte.sinr_db);
	case OPTION_RAMP:
		return number("ramp", text, -20, 20, &s->lte.ramp_db_s);
	case OPTION_CARRIER:
		return number("carrier", text, 0.1, 10, &s->lte.carrier_ghz);
	case OPTION_CQI:
		if (!number("cqi-delay", text, 0, 100, &value))
			return false;
		s->lte.cqi_ms = (unsigned int)value;
		return true;
	case OPTION_ESTIMATE:
		return number("estimate-age", text, 0, 1, &s->lte.estimate_ms);
	case OPTION_TRACKED:
		return number("tracked", text, 0, 1, &s->lte.tracked);
	case OPTION_MARGIN:
		return number("margin", text, 0, 10, &s->lte.margin_db);
	case OPTION_LOS:
		return number("los", text, 1, 100000, &s->mmwave.los_mbit);
	case OPTION_BLOCK:
		return add_block(s, text);
	case OPTION_PEOPLE:
		return number("people", text, 0, 10, &s->mmwave.people_per_s);
	case OPTION_PEOPLE_LEFT:
		return number("people-left", text, 0.001, 1, &s->mmwave.people_left);
	default:
		return false;
	}
}

/* Turns bits into opportunities; the last line is the period. */
static int write_trace(FILE *out, const double *bits, unsigned int ms, double scale)
{
	double credit = 0;
	unsigned int i, last = 0;

	for (i = 0; i < ms; i++)
		for (credit += bits[i] * scale; credit >= PACKET_BITS; credit -= PACKET_BITS) {
			last = i + 1;
			fprintf(out, "%u\n", last);
		}
	if (last != ms)
		fprintf(out, "%u\n", ms);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static int generate(const struct settings *s, bool lte)
{
	unsigned int ms = (unsigned int)lround(s->seconds * 1000);
	double *bits = calloc(ms, sizeof(*bits));
	FILE *out = stdout;
	int err = -ENOMEM;

	if (!bits)
		goto out;
	if (lte) {
		err = pep_lte_run(&s->lte, ms, bits);
		if (err)
			goto out;
	} else {
		pep_mmwave_run(&s->mmwave, ms, bits);
	}
	if (s->output) {
		out = fopen(s->output, "w");
		if (!out) {
			err = -errno;
			goto out;
		}
	}
	err = write_trace(out, bits, ms, s->scale);
	if (out != stdout && fclose(out) && !err)
		err = -EIO;
out:
	if (err)
		fprintf(stderr, "chan: %s: %s\n", s->output ? s->output : "output", strerror(-err));
	free(bits);
	return err ? 1 : 0;
}

/* Mean over a few seeds, as a share of the channel without fading. */
static double share(struct pep_lte lte, enum pep_lte_profile profile, double speed, double *bits,
		    unsigned int ms)
{
	double sum = 0, ideal;

	lte.profile = PEP_LTE_STATIC;
	if (pep_lte_run(&lte, ms, bits))
		return NAN;
	ideal = pep_lte_mean(bits, ms);
	lte.profile = profile;
	lte.speed_kmh = speed;
	for (lte.seed = 1; lte.seed <= 3; lte.seed++) {
		if (pep_lte_run(&lte, ms, bits))
			return NAN;
		sum += pep_lte_mean(bits, ms);
	}
	return sum / 3 / ideal;
}

/* The studies' averages: EVA60 about ideal, EVA120 about two thirds, HST below a half. */
static int check(const struct settings *s)
{
	static const struct {
		const char *name;
		enum pep_lte_profile profile;
		double speed, low, high;
	} cases[] = {
		{"EVA 60 km/h", PEP_LTE_EVA, 60, 0.80, 1.05},
		{"EVA 120 km/h", PEP_LTE_EVA, 120, 0.60, 0.73},
		{"HST 300 km/h", PEP_LTE_HST, 300, 0.25, 0.5},
	};
	const unsigned int ms = 6000;
	double *bits = calloc(ms, sizeof(*bits));
	int failed = 0;

	if (!bits)
		return 1;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double got = share(s->lte, cases[i].profile, cases[i].speed, bits, ms);
		bool ok = got >= cases[i].low && got <= cases[i].high;

		printf("%s %s: %.3f of ideal, wanted %.2f to %.2f\n", ok ? "ok  " : "FAIL",
		       cases[i].name, got, cases[i].low, cases[i].high);
		failed += !ok;
	}
	free(bits);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct settings s = {.seconds = 20, .scale = 1};
	bool lte;
	int option;

	pep_lte_defaults(&s.lte);
	pep_mmwave_defaults(&s.mmwave);
	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		if (option == PEP_USAGE_DONE)
			return 0;
		if (option == PEP_USAGE_ERROR || !set(&s, option, optarg))
			return PEP_EXIT_USAGE;
	}
	if (s.check && optind == argc)
		return check(&s);
	lte = optind + 1 == argc && strcmp(argv[optind], "lte") == 0;
	if (s.check || (!lte && (optind + 1 != argc || strcmp(argv[optind], "mmwave") != 0))) {
		fprintf(stderr, "chan: wants one word, lte or mmwave, or --check alone\n");
		return PEP_EXIT_USAGE;
	}
	if (!s.speed_given && s.lte.profile == PEP_LTE_HST)
		s.lte.speed_kmh = 300;
	return generate(&s, lte);
}
