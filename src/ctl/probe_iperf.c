/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl/probe.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl/run.h"

/* Connecting, the exchange of results and slow start of the tool itself. */
#define OVERHEAD_S 20

int probe_parse(const char *text, struct probe_result *ret, char error[PROBE_ERROR_SIZE])
{
	struct probe_result result = {.retransmits = -1};
	json_t *root = json_loads(text, 0, NULL), *end, *streams, *stream, *value;
	const char *why = json_string_value(json_object_get(root, "error"));
	long long rtt = 0;
	size_t i;
	int err = 0;

	end = json_object_get(root, "end");
	value = json_object_get(json_object_get(end, "sum_received"), "bits_per_second");
	if (why) {
		(void)snprintf(error, PROBE_ERROR_SIZE, "%s", why);
		err = -EIO;
	} else if (!json_is_number(value)) {
		(void)snprintf(error, PROBE_ERROR_SIZE, "iperf3 printed no result");
		err = -EPROTO;
	}
	if (err) {
		json_decref(root);
		return err;
	}
	result.bits_per_second = json_number_value(value);
	value = json_object_get(json_object_get(end, "sum_sent"), "retransmits");
	if (json_is_integer(value))
		result.retransmits = json_integer_value(value);
	streams = json_object_get(end, "streams");
	json_array_foreach(streams, i, stream)
	{
		value = json_object_get(json_object_get(stream, "sender"), "mean_rtt");
		rtt += json_integer_value(value);
	}
	if (i > 0)
		result.rtt_us = rtt / (long long)i;
	why = json_string_value(json_object_get(end, "sender_tcp_congestion"));
	(void)snprintf(result.control, sizeof(result.control), "%s", why ? why : "");
	json_decref(root);
	*ret = result;
	return 0;
}

int probe_run(const struct probe_task *task, struct probe_result *ret, char error[PROBE_ERROR_SIZE])
{
	char port[8], seconds[12], parallel[12], line[256];
	const char *argv[PROBE_MAX_PREFIX + 20];
	struct pep_run run;
	size_t n = 0;
	int err;

	(void)snprintf(port, sizeof(port), "%u", task->port);
	(void)snprintf(seconds, sizeof(seconds), "%u", task->seconds);
	(void)snprintf(parallel, sizeof(parallel), "%u", task->parallel);
	for (size_t i = 0; i < PROBE_MAX_PREFIX && task->prefix[i]; i++)
		argv[n++] = task->prefix[i];
	argv[n++] = "iperf3";
	argv[n++] = "-J";
	argv[n++] = "-c";
	argv[n++] = task->host;
	argv[n++] = "-p";
	argv[n++] = port;
	argv[n++] = "-t";
	argv[n++] = seconds;
	argv[n++] = "-P";
	argv[n++] = parallel;
	if (task->receive)
		argv[n++] = "-R";
	if (task->control && *task->control) {
		argv[n++] = "-C";
		argv[n++] = task->control;
	}
	argv[n] = NULL;
	err = pep_run(argv, NULL, task->seconds + OVERHEAD_S, &run);
	if (err) {
		(void)snprintf(error, PROBE_ERROR_SIZE, "'%s': %s", argv[0],
			       err == -ENOENT      ? "there is no such program: install it"
			       : err == -ETIMEDOUT ? "it did not come to an end"
						   : strerror(-err));
		return err;
	}
	err = probe_parse(run.out, ret, error);
	if (err == -EPROTO && *run.err)
		(void)snprintf(error, PROBE_ERROR_SIZE, "%s",
			       pep_run_first_line(run.err, line, sizeof(line)));
	pep_run_fini(&run);
	return err;
}
