/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_USAGE_H
#define PEP_BASE_USAGE_H

/*
 * Command lines. One table per program (or sub-command) is what getopt_long(3) reads by and what
 * --help prints, so the two cannot differ. -h/--help and --version come by themselves.
 *
 *	static const struct pep_usage_option options[] = {
 *		{ 'c', "config", "FILE", "read FILE in place of " PEP_CONF_FILE },
 *		{ OPTION_DUMP, "dump-config", NULL, "print the configuration in effect" },
 *		{ 0 },
 *	};
 *	static const struct pep_usage usage = {
 *		"edgepepd", "[OPTION...]", "Splits TCP connections at the radio boundary.", options,
 *	};
 *
 *	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END)
 *		switch (option) {
 *		case 'c': path = optarg; break;
 *		case PEP_USAGE_DONE: return 0;
 *		case PEP_USAGE_ERROR: return PEP_EXIT_USAGE;
 *		}
 */

#include <stdbool.h>
#include <stdio.h>

#define PEP_EXIT_USAGE 2 /* exit code for bad input: command line or configuration */

struct pep_usage_option {
	int id;           /* what pep_usage_next returns; a letter or digit is also the short form,
			   * long-only options start at PEP_USAGE_LONG; 0 ends the table */
	const char *name; /* long form without dashes */
	const char *argument; /* what --help calls the argument; NULL takes none */
	const char *help;     /* one or more lines, '\n' between */
};

struct pep_usage {
	const char *program;
	const char *synopsis; /* what follows the program's name in the usage line */
	const char *summary;  /* what it does, a sentence or two */
	const struct pep_usage_option *options;
	const char *more; /* printed behind the options, whole lines; may be NULL */
	bool in_order;    /* options end at the first word: for programs with sub-commands */
};

enum pep_usage_result {
	PEP_USAGE_END = -1,   /* no option left; words begin at argv[optind] */
	PEP_USAGE_ERROR = -2, /* one line on stderr says what is wrong: exit PEP_EXIT_USAGE */
	PEP_USAGE_DONE = -3,  /* --help or --version was answered: exit 0 */
	PEP_USAGE_LONG = 256, /* ids of options without a short form start here */
};

/** The next option's id (its argument in optarg), or one of enum pep_usage_result. */
int pep_usage_next(const struct pep_usage *usage, int argc, char **argv);

/** Prints the help text. */
void pep_usage_print(const struct pep_usage *usage, FILE *out);

/** Prints "PROGRAM: message; try PROGRAM --help" to stderr; returns PEP_EXIT_USAGE. */
int pep_usage_error(const struct pep_usage *usage, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
