/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_ASSETS_H
#define PEP_MON_ASSETS_H

/* The dashboard's files, built into the program by web/embed.sh. */

#include <stddef.h>

struct pep_asset {
	const char *path; /* "/app.js" */
	const char *type; /* Content-Type */
	const unsigned char *data;
	size_t size;
};

/** The table ends with a NULL path. */
extern const struct pep_asset pep_assets[];

#endif
