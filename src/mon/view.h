/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_VIEW_H
#define PEP_MON_VIEW_H

/*
 * What edgepep-mon knows: follows the stats segment through the daemon's deaths and restarts, and
 * takes a picture of it once a second. Everything served comes from the picture.
 */

#include "base/stats_read.h"
#include "mon/flowset.h"
#include "mon/history.h"

#define PEP_VIEW_FRESH_NS UINT64_C(50000000)

struct pep_view;

/** @path of the segment, which need not exist. Returns 0 and a new view, or -ENOMEM. */
int pep_view_new(const char *path, struct pep_view **ret);
void pep_view_free(struct pep_view *view);

/** Takes a picture; call once a second. */
void pep_view_tick(struct pep_view *view);

/**
 * Looks whether the daemon's life or state changed since the picture; true when a tick is due now.
 * Costs two system calls.
 */
bool pep_view_changed(struct pep_view *view);

/**
 * Reads the totals again when they are older than PEP_VIEW_FRESH_NS, so that two readings tell a
 * rate and not the phase of the ticks between them; true when it did.
 */
bool pep_view_refresh(struct pep_view *view);

/** The totals as they are now, for pep_history_segments_json(); totals NULL while down. */
void pep_view_now(const struct pep_view *view, struct pep_history_tick *ret);

/** Whether the daemon lived at the last tick. */
bool pep_view_up(const struct pep_view *view);

/** Why new flows are not being split, one line; NULL when they are. */
const char *pep_view_unready(const struct pep_view *view);

/** Whether there is a stats segment that we cannot read, so that the daemon may well live. */
bool pep_view_blind(const struct pep_view *view);

/** The picture; only while up. */
const struct pep_stats_info *pep_view_info(const struct pep_view *view);
const struct pep_stats_block *pep_view_totals(const struct pep_view *view);
const struct pep_stats_block *pep_view_workers(const struct pep_view *view);
const struct pep_stats_reader *pep_view_reader(const struct pep_view *view);

/** Always there; empty while the daemon is down. */
const struct pep_history *pep_view_history(const struct pep_view *view);
struct pep_flowset *pep_view_flows(const struct pep_view *view);

/** CLOCK_REALTIME of the last tick. */
uint64_t pep_view_time_ns(const struct pep_view *view);

#endif
