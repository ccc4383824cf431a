/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_FLOWLIST_H
#define PEP_CTL_FLOWLIST_H

/* Flows picked from the stats segment, sorted, and shown as a table of columns. */

#include "base/stats_read.h"
#include "ctl/ctl.h"

enum flow_sort {
	FLOW_SORT_RATE,    /* both directions, last interval */
	FLOW_SORT_BYTES,   /* both directions, since the start */
	FLOW_SORT_AGE,     /* oldest first */
	FLOW_SORT_HELD,    /* bytes between the legs */
	FLOW_SORT_RTT,     /* of the wireless leg */
	FLOW_SORT_RETRANS, /* share sent again on the wireless leg */
	FLOW_SORT_COUNT_,
};

const char *flow_sort_name(enum flow_sort sort);
int flow_sort_parse(const char *name, enum flow_sort *ret); /* 0 or -EINVAL */

struct flow_pick {
	enum flow_sort sort;
	size_t limit;             /* 0: all */
	bool closed;              /* recently closed flows in place of live ones */
	struct pep_prefix client; /* 0 bits: every client */
};

struct flow_list {
	struct pep_stats_flow *flows; /* best first */
	size_t n;
	size_t matched; /* flows that the pick fits, shown or not */
	size_t skipped; /* flows that changed at every try to read them */
};

/** Fills @ret; returns 0 or -ENOMEM. Release with flow_list_fini. */
int flow_list_read(const struct pep_stats_reader *reader, const struct flow_pick *pick,
		   struct flow_list *ret);
void flow_list_fini(struct flow_list *list);

/** Prints the last @most seconds (0: all that is known) of flow @id. Returns the exit code. */
int flow_history(const struct ctl *ctl, const char *id, size_t most);

/* ---- columns ------------------------------------------------------------------------------------
 */

#define FLOW_CELL_SIZE   64
#define FLOW_ALL_COLUMNS 10 /* the highest weight */

struct flow_column {
	const char *title;
	int width;  /* at least; negative: to the left */
	int weight; /* columns of high weight go first when a terminal is narrow */
	void (*cell)(const struct pep_stats_flow *flow, uint64_t now_real_ns,
		     char text[FLOW_CELL_SIZE]);
};

extern const struct flow_column flow_columns[];
extern const size_t flow_n_columns;

/**
 * One line of the table, at most @size - 1 bytes: the titles (@flow NULL) or a flow's cells.
 * Columns above @max_weight are left out; if there are any, words too long for theirs are cut.
 */
void flow_line(const struct pep_stats_flow *flow, uint64_t now_real_ns, int max_weight, char *line,
	       size_t size);

/** The highest weight with which the line fits @width. */
int flow_fit(int width);

#endif
