/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns of flow tables, both legs side by side. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/stats_json.h"
#include "base/units.h"
#include "ctl/flowlist.h"

static void put(char text[FLOW_CELL_SIZE], const char *value)
{
	(void)snprintf(text, FLOW_CELL_SIZE, "%s", value);
}

static void cell_id(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	char id[PEP_STATS_FLOW_ID_SIZE];

	(void)now;
	put(text, pep_stats_flow_id(f->id, id));
}

static void cell_address(const struct in6_addr *addr, uint16_t port, char *text)
{
	char address[PEP_STATS_ADDRESS_SIZE];
	bool v6 = !IN6_IS_ADDR_V4MAPPED(addr);

	(void)snprintf(text, FLOW_CELL_SIZE, "%s%s%s:%u", v6 ? "[" : "",
		       pep_stats_address(addr, address), v6 ? "]" : "", port);
}

static void cell_client(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	(void)now;
	cell_address(&f->client, f->client_port, text);
}

static void cell_server(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	(void)now;
	cell_address(&f->server, f->server_port, text);
}

static void cell_age(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	char time[PEP_UNITS_TEXT_SIZE];
	uint64_t end = f->end_ns ? f->end_ns : now;

	put(text, pep_units_format_time(time, end > f->start_ns ? (end - f->start_ns) / 1000 : 0));
}

static void cell_state(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	(void)now;
	if (f->state == PEP_STATS_FLOW_CLOSED)
		put(text, pep_close_name((enum pep_close)f->close_reason));
	else
		put(text, pep_stats_flow_state_name((enum pep_stats_flow_state)f->state));
}

static void cell_rate(const struct pep_stats_path *path, char *text)
{
	char rate[PEP_UNITS_TEXT_SIZE];

	put(text, path->rate ? pep_units_format_rate(rate, 8.0 * (double)path->rate) : "-");
}

static void cell_down(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	(void)now;
	cell_rate(&f->path[PEP_DIRECTION_DOWNLINK], text);
}

static void cell_up(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	(void)now;
	cell_rate(&f->path[PEP_DIRECTION_UPLINK], text);
}

static void cell_bytes(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	char bytes[PEP_UNITS_TEXT_SIZE];

	(void)now;
	put(text, pep_units_format_bytes(bytes, f->path[0].bytes + f->path[1].bytes));
}

static void cell_held(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	char bytes[PEP_UNITS_TEXT_SIZE];
	uint64_t held = f->path[0].held_bytes + f->path[1].held_bytes;

	(void)now;
	put(text, held ? pep_units_format_bytes(bytes, held) : "-");
}

static void leg_cca(const struct pep_stats_leg *leg, char *text)
{
	(void)snprintf(text, FLOW_CELL_SIZE, "%s%s", leg->cca[0] ? leg->cca : "-",
		       leg->fallback ? "!" : "");
}

static void leg_rtt(const struct pep_stats_leg *leg, char *text)
{
	char time[PEP_UNITS_TEXT_SIZE];

	put(text, leg->tcp.valid ? pep_units_format_time(time, leg->tcp.srtt_us) : "-");
}

static void leg_again(const struct pep_stats_leg *leg, char *text)
{
	const struct pep_stats_tcp *tcp = &leg->tcp;

	if (!tcp->valid || !tcp->bytes_sent)
		put(text, "-");
	else
		(void)snprintf(text, FLOW_CELL_SIZE, "%.2f%%",
			       100.0 * (double)tcp->bytes_retrans / (double)tcp->bytes_sent);
}

#define LEG_CELL(name, part, segment)                                              \
	static void name(const struct pep_stats_flow *f, uint64_t now, char *text) \
	{                                                                          \
		(void)now;                                                         \
		part(&f->leg[segment], text);                                      \
	}

LEG_CELL(cell_wl_cca, leg_cca, PEP_SEGMENT_WIRELESS)
LEG_CELL(cell_wl_rtt, leg_rtt, PEP_SEGMENT_WIRELESS)
LEG_CELL(cell_wl_again, leg_again, PEP_SEGMENT_WIRELESS)
LEG_CELL(cell_wd_cca, leg_cca, PEP_SEGMENT_WIRED)
LEG_CELL(cell_wd_rtt, leg_rtt, PEP_SEGMENT_WIRED)
LEG_CELL(cell_wd_again, leg_again, PEP_SEGMENT_WIRED)

static void cell_limit(const struct pep_stats_flow *f, uint64_t now, char *text)
{
	const struct pep_stats_path *down = &f->path[PEP_DIRECTION_DOWNLINK];
	const struct pep_stats_path *up = &f->path[PEP_DIRECTION_UPLINK];
	const struct pep_stats_path *busy = up->rate > down->rate ? up : down;

	(void)now;
	put(text, pep_limit_name((enum pep_limit)busy->limit));
}

const struct flow_column flow_columns[] = {
	{"FLOW", -7, 5, cell_id},
	{"CLIENT", -19, 0, cell_client},
	{"SERVER", -21, 6, cell_server},
	{"AGE", 9, 8, cell_age},
	{"STATE", -10, 9, cell_state},
	{"DOWN", 11, 0, cell_down},
	{"UP", 11, 4, cell_up},
	{"BYTES", 9, 9, cell_bytes},
	{"HELD", 9, 7, cell_held},
	{"LIMITED BY", -11, 1, cell_limit},
	{"RADIO CCA", -10, 8, cell_wl_cca},
	{"RADIO RTT", 9, 2, cell_wl_rtt},
	{"AGAIN", 7, 7, cell_wl_again},
	{"WIRED CCA", -10, FLOW_ALL_COLUMNS, cell_wd_cca},
	{"WIRED RTT", 9, 3, cell_wd_rtt},
	{"AGAIN", 7, FLOW_ALL_COLUMNS, cell_wd_again},
};
const size_t flow_n_columns = sizeof(flow_columns) / sizeof(*flow_columns);

/* A word of more than @width characters would push the rest out of its columns, and of the screen.
 */
static void clip(char *text, int width)
{
	if (width > 0 && strlen(text) > (size_t)width)
		(void)strcpy(text + width - 1, "~");
}

void flow_line(const struct pep_stats_flow *flow, uint64_t now_real_ns, int max_weight, char *line,
	       size_t size)
{
	size_t used = 0;

	line[0] = '\0';
	for (size_t i = 0; i < flow_n_columns && used < size; i++) {
		const struct flow_column *column = &flow_columns[i];
		char text[FLOW_CELL_SIZE];

		if (column->weight > max_weight)
			continue;
		if (flow)
			column->cell(flow, now_real_ns, text);
		else
			put(text, column->title);
		if (max_weight < FLOW_ALL_COLUMNS)
			clip(text, -column->width);
		used += (size_t)snprintf(line + used, size - used, "%s%*s", used ? "  " : "",
					 column->width, text);
	}
	used = strlen(line);
	while (used && line[used - 1] == ' ')
		line[--used] = '\0';
}

int flow_fit(int width)
{
	int best = 0;

	for (int weight = 0; weight <= FLOW_ALL_COLUMNS; weight++) {
		int sum = 0;

		for (size_t i = 0; i < flow_n_columns; i++)
			if (flow_columns[i].weight <= weight)
				sum += 2 + (flow_columns[i].width < 0 ? -flow_columns[i].width
								      : flow_columns[i].width);
		if (sum - 2 <= width)
			best = weight;
	}
	return best;
}
