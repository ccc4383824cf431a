/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/segment.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/stats_json.h"
#include "ctl/ask.h"

void segment_refresh(struct segment *segment)
{
	pep_stats_read_info(segment->reader, &segment->info);
	segment->now_real_ns = pep_clock_ns(CLOCK_REALTIME);
	segment->now_mono_ns = pep_clock_mono_ns();
}

int segment_try(const char *path, struct segment *ret)
{
	struct pep_stats_reader *reader;
	int err = pep_stats_open(path, &reader);

	if (err)
		return err;
	(void)snprintf(ret->path, sizeof(ret->path), "%s", path);
	ret->reader = reader;
	segment_refresh(ret);
	return 0;
}

int segment_open(const struct ctl *ctl, struct segment *ret)
{
	char run_dir[CTL_RUN_DIR_SIZE], path[160], why[512];
	int err = ctl_run_dir(ctl, run_dir);

	if (err)
		return err;
	(void)snprintf(path, sizeof(path), "%s/" PEP_STATS_FILE, run_dir);
	err = segment_try(path, ret);
	if (err == -ENOENT)
		return ctl_fail(ctl,
				"edgepepd is not running (there is no '%s'): start it with "
				"'systemctl start edgepep'",
				path);
	if (err) {
		pep_stats_explain(path, err, why, sizeof(why));
		return ctl_fail(ctl, "%s", why);
	}
	if (!pep_stats_alive(&ret->info, ret->now_mono_ns))
		fprintf(stderr, "edgepepctl: warning: edgepepd %s; these are its last numbers\n",
			ret->info.writer_lives ? "hangs" : "has ended");
	return CTL_EXIT_OK;
}

void segment_close(struct segment *segment)
{
	pep_stats_close(segment->reader);
	segment->reader = NULL;
}

static const char *value_text(const json_t *value, char text[64])
{
	if (json_is_string(value))
		(void)snprintf(text, 64, "%s", json_string_value(value));
	else if (json_is_integer(value))
		(void)snprintf(text, 64, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		(void)snprintf(text, 64, "%.3f", json_real_value(value));
	else if (json_is_boolean(value))
		(void)snprintf(text, 64, "%s", json_is_true(value) ? "yes" : "no");
	else
		(void)snprintf(text, 64, "-");
	return text;
}

void segment_print_values(const json_t *object)
{
	const char *key;
	json_t *value;
	char text[64];

	json_object_foreach((json_t *)object, key, value) if (!json_is_object(value))
		printf("%-20s %s\n", key, value_text(value, text));
}

void segment_print_pair(const json_t *left, const json_t *right)
{
	char a[64], b[64];
	const char *key;
	json_t *value;

	/* What one side has not sampled yet is told by the other's keys. */
	json_object_foreach((json_t *)(json_is_object(left) ? left : right), key, value)
	{
		const json_t *l = json_object_get(left, key), *r = json_object_get(right, key);

		if (json_is_object(l) || json_is_object(r))
			segment_print_pair(l, r);
		else
			printf("%-20s %-20s %s\n", key, value_text(l, a), value_text(r, b));
	}
}
