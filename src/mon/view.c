/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A reader is kept while its file is in place, also after the daemon died: the lock tells. */
#include "mon/view.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stats_json.h"

struct pep_view {
	char path[PATH_MAX];
	struct pep_stats_reader *reader;
	int open_error;
	bool up;
	uint32_t pid;           /* of the daemon in the picture, to notice a restart */
	uint64_t start_real_ns; /* the same */
	char unready[PATH_MAX + 200];
	struct pep_stats_info info;
	struct pep_stats_block totals;
	struct pep_stats_block *workers;
	struct pep_history *history;
	struct pep_flowset *flows;
	uint64_t real_ns;                    /* of the last tick */
	uint64_t read_mono_ns, read_real_ns; /* when the totals were read */
};

int pep_view_new(const char *path, struct pep_view **ret)
{
	struct pep_view *view = calloc(1, sizeof(*view));

	if (!view)
		return -ENOMEM;
	snprintf(view->path, sizeof(view->path), "%s", path);
	view->workers = calloc(PEP_CONF_MAX_WORKERS, sizeof(*view->workers));
	view->history = pep_history_new();
	view->flows = pep_flowset_new();
	if (!view->workers || !view->history || !view->flows) {
		pep_view_free(view);
		return -ENOMEM;
	}
	*ret = view;
	return 0;
}

void pep_view_free(struct pep_view *view)
{
	if (!view)
		return;
	pep_stats_close(view->reader);
	pep_history_free(view->history);
	pep_flowset_free(view->flows);
	free(view->workers);
	free(view);
}

/* Opens the segment, or the new one in the place of the old. */
static void follow(struct pep_view *view)
{
	struct pep_stats_reader *reader = NULL;
	int err;

	if (view->reader && !pep_stats_replaced(view->reader))
		return;
	err = pep_stats_open(view->path, &reader);
	pep_stats_close(view->reader);
	view->reader = reader;
	view->open_error = err;
}

static void explain(struct pep_view *view)
{
	size_t size = sizeof(view->unready);

	view->unready[0] = '\0';
	if (!view->reader) {
		pep_stats_explain(view->path, view->open_error, view->unready, size);
	} else if (!view->info.writer_lives || view->info.state == PEP_STATS_STATE_STOPPED) {
		snprintf(view->unready, size, "edgepepd is not running (pid %u has ended)",
			 view->info.pid);
	} else if (!view->up) {
		snprintf(view->unready, size, "edgepepd hangs (pid %u gives no sign of life)",
			 view->info.pid);
	} else {
		switch (view->info.state) {
		case PEP_STATS_STATE_STARTING:
			snprintf(view->unready, size, "edgepepd is starting");
			break;
		case PEP_STATS_STATE_DRAINING:
			snprintf(view->unready, size, "draining: new flows go end to end");
			break;
		case PEP_STATS_STATE_BYPASS:
			snprintf(view->unready, size,
				 "bypassed by the operator: new flows go "
				 "end to end");
			break;
		case PEP_STATS_STATE_RUNNING:
		case PEP_STATS_STATE_STOPPED:
		case PEP_STATS_STATE_COUNT_:
			break;
		}
	}
}

static void read_totals(struct pep_view *view, uint64_t mono_ns, uint64_t real_ns)
{
	memset(&view->totals, 0, sizeof(view->totals));
	for (unsigned int i = 0; i < view->info.workers; i++) {
		pep_stats_read_worker(view->reader, i, &view->workers[i]);
		pep_stats_block_add(&view->totals, &view->workers[i]);
	}
	view->read_mono_ns = mono_ns;
	view->read_real_ns = real_ns;
}

static void take_picture(struct pep_view *view, uint64_t mono_ns)
{
	struct pep_history_tick tick = {
		.mono_ns = mono_ns, .real_ns = view->real_ns, .totals = &view->totals};

	if (view->pid != view->info.pid || view->start_real_ns != view->info.start_real_ns) {
		if (view->pid)
			pep_history_push_gap(view->history, view->real_ns);
		pep_flowset_clear(view->flows);
		view->pid = view->info.pid;
		view->start_real_ns = view->info.start_real_ns;
	}
	read_totals(view, mono_ns, view->real_ns);
	if (pep_flowset_tick(view->flows, view->reader, view->real_ns) < 0)
		pep_warning("out of memory: the list of flows is not complete");
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++)
		tick.min_rtt_us[s] = pep_flowset_min_rtt_us(view->flows, (enum pep_segment)s);
	pep_history_push(view->history, &tick);
}

void pep_view_tick(struct pep_view *view)
{
	uint64_t mono_ns = pep_clock_mono_ns();
	bool was_up = view->up;
	char was[sizeof(view->unready)];

	memcpy(was, view->unready, sizeof(was));
	view->real_ns = pep_clock_ns(CLOCK_REALTIME);
	follow(view);
	view->up = false;
	if (view->reader) {
		pep_stats_read_info(view->reader, &view->info);
		view->up = pep_stats_alive(&view->info, mono_ns);
	}
	explain(view);
	if (view->up) {
		take_picture(view, mono_ns);
	} else {
		pep_flowset_clear(view->flows);
		pep_history_push_gap(view->history, view->real_ns);
	}
	if (view->up != was_up || strcmp(was, view->unready) != 0)
		pep_notice("%s", view->unready[0] ? view->unready : "edgepepd is up");
}

bool pep_view_changed(struct pep_view *view)
{
	enum pep_stats_state state = view->info.state;
	bool up;

	if (!view->reader || pep_stats_replaced(view->reader))
		return view->up || view->reader;
	pep_stats_read_info(view->reader, &view->info);
	up = pep_stats_alive(&view->info, pep_clock_mono_ns());
	return up != view->up || view->info.state != state;
}

bool pep_view_refresh(struct pep_view *view)
{
	uint64_t mono_ns = pep_clock_mono_ns();

	if (!view->up || mono_ns - view->read_mono_ns < PEP_VIEW_FRESH_NS)
		return false;
	pep_stats_read_info(view->reader, &view->info);
	read_totals(view, mono_ns, pep_clock_ns(CLOCK_REALTIME));
	return true;
}

void pep_view_now(const struct pep_view *view, struct pep_history_tick *ret)
{
	*ret = (struct pep_history_tick){
		.mono_ns = view->read_mono_ns,
		.real_ns = view->up ? view->read_real_ns : view->real_ns,
		.totals = view->up ? &view->totals : NULL,
	};
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++)
		ret->min_rtt_us[s] = pep_flowset_min_rtt_us(view->flows, (enum pep_segment)s);
}

bool pep_view_up(const struct pep_view *view)
{
	return view->up;
}

const char *pep_view_unready(const struct pep_view *view)
{
	return view->unready[0] ? view->unready : NULL;
}

bool pep_view_blind(const struct pep_view *view)
{
	return !view->reader && view->open_error != -ENOENT;
}

const struct pep_stats_info *pep_view_info(const struct pep_view *view)
{
	return &view->info;
}

const struct pep_stats_block *pep_view_totals(const struct pep_view *view)
{
	return &view->totals;
}

const struct pep_stats_block *pep_view_workers(const struct pep_view *view)
{
	return view->workers;
}

const struct pep_stats_reader *pep_view_reader(const struct pep_view *view)
{
	return view->reader;
}

const struct pep_history *pep_view_history(const struct pep_view *view)
{
	return view->history;
}

struct pep_flowset *pep_view_flows(const struct pep_view *view)
{
	return view->flows;
}

uint64_t pep_view_time_ns(const struct pep_view *view)
{
	return view->real_ns;
}
