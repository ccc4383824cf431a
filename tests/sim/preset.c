/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Named scenarios: those of the published comparisons and of the evaluation. */
#include "scenario.h"

#include <errno.h>
#include <string.h>

#define MAX_SETTINGS 12

static const struct preset {
	const char *name, *help;
	struct {
		const char *name, *value;
	} set[MAX_SETTINGS];
} presets[] = {
	{"mixed-rtt",
	 "4 flows of 10 ms and 4 of 50 ms, buffer 2 BDP (BBR-A, ICT Express 2020)",
	 {{"rate", "20Mbit/s"},
	  {"buffer", "2bdp"},
	  {"flow", "count=4,rtt=10ms"},
	  {"flow", "count=4,rtt=50ms"},
	  {"time", "60s"}}},
	{"random-loss",
	 "one flow, 1 % random loss",
	 {{"rate", "20Mbit/s"}, {"rtt", "40ms"}, {"loss", "1%"}, {"time", "60s"}}},
	{"deep-buffer",
	 "4 flows, buffer 5 BDP (RTT-adjusted pacing, TRITA-EECS-EX 2020:855)",
	 {{"rate", "20Mbit/s"},
	  {"rtt", "40ms"},
	  {"buffer", "5bdp"},
	  {"flows", "4"},
	  {"time", "60s"}}},
	{"shallow-buffer",
	 "4 flows, buffer 1 BDP",
	 {{"rate", "20Mbit/s"},
	  {"rtt", "40ms"},
	  {"buffer", "1bdp"},
	  {"flows", "4"},
	  {"time", "60s"}}},
	{"radio-jitter",
	 "one flow, up to 30 ms of jitter",
	 {{"rate", "20Mbit/s"},
	  {"rtt", "40ms"},
	  {"buffer", "5bdp"},
	  {"jitter", "30ms"},
	  {"time", "60s"}}},
	{"lossy-100m",
	 "one flow, 100 Mbit/s, 20 ms, 0.1 % random loss (bandwidth estimation)",
	 {{"rate", "100Mbit/s"}, {"rtt", "20ms"}, {"loss", "0.1%"}, {"time", "60s"}}},
	{"blockage",
	 "radio in sight, blocked from 7 s to 15 s (2500, 500, 2500 Mbit/s)",
	 {{"rate", "2500Mbit/s"},
	  {"rate-at", "7s:500Mbit/s"},
	  {"rate-at", "15s:2500Mbit/s"},
	  {"rtt", "10ms"},
	  {"buffer", "2bdp"},
	  {"time", "22s"},
	  {"warmup", "2s"},
	  {"series", "10ms"}}},
	{"burst-loss",
	 "one flow, bursts of 10 lost packets, 0.5 % in all",
	 {{"rate", "20Mbit/s"}, {"rtt", "40ms"}, {"burst", "0.05%,10%,100%"}, {"time", "60s"}}},
};

int scenario_preset(struct scenario *s, const char *name, FILE *errors)
{
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
		if (strcmp(presets[i].name, name) != 0)
			continue;
		for (int k = 0; k < MAX_SETTINGS && presets[i].set[k].name; k++) {
			int r = scenario_set(s, presets[i].set[k].name, presets[i].set[k].value,
					     errors);

			if (r < 0)
				return r;
		}
		return 0;
	}
	fprintf(errors, "there is no preset '%.40s'; see --list-presets\n", name);
	return -EINVAL;
}

void scenario_print_presets(FILE *out)
{
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++)
		fprintf(out, "%-16s %s\n", presets[i].name, presets[i].help);
}
