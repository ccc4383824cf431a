/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

#define SPEC_SIZE      4096
#define DEFAULT_BUFFER (16u << 20)

struct spec {
	struct pep_link_conf conf;
	double bdp; /* buffer in units of rate x rtt; 0: in bytes */
	uint64_t rtt_ns;
	bool has_queue;
	FILE *errors;
};

struct key {
	const char *name;
	int (*set)(struct spec *spec, char *value);
	const char *expected; /* also the help text */
};

static int set_queue(struct spec *spec, char *value)
{
	double number;

	if (strchr(value, '.') || pep_units_number(value, 65535, &number))
		return -EINVAL;
	spec->conf.queue = (uint16_t)number;
	spec->has_queue = true;
	return 0;
}

static int set_name(struct spec *spec, char *value)
{
	size_t length = strlen(value);

	if (!length || length >= sizeof(spec->conf.name) ||
	    strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
		    length)
		return -EINVAL;
	memcpy(spec->conf.name, value, length + 1);
	return 0;
}

static int set_rate(struct spec *spec, char *value)
{
	return pep_units_rate(value, &spec->conf.rate_bps);
}

static int set_trace(struct spec *spec, char *value)
{
	pep_trace_fini(&spec->conf.trace);
	return pep_trace_load(value, spec->errors, &spec->conf.trace);
}

static int set_delay(struct spec *spec, char *value)
{
	return pep_units_time(value, &spec->conf.delay_ns);
}

static int set_jitter(struct spec *spec, char *value)
{
	char *kind = strchr(value, ':');

	spec->conf.jitter = PEP_LINK_JITTER_UNIFORM;
	if (kind) {
		*kind++ = '\0';
		if (!strcmp(kind, "normal"))
			spec->conf.jitter = PEP_LINK_JITTER_NORMAL;
		else if (strcmp(kind, "uniform") != 0)
			return -EINVAL;
	}
	return pep_units_time(value, &spec->conf.jitter_ns);
}

static int set_buffer(struct spec *spec, char *value)
{
	size_t length = strlen(value);

	spec->bdp = 0;
	if (length <= 3 || strcasecmp(value + length - 3, "BDP") != 0)
		return pep_units_size(value, &spec->conf.buffer_bytes);
	value[length - 3] = '\0';
	if (pep_units_number(value, 1000, &spec->bdp) || spec->bdp <= 0)
		return -EINVAL;
	return 0;
}

static int set_rtt(struct spec *spec, char *value)
{
	return pep_units_time(value, &spec->rtt_ns);
}

static int set_loss(struct spec *spec, char *value)
{
	return pep_units_share(value, &spec->conf.loss);
}

/* "p:r[:loss in the bad state[:loss in the good state]]" */
static int set_burst(struct spec *spec, char *value)
{
	struct pep_link_conf *c = &spec->conf;
	double *fields[] = {&c->good_to_bad, &c->bad_to_good, &c->loss_bad, &c->loss_good};
	char *rest = value, *word;
	unsigned int i = 0;

	c->loss_bad = 1;
	c->loss_good = 0;
	while ((word = strsep(&rest, ":"))) {
		if (i == 4 || pep_units_share(word, fields[i]))
			return -EINVAL;
		i++;
	}
	return i < 2 || c->bad_to_good <= 0 ? -EINVAL : 0;
}

static int set_seed(struct spec *spec, char *value)
{
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	spec->conf.seed = strtoull(value, &end, 10);
	return *end || errno ? -EINVAL : 0;
}

static int add_event(struct spec *spec, uint64_t at_ns, uint64_t every_ns,
		     const struct pep_link_change *change)
{
	if (spec->conf.n_events == PEP_LINK_MAX_CHANGES)
		return -EINVAL;
	spec->conf.events[spec->conf.n_events++] = (struct pep_link_event){
		.at_ns = at_ns,
		.every_ns = every_ns,
		.change = *change,
	};
	return 0;
}

/* Cuts " KEYWORD TIME" off the end of @text. 1: it was there, 0: it was not, -EINVAL: it is wrong.
 */
static int cut_tail(char *text, const char *keyword, uint64_t *ret_ns)
{
	char *at = strstr(text, keyword);

	if (!at)
		return 0;
	if (pep_units_time(at + strlen(keyword), ret_ns) || !*ret_ns)
		return -EINVAL;
	*at = '\0';
	return 1;
}

/*
 * "at 7s rate 500Mbit for 1s every 10s". Where "for" ends, the configured value comes back; it may
 * be set by a later key, so the value is filled in when the whole text is known (MARK_RESTORE).
 */
#define MARK_RESTORE UINT64_MAX

static int set_event(struct spec *spec, char *value)
{
	struct pep_link_change change, restore;
	uint64_t at, during = 0, every = 0;
	char *rest;
	int err;

	if (strncmp(value, "at ", 3) != 0)
		return -EINVAL;
	rest = strchr(value + 3, ' ');
	if (!rest)
		return -EINVAL;
	*rest++ = '\0';
	if (pep_units_time(value + 3, &at) || cut_tail(rest, " every ", &every) < 0 ||
	    cut_tail(rest, " for ", &during) < 0 || pep_spec_change(rest, &change))
		return -EINVAL;
	if (every && every <= during)
		return -EINVAL;
	err = add_event(spec, at, every, &change);
	if (err || !during)
		return err;
	restore = (struct pep_link_change){.what = change.what, .value = MARK_RESTORE};
	return add_event(spec, at + during, every, &restore);
}

static const struct key keys[] = {
	{"queue", set_queue, "an NFQUEUE number, 0..65535 (needed)"},
	{"name", set_name, "a name for the statistics: up to 31 of a-z A-Z 0-9 - _"},
	{"rate", set_rate, "a rate such as 500Mbit (bit, Kbit, Mbit, Gbit); none: no limit"},
	{"trace", set_trace, "a readable trace in the Mahimahi format, in place of rate"},
	{"delay", set_delay, "a one-way delay such as 20ms (ns, us, ms, s)"},
	{"jitter", set_jitter, "a time such as 2ms, or 2ms:normal; packets stay in order"},
	{"buffer", set_buffer, "a size such as 64KiB, or 2BDP together with rtt (default 16MiB)"},
	{"rtt", set_rtt, "the round-trip time that a buffer in BDP counts with"},
	{"loss", set_loss, "a share of lost packets such as 1%"},
	{"burst", set_burst,
	 "P:R[:BAD[:GOOD]], chances a packet to enter and leave the bad state,"
	 " and losses in it (100%) and outside (0%)"},
	{"seed", set_seed, "a whole number"},
	{"event", set_event,
	 "'at TIME CHANGE [for TIME] [every TIME]', CHANGE one of 'rate 5Mbit',"
	 " 'loss 1%', 'delay 9ms', 'block'; may be given many times"},
};

static int complain(const struct spec *spec, const char *text, const char *expected)
{
	fprintf(spec->errors, "linkemu: --link: \"%s\": expected %s\n", text, expected);
	return -EINVAL;
}

static int set_key(struct spec *spec, const char *word)
{
	char copy[SPEC_SIZE];
	char *value;
	size_t i;
	int err;

	strcpy(copy, word); /* the whole text was measured before */
	value = strchr(copy, '=');
	if (!value)
		return complain(spec, word, "KEY=VALUE");
	*value++ = '\0';
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(copy, keys[i].name) != 0)
			continue;
		err = keys[i].set(spec, value);
		return err ? complain(spec, word, keys[i].expected) : 0;
	}
	return complain(spec, word, "a key that --help lists");
}

static void fill_restore(struct pep_link_conf *conf)
{
	unsigned int i;

	for (i = 0; i < conf->n_events; i++) {
		struct pep_link_change *c = &conf->events[i].change;

		if (c->value != MARK_RESTORE)
			continue;
		switch (c->what) {
		case PEP_LINK_WHAT_RATE:
			c->value = conf->rate_bps;
			break;
		case PEP_LINK_WHAT_LOSS:
			c->share = conf->loss;
			break;
		case PEP_LINK_WHAT_DELAY:
			c->value = conf->delay_ns;
			break;
		case PEP_LINK_WHAT_BLOCK:
			c->value = 0;
			break;
		}
	}
}

static int finish(struct spec *spec)
{
	struct pep_link_conf *conf = &spec->conf;
	uint64_t rate = conf->trace.count ? pep_trace_mean_rate(&conf->trace) : conf->rate_bps;

	if (!spec->has_queue)
		return complain(spec, "", "queue=NUMBER");
	if (conf->trace.count && conf->rate_bps)
		return complain(spec, "trace and rate", "one of them");
	if (spec->bdp > 0) {
		if (!rate || !spec->rtt_ns)
			return complain(spec, "buffer in BDP", "rate or trace, and rtt");
		conf->buffer_bytes =
			(uint64_t)(spec->bdp * (double)rate / 8 * (double)spec->rtt_ns / 1e9);
	}
	fill_restore(conf);
	if (!conf->name[0])
		snprintf(conf->name, sizeof(conf->name), "queue-%u", conf->queue);
	return 0;
}

int pep_spec_link(const char *text, FILE *errors, struct pep_link_conf *ret)
{
	struct spec spec = {.errors = errors, .conf = {.buffer_bytes = DEFAULT_BUFFER, .seed = 1}};
	char copy[SPEC_SIZE];
	char *rest = copy, *word;
	int err = 0;

	if (strlen(text) >= sizeof(copy))
		return complain(&spec, "...", "at most 4095 characters");
	strcpy(copy, text);
	while (!err && (word = strsep(&rest, ",")))
		err = set_key(&spec, word);
	if (!err)
		err = finish(&spec);
	if (err) {
		pep_trace_fini(&spec.conf.trace);
		return err;
	}
	*ret = spec.conf;
	return 0;
}

int pep_spec_change(const char *text, struct pep_link_change *ret)
{
	struct pep_link_change change = {0};
	int err;

	if (!strncmp(text, "rate ", 5)) {
		change.what = PEP_LINK_WHAT_RATE;
		err = pep_units_rate(text + 5, &change.value);
		if (!err &&
		    !change.value) { /* a rate of 0 is no limit inside, but not for people */
			change.what = PEP_LINK_WHAT_BLOCK;
			change.value = 1;
		}
	} else if (!strncmp(text, "loss ", 5)) {
		change.what = PEP_LINK_WHAT_LOSS;
		err = pep_units_share(text + 5, &change.share);
	} else if (!strncmp(text, "delay ", 6)) {
		change.what = PEP_LINK_WHAT_DELAY;
		err = pep_units_time(text + 6, &change.value);
	} else {
		change.what = PEP_LINK_WHAT_BLOCK;
		change.value = !strcmp(text, "block");
		err = change.value || !strcmp(text, "unblock") ? 0 : -EINVAL;
	}
	if (!err)
		*ret = change;
	return err;
}

void pep_spec_help(FILE *out)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		fprintf(out, "  %-8s%s\n", keys[i].name, keys[i].expected);
}
