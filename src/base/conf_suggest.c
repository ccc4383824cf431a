/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an unknown word was probably meant to be. */
#include "base/conf_internal.h"
#include "base/units.h"

#include <string.h>

#define WORD_MAX 48 /* longer words get no suggestion */

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int least = a < b ? a : b;

	return least < c ? least : c;
}

/* Edits (insert, drop, replace a letter) between two words of at most WORD_MAX letters. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[WORD_MAX + 1];
	size_t n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 0; a[i]; i++) {
		unsigned int diagonal = row[0];

		row[0]++;
		for (size_t j = 0; j < n; j++) {
			unsigned int above = row[j + 1];

			row[j + 1] = min3(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
			diagonal = above;
		}
	}
	return row[n];
}

/* The word that opens @section: "leg" of "leg wired". */
static void section_word(const char *section, char word[WORD_MAX])
{
	snprintf(word, WORD_MAX, "%.*s", (int)strcspn(section, " "), section);
}

static const char *unit_hint(const char *word)
{
	char text[WORD_MAX + 2];
	uint64_t value;

	snprintf(text, sizeof(text), "1%.*s", WORD_MAX, word);
	if (pep_units_parse_size(text, &value) == 0 || pep_units_parse_time(text, &value) == 0 ||
	    pep_units_parse_percent(text, &value) == 0)
		return "; write a unit right behind its number, without a blank";
	return NULL;
}

struct best {
	const char *section; /* of the key; NULL for a section's own name */
	char word[WORD_MAX];
	unsigned int distance;
};

static void consider(struct best *best, const char *section, const char *word, const char *wanted,
		     unsigned int penalty)
{
	unsigned int d = distance(wanted, word) + penalty;

	if (d >= best->distance)
		return;
	best->section = section;
	best->distance = d;
	snprintf(best->word, sizeof(best->word), "%s", word);
}

void conf_suggest(const char *section, const char *word, char hint[CONF_WHY_SIZE])
{
	size_t length = strlen(word);
	struct best best = {.distance = (unsigned int)(length / 3 + 2)};
	char opener[WORD_MAX];
	const char *unit;

	hint[0] = '\0';
	if (length == 0 || length >= WORD_MAX)
		return;
	unit = unit_hint(word);
	if (unit) {
		snprintf(hint, CONF_WHY_SIZE, "%s", unit);
		return;
	}
	/* keys of the same section win; elsewhere only the very word counts, or nearly */
	for (size_t i = 0; i < conf_n_keys; i++) {
		const struct pep_conf_key *doc = &conf_keys[i].doc;

		consider(&best, doc->section, doc->key, word,
			 strcmp(doc->section, section) == 0 ? 0 : 1);
		section_word(doc->section, opener);
		if (section[0] == '\0' && opener[0])
			consider(&best, NULL, opener, word, 0);
	}
	if (!best.word[0])
		return;
	if (!best.section || strcmp(best.section, section) == 0)
		snprintf(hint, CONF_WHY_SIZE, "; did you mean \"%s\"?", best.word);
	else if (best.section[0])
		snprintf(hint, CONF_WHY_SIZE, "; did you mean \"%s\" in section \"%s\"?", best.word,
			 best.section);
	else
		snprintf(hint, CONF_WHY_SIZE, "; did you mean \"%s\", outside of any section?",
			 best.word);
}
