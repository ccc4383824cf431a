/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config.h"

#include "base/usage.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#define MAX_OPTIONS 40
#define HELP_COLUMN 28
#define ID_VERSION  (1 << 20) /* above every id of a program */

static const struct pep_usage_option common[] = {
	{'h', "help", NULL, "print this help and end"},
	{ID_VERSION, "version", NULL, "print the version and end"},
	{0},
};

static bool has_letter(const struct pep_usage_option *option)
{
	return option->id < PEP_USAGE_LONG && isalnum(option->id);
}

static void print_options(const struct pep_usage_option *option, FILE *out)
{
	for (; option->id; option++) {
		int used = has_letter(option) ? fprintf(out, "  -%c, ", option->id)
					      : fprintf(out, "      ");

		used += fprintf(out, "--%s", option->name);
		if (option->argument)
			used += fprintf(out, "=%s", option->argument);
		if (used >= HELP_COLUMN) {
			fputc('\n', out);
			used = 0;
		}
		for (const char *line = option->help; line;) {
			int length = (int)strcspn(line, "\n");

			fprintf(out, "%*s%.*s\n", HELP_COLUMN - used, "", length, line);
			used = 0;
			line = line[length] ? line + length + 1 : NULL;
		}
	}
}

void pep_usage_print(const struct pep_usage *usage, FILE *out)
{
	fprintf(out, "Usage: %s %s\n%s\n\n", usage->program, usage->synopsis, usage->summary);
	print_options(usage->options, out);
	print_options(common, out);
	if (usage->more)
		fprintf(out, "\n%s", usage->more);
}

int pep_usage_error(const struct pep_usage *usage, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", usage->program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; try %s --help\n", usage->program);
	return PEP_EXIT_USAGE;
}

/* What getopt_long wants; a table longer than MAX_OPTIONS is cut, which --help would show too. */
struct getopt_tables {
	struct option longs[MAX_OPTIONS + 1];
	char shorts[2 * MAX_OPTIONS + 3];
	size_t n_longs, n_shorts;
};

static void tables_add(struct getopt_tables *tables, const struct pep_usage_option *option)
{
	for (; option->id && tables->n_longs < MAX_OPTIONS; option++) {
		tables->longs[tables->n_longs++] = (struct option){
			.name = option->name,
			.has_arg = option->argument ? required_argument : no_argument,
			.val = option->id,
		};
		if (has_letter(option)) {
			tables->shorts[tables->n_shorts++] = (char)option->id;
			if (option->argument)
				tables->shorts[tables->n_shorts++] = ':';
		}
	}
}

int pep_usage_next(const struct pep_usage *usage, int argc, char **argv)
{
	struct getopt_tables tables = {0};
	int at = optind ? optind : 1, id;

	if (usage->in_order)
		tables.shorts[tables.n_shorts++] = '+';
	tables.shorts[tables.n_shorts++] = ':';
	tables_add(&tables, usage->options);
	tables_add(&tables, common);

	opterr = 0;
	id = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
	switch (id) {
	case 'h':
		pep_usage_print(usage, stdout);
		return PEP_USAGE_DONE;
	case ID_VERSION:
		printf("%s %s\n", usage->program, PACKAGE_VERSION);
		return PEP_USAGE_DONE;
	case ':':
		pep_usage_error(usage, "option \"%s\" needs a value", argv[optind - 1]);
		return PEP_USAGE_ERROR;
	case '?':
		/* optopt is the letter of a short option, or the id of a long one that takes no
		 * argument and got one */
		if (optopt == 0 || (optind > at && strncmp(argv[optind - 1], "--", 2) == 0))
			pep_usage_error(usage, "option \"%s\" is unknown or takes no value",
					argv[optind - 1]);
		else
			pep_usage_error(usage, "unknown option \"-%c\"", optopt);
		return PEP_USAGE_ERROR;
	default:
		return id;
	}
}
