/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One text to one field and back. A field is written only when its whole text was understood. */
#include "base/conf_internal.h"
#include "base/mark.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How a kind of number is read and written. */
struct number_form {
	int (*parse)(const char *text, uint64_t *ret);
	const char *(*exact)(char *buffer, uint64_t value);
	uint64_t factor;     /* parsed units per kept unit */
	const char *example; /* of a text with its unit */
};

static const struct number_form number_forms[] = {
	[CONF_KIND_COUNT] = {pep_units_parse_count, pep_units_exact_count, 1, "a plain number"},
	[CONF_KIND_SIZE] = {pep_units_parse_size, pep_units_exact_size, 1,
			    "a size such as 256KiB (B, kB, KiB, MB, MiB, GB, GiB)"},
	[CONF_KIND_TIME] = {pep_units_parse_time, pep_units_exact_time, 1,
			    "a time such as 30s (ms, s, min, h)"},
	[CONF_KIND_SECONDS] = {pep_units_parse_time, pep_units_exact_time, 1000,
			       "a time of whole seconds such as 30s (s, min, h)"},
	[CONF_KIND_PERCENT] = {pep_units_parse_percent, pep_units_exact_percent, 1,
			       "a percentage such as 150%"},
};

static void *field_of(const struct conf_key *key, void *base)
{
	return (char *)base + key->offset;
}

static uint64_t field_number(const struct conf_key *key, const void *base)
{
	const char *field = (const char *)base + key->offset;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (key->size) {
	case sizeof(u64):
		memcpy(&u64, field, sizeof(u64));
		return u64;
	case sizeof(u32):
		memcpy(&u32, field, sizeof(u32));
		return u32;
	case sizeof(u16):
		memcpy(&u16, field, sizeof(u16));
		return u16;
	default:
		return *(const uint8_t *)field;
	}
}

static void field_set_number(const struct conf_key *key, void *base, uint64_t value)
{
	void *field = field_of(key, base);
	uint32_t u32 = (uint32_t)value;
	uint16_t u16 = (uint16_t)value;

	switch (key->size) {
	case sizeof(value):
		memcpy(field, &value, sizeof(value));
		break;
	case sizeof(u32):
		memcpy(field, &u32, sizeof(u32));
		break;
	case sizeof(u16):
		memcpy(field, &u16, sizeof(u16));
		break;
	default:
		*(uint8_t *)field = (uint8_t)value;
	}
}

static const char *or_word(const struct conf_key *key, char *buffer, size_t size)
{
	buffer[0] = '\0';
	if (key->word)
		snprintf(buffer, size, ", or %s", key->word);
	return buffer;
}

static int number_parse(const struct conf_key *key, const char *text, void *base, char *why)
{
	const struct number_form *form = &number_forms[key->kind];
	char low[PEP_UNITS_TEXT_SIZE], high[PEP_UNITS_TEXT_SIZE], word[32];
	uint64_t value;
	int err;

	if (key->word && strcmp(text, key->word) == 0) {
		field_set_number(key, base, 0);
		return 0;
	}
	err = form->parse(text, &value);
	or_word(key, word, sizeof(word));
	if (err == -ENODATA) {
		snprintf(why, CONF_WHY_SIZE, "the unit is missing; expected %s%s", form->example,
			 word);
		return -EINVAL;
	}
	if (err == -EINVAL || (!err && value % form->factor)) {
		snprintf(why, CONF_WHY_SIZE, "expected %s%s", form->example, word);
		return -EINVAL;
	}
	if (err || value / form->factor < key->min || value / form->factor > key->max) {
		snprintf(why, CONF_WHY_SIZE, "must be between %s and %s%s",
			 form->exact(low, key->min * form->factor),
			 form->exact(high, key->max * form->factor), word);
		return -EINVAL;
	}
	field_set_number(key, base, value / form->factor);
	return 0;
}

static int enum_parse(const struct conf_key *key, const char *text, void *base, char *why)
{
	size_t used;

	for (unsigned int i = 0; key->choices[i]; i++) {
		if (strcmp(key->choices[i], text) == 0) {
			field_set_number(key, base, i);
			return 0;
		}
	}
	used = (size_t)snprintf(why, CONF_WHY_SIZE, "must be %s", key->choices[0]);
	for (unsigned int i = 1; key->choices[i]; i++)
		used += (size_t)snprintf(why + used, CONF_WHY_SIZE - used, "%s%s",
					 key->choices[i + 1] ? ", " : " or ", key->choices[i]);
	return -EINVAL;
}

static int mask_parse(const struct conf_key *key, const char *text, void *base, char *why)
{
	unsigned long long mask;
	uint32_t bits;
	char *end;

	if (strncmp(text, "0x", 2) != 0 || !isxdigit((unsigned char)text[2]) || strlen(text) > 10) {
		snprintf(why, CONF_WHY_SIZE, "expected a mask of 32 bits such as 0x07ff0000");
		return -EINVAL;
	}
	mask = strtoull(text, &end, 16);
	if (*end) {
		snprintf(why, CONF_WHY_SIZE, "expected a mask of 32 bits such as 0x07ff0000");
		return -EINVAL;
	}
	bits = mask ? (uint32_t)mask >> pep_mark_shift((uint32_t)mask) : 0;
	if (bits & (bits + 1)) {
		snprintf(why, CONF_WHY_SIZE, "the mask has a gap; its bits must be contiguous");
		return -EINVAL;
	}
	if (__builtin_popcount(bits) < PEP_MARK_BITS) {
		snprintf(why, CONF_WHY_SIZE, "the mask has %d bits; at least %d are needed",
			 __builtin_popcount(bits), PEP_MARK_BITS);
		return -EINVAL;
	}
	field_set_number(key, base, mask);
	return 0;
}

/* Texts of a fixed alphabet, so that they mean the same to a shell, to iptables and to us. */
static int text_parse(const struct conf_key *key, const char *text, void *base, char *why)
{
	const char *others = key->kind == CONF_KIND_PATH ? "/._-+@:" : "_-.";
	size_t length = strlen(text);

	if (key->word && strcmp(text, key->word) == 0) {
		memset(field_of(key, base), 0, key->size);
		return 0;
	}
	if (length == 0 || length >= key->size) {
		snprintf(why, CONF_WHY_SIZE, "must have 1 to %zu characters", key->size - 1);
		return -EINVAL;
	}
	if (key->kind == CONF_KIND_LISTEN) {
		if (conf_listen_check(text, why))
			return -EINVAL;
		goto store;
	}
	if (key->kind == CONF_KIND_PATH && text[0] != '/') {
		snprintf(why, CONF_WHY_SIZE, "must be an absolute path");
		return -EINVAL;
	}
	for (const char *at = text; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr(others, *at)) {
			snprintf(why, CONF_WHY_SIZE, "must be made of letters, digits and %s",
				 others);
			return -EINVAL;
		}
	}
	if (text[0] == '-') {
		snprintf(why, CONF_WHY_SIZE, "must not begin with \"-\"");
		return -EINVAL;
	}
store:
	memset(field_of(key, base), 0, key->size);
	memcpy(field_of(key, base), text, length);
	return 0;
}

static int element_parse(const struct conf_key *key, const char *text, void *element, char *why)
{
	switch (key->kind) {
	case CONF_KIND_INTERFACES:
		return conf_interface_parse(text, element, why);
	case CONF_KIND_PREFIXES:
		return conf_prefix_parse(text, element, why);
	case CONF_KIND_PORTS:
		return conf_ports_parse(text, element, why);
	case CONF_KIND_PARAMS:
	case CONF_KIND_ENUM:
	case CONF_KIND_COUNT:
	case CONF_KIND_SIZE:
	case CONF_KIND_TIME:
	case CONF_KIND_SECONDS:
	case CONF_KIND_PERCENT:
	case CONF_KIND_MASK:
	case CONF_KIND_NAME:
	case CONF_KIND_CCA:
	case CONF_KIND_PATH:
	case CONF_KIND_LISTEN:
		break;
	}
	return -EINVAL;
}

static unsigned int *list_count(const struct conf_key *key, void *base)
{
	return (unsigned int *)(void *)((char *)base + key->count_offset);
}

static int list_append(const struct conf_key *key, const char *text, void *base, char *why)
{
	unsigned int *count = list_count(key, base);
	int err;

	if (*count >= key->capacity) {
		snprintf(why, CONF_WHY_SIZE, "too many entries; the list takes %u", key->capacity);
		return -EINVAL;
	}
	err = element_parse(key, text, (char *)field_of(key, base) + *count * key->size, why);
	if (!err)
		(*count)++;
	return err;
}

int conf_value_parse(const struct conf_key *key, const char *text, void *base,
		     char why[CONF_WHY_SIZE])
{
	switch (key->kind) {
	case CONF_KIND_ENUM:
		return enum_parse(key, text, base, why);
	case CONF_KIND_COUNT:
	case CONF_KIND_SIZE:
	case CONF_KIND_TIME:
	case CONF_KIND_SECONDS:
	case CONF_KIND_PERCENT:
		return number_parse(key, text, base, why);
	case CONF_KIND_MASK:
		return mask_parse(key, text, base, why);
	case CONF_KIND_NAME:
	case CONF_KIND_CCA:
	case CONF_KIND_PATH:
	case CONF_KIND_LISTEN:
		return text_parse(key, text, base, why);
	case CONF_KIND_INTERFACES:
	case CONF_KIND_PREFIXES:
	case CONF_KIND_PORTS:
		return list_append(key, text, base, why);
	case CONF_KIND_PARAMS:
		return conf_param_parse(text, base, why);
	}
	return -EINVAL;
}

void conf_value_clear(const struct conf_key *key, void *base)
{
	if (!conf_kind_is_list(key->kind) || key->kind == CONF_KIND_PARAMS)
		return;
	/* zeroed as well, so that equal configurations are equal bytes */
	memset(field_of(key, base), 0, key->size * key->capacity);
	*list_count(key, base) = 0;
}

static void list_print(const struct conf_key *key, const void *base, FILE *out)
{
	const char *elements = (const char *)base + key->offset;
	unsigned int count;

	memcpy(&count, (const char *)base + key->count_offset, sizeof(count));
	fputc('{', out);
	for (unsigned int i = 0; i < count; i++) {
		const void *element = elements + i * key->size;
		const struct pep_port_range *range = element;

		fputs(i ? ", " : "", out);
		if (key->kind == CONF_KIND_INTERFACES)
			fprintf(out, "\"%s\"", (const char *)element);
		else if (key->kind == CONF_KIND_PREFIXES)
			conf_prefix_print(element, out);
		else if (range->first == range->last)
			fprintf(out, "\"%u\"", range->first);
		else
			fprintf(out, "\"%u-%u\"", range->first, range->last);
	}
	fputc('}', out);
}

void conf_value_print(const struct conf_key *key, const void *base, FILE *out)
{
	const struct number_form *form;
	char buffer[PEP_UNITS_TEXT_SIZE];
	uint64_t value;

	switch (key->kind) {
	case CONF_KIND_ENUM:
		fputs(key->choices[field_number(key, base)], out);
		break;
	case CONF_KIND_COUNT:
	case CONF_KIND_SIZE:
	case CONF_KIND_TIME:
	case CONF_KIND_SECONDS:
	case CONF_KIND_PERCENT:
		form = &number_forms[key->kind];
		value = field_number(key, base);
		if (value == 0 && key->word)
			fputs(key->word, out);
		else
			fputs(form->exact(buffer, value * form->factor), out);
		break;
	case CONF_KIND_MASK:
		fprintf(out, "0x%08" PRIx64, field_number(key, base));
		break;
	case CONF_KIND_NAME:
	case CONF_KIND_CCA:
	case CONF_KIND_PATH:
	case CONF_KIND_LISTEN:
		if (((const char *)base)[key->offset] == '\0' && key->word)
			fputs(key->word, out);
		else
			fprintf(out, "\"%s\"", (const char *)base + key->offset);
		break;
	case CONF_KIND_INTERFACES:
	case CONF_KIND_PREFIXES:
	case CONF_KIND_PORTS:
		list_print(key, base, out);
		break;
	case CONF_KIND_PARAMS:
		fprintf(out, "\"%s=%s\"", ((const struct pep_cca_param *)base)->key,
			((const struct pep_cca_param *)base)->value);
		break;
	}
}
