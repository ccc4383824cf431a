/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl top: the busiest flows, once a second. The daemon may end and come back meanwhile. */
#include "config.h"

#include "ctl/flowlist.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stats_json.h"
#include "base/units.h"
#include "ctl/ask.h"
#include "ctl/segment.h"

#define INTERVAL_MS 1000
#define HEAD_LINES  4

static const struct pep_usage_option options[] = {CTL_OPTIONS, {0}};

static const struct pep_usage usage = {
	"edgepepctl top",
	"[OPTION...]",
	"Shows the busiest flows with both their legs, once a second. With --json it prints one "
	"line per\n"
	"second in place of the screen, until it is stopped.",
	options,
	"\nKeys: r b a h t s sort by rate, bytes, age, held bytes, radio RTT, share sent again;\n"
	"      arrows and Page keys scroll; space updates now; q ends.\n",
	false,
};

/* What the screen shows. */
struct top {
	char path[160];
	struct segment segment;
	int error; /* of the segment; 0 while it is open */
	struct flow_pick pick;
	struct flow_list list;
	struct pep_stats_block now, before;
	uint64_t now_ns, before_ns; /* CLOCK_MONOTONIC of the two; 0: none */
	size_t first;               /* flow at the top of the table */
};

/* ---- data -------------------------------------------------------------------------------------
 */

static void top_forget(struct top *top)
{
	flow_list_fini(&top->list);
	if (top->segment.reader)
		segment_close(&top->segment);
	top->now_ns = top->before_ns = 0;
}

static void top_read(struct top *top)
{
	if (top->segment.reader && pep_stats_replaced(top->segment.reader))
		top_forget(top);
	if (!top->segment.reader) {
		top->error = segment_try(top->path, &top->segment);
		if (top->error)
			return;
	}
	segment_refresh(&top->segment);
	memcpy(&top->before, &top->now, sizeof(top->before));
	top->before_ns = top->now_ns;
	pep_stats_read_totals(top->segment.reader, &top->now);
	top->now_ns = top->segment.now_mono_ns;
	flow_list_fini(&top->list);
	top->error = flow_list_read(top->segment.reader, &top->pick, &top->list);
	if (top->first >= top->list.n)
		top->first = top->list.n ? top->list.n - 1 : 0;
}

/* Payload bytes per second that left on @segment in @direction since the last reading. */
static double payload_rate(const struct top *top, enum pep_segment segment,
			   enum pep_direction direction)
{
	uint64_t now = 0, before = 0;

	if (!top->before_ns || top->now_ns <= top->before_ns)
		return 0;
	for (int i = 0; i < PEP_STATS_MAX_CLASSES; i++) {
		now += pep_stats_word_get(&top->now.payload_bytes[segment][direction][i]);
		before += pep_stats_word_get(&top->before.payload_bytes[segment][direction][i]);
	}
	return (double)(now - before) * 1e9 / (double)(top->now_ns - top->before_ns);
}

/* ---- screen -----------------------------------------------------------------------------------
 */

static void put_line(int y, const char *line, attr_t attributes)
{
	move(y, 0);
	clrtoeol();
	attron(attributes);
	addnstr(line, COLS);
	attroff(attributes);
}

static void draw_head(const struct top *top)
{
	const struct pep_stats_info *info = &top->segment.info;
	char line[512], down[PEP_UNITS_TEXT_SIZE], up[PEP_UNITS_TEXT_SIZE];
	char held[PEP_UNITS_TEXT_SIZE], cap[PEP_UNITS_TEXT_SIZE];
	uint64_t bypassed = 0, held_bytes;

	for (int i = 0; i < PEP_BYPASS_COUNT_; i++)
		bypassed += pep_stats_word_get(&top->now.bypassed[i]);
	held_bytes = pep_stats_word_get(&top->now.gauges[PEP_GAUGE_HELD_DOWNLINK_BYTES]) +
		     pep_stats_word_get(&top->now.gauges[PEP_GAUGE_HELD_UPLINK_BYTES]);
	(void)snprintf(
		line, sizeof(line),
		"edgepepd %s%s   flows %llu of %llu   opening %llu   split %llu   bypassed %llu",
		pep_stats_state_name(info->state),
		pep_stats_alive(info, top->segment.now_mono_ns) ? "" : " (does not answer)",
		(unsigned long long)pep_stats_word_get(&top->now.gauges[PEP_GAUGE_FLOWS]),
		(unsigned long long)info->max_flows,
		(unsigned long long)pep_stats_word_get(&top->now.gauges[PEP_GAUGE_PENDING]),
		(unsigned long long)pep_stats_word_get(&top->now.counters[PEP_COUNTER_FLOWS_SPLIT]),
		(unsigned long long)bypassed);
	put_line(0, line, A_NORMAL);
	(void)snprintf(line, sizeof(line), "down %s   up %s   held between the legs %s of %s",
		       pep_units_format_rate(down, 8 * payload_rate(top, PEP_SEGMENT_WIRELESS,
								    PEP_DIRECTION_DOWNLINK)),
		       pep_units_format_rate(
			       up, 8 * payload_rate(top, PEP_SEGMENT_WIRED, PEP_DIRECTION_UPLINK)),
		       pep_units_format_bytes(held, held_bytes),
		       pep_units_format_bytes(cap, info->memory_limit_bytes));
	put_line(1, line, A_NORMAL);
	(void)snprintf(line, sizeof(line), "by %s (r b a h t s)   flows %zu-%zu of %zu",
		       flow_sort_name(top->pick.sort), top->list.n ? top->first + 1 : 0,
		       top->list.n, top->list.matched);
	put_line(2, line, A_DIM);
}

static void draw(const struct top *top)
{
	char line[512];
	int weight = flow_fit(COLS);

	erase();
	if (top->error) {
		pep_stats_explain(top->path, top->error, line, sizeof(line));
		put_line(0, line, A_BOLD);
		put_line(1, "waiting for it; q ends", A_NORMAL);
		refresh();
		return;
	}
	draw_head(top);
	flow_line(NULL, 0, weight, line, sizeof(line));
	put_line(HEAD_LINES - 1, line, A_REVERSE);
	for (int y = HEAD_LINES; y < LINES && top->first + (size_t)(y - HEAD_LINES) < top->list.n;
	     y++) {
		flow_line(&top->list.flows[top->first + (size_t)(y - HEAD_LINES)],
			  top->segment.now_real_ns, weight, line, sizeof(line));
		put_line(y, line, A_NORMAL);
	}
	refresh();
}

static void scroll_by(struct top *top, long lines)
{
	long first = (long)top->first + lines;
	long last = (long)top->list.n - 1;

	if (first > last)
		first = last;
	top->first = first > 0 ? (size_t)first : 0;
}

/* Returns false when the user wants to go. */
static bool handle_key(struct top *top, int key)
{
	static const char sort_keys[] = "rbahts";
	const char *sort = key > 0 && key < 128 ? strchr(sort_keys, key) : NULL;

	switch (key) {
	case 'q':
	case 3: /* Ctrl-C, in raw terminals */
		return false;
	case KEY_UP:
		scroll_by(top, -1);
		break;
	case KEY_DOWN:
		scroll_by(top, 1);
		break;
	case KEY_PPAGE:
		scroll_by(top, HEAD_LINES - LINES);
		break;
	case KEY_NPAGE:
		scroll_by(top, LINES - HEAD_LINES);
		break;
	case KEY_HOME:
		top->first = 0;
		break;
	default:
		if (sort)
			top->pick.sort = (enum flow_sort)(sort - sort_keys);
		break;
	}
	return true;
}

static int run_screen(struct top *top)
{
	bool going = true;

	setlocale(LC_ALL, "");
	if (!initscr())
		return CTL_EXIT_FAILURE;
	cbreak();
	noecho();
	(void)curs_set(0);
	keypad(stdscr, TRUE);
	timeout(INTERVAL_MS);
	while (going) {
		int key;

		top_read(top);
		draw(top);
		key = getch();
		/* A terminal that went away gives errors without waiting. */
		if (key == ERR && !isatty(STDIN_FILENO))
			break;
		going = key == ERR || handle_key(top, key);
	}
	endwin();
	return CTL_EXIT_OK;
}

/* ---- lines of JSON ------------------------------------------------------------------------------
 */

static json_t *lines_object(const struct top *top)
{
	json_t *flows = json_array();

	for (size_t i = 0; i < top->list.n; i++)
		(void)json_array_append_new(flows, pep_stats_flow_json(&top->list.flows[i],
								       &top->segment.info,
								       top->segment.now_real_ns));
	return json_pack(
		"{s:b, s:o, s:f, s:f, s:o}", "ok", 1, "status",
		pep_stats_status_json(&top->segment.info, &top->now, top->segment.now_real_ns),
		"downlink_bytes_per_second",
		payload_rate(top, PEP_SEGMENT_WIRELESS, PEP_DIRECTION_DOWNLINK),
		"uplink_bytes_per_second",
		payload_rate(top, PEP_SEGMENT_WIRED, PEP_DIRECTION_UPLINK), "flows", flows);
}

static int run_lines(struct top *top)
{
	int code = CTL_EXIT_OK;

	while (code == CTL_EXIT_OK) {
		char why[512];

		top_read(top);
		if (top->error) {
			pep_stats_explain(top->path, top->error, why, sizeof(why));
			code = ctl_print_json(json_pack("{s:b, s:s}", "ok", 0, "error", why));
		} else {
			code = ctl_print_json(lines_object(top));
		}
		(void)usleep(INTERVAL_MS * 1000);
	}
	return code;
}

int ctl_top(struct ctl *ctl, int argc, char **argv)
{
	struct top *top;
	char run_dir[CTL_RUN_DIR_SIZE];
	int code;

	if (ctl_options(ctl, &usage, argc, argv, &code))
		return code;
	if (argv[optind])
		return pep_usage_error(&usage, "'%s' is not understood", argv[optind]);
	code = ctl_run_dir(ctl, run_dir);
	if (code)
		return code;
	if (!ctl->json && !isatty(STDOUT_FILENO))
		return ctl_fail(ctl, "top needs a terminal; 'edgepepctl top --json' prints lines, "
				     "'edgepepctl flows' a table");
	top = calloc(1, sizeof(*top));
	if (!top)
		return ctl_fail(ctl, "out of memory");
	(void)snprintf(top->path, sizeof(top->path), "%s/" PEP_STATS_FILE, run_dir);
	top->pick.limit = ctl->json ? 50 : 1000;
	code = ctl->json ? run_lines(top) : run_screen(top);
	top_forget(top);
	free(top);
	return code;
}
