/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every metric is one row of this table; its collector writes all its series. */
#include "base/metrics.h"

#include "base/metrics_collect.h"

#define COUNTER   PEP_METRIC_TYPE_COUNTER
#define GAUGE     PEP_METRIC_TYPE_GAUGE
#define HISTOGRAM PEP_METRIC_TYPE_HISTOGRAM

/* clang-format off */
static const struct metrics_row table[] = {
	{ "edgepep_up", GAUGE, "",
	  "1 if edgepepd gave a sign of life within the last two seconds, else 0.",
	  metrics_collect_plain, PLAIN_UP, ALWAYS },
	{ "edgepep_start_time_seconds", GAUGE, "",
	  "Start of edgepepd, seconds since the epoch.",
	  metrics_collect_plain, PLAIN_START, SECONDS },
	{ "edgepep_heartbeat_timestamp_seconds", GAUGE, "",
	  "Last sign of life of edgepepd, seconds since the epoch.",
	  metrics_collect_plain, PLAIN_HEARTBEAT, SECONDS },
	{ "edgepep_draining", GAUGE, "",
	  "1 while new flows go end to end and old ones are finished.",
	  metrics_collect_plain, PLAIN_DRAINING, 0 },
	{ "edgepep_bypass", GAUGE, "",
	  "1 while the operator sends all new flows end to end.",
	  metrics_collect_plain, PLAIN_BYPASS, 0 },
	{ "edgepep_config_last_reload_successful", GAUGE, "",
	  "0 if the last reload was refused and the configuration before it still holds, else 1.",
	  metrics_collect_plain, PLAIN_CONFIG_OK, 0 },
	{ "edgepep_config_last_reload_success_timestamp_seconds", GAUGE, "",
	  "When the configuration in force was loaded, seconds since the epoch.",
	  metrics_collect_plain, PLAIN_CONFIG_LOADED, SECONDS },
	{ "edgepep_cpu_seconds_total", COUNTER, "",
	  "CPU time used by edgepepd, user and system.",
	  metrics_collect_plain, PLAIN_CPU, SECONDS },
	{ "edgepep_resident_memory_bytes", GAUGE, "",
	  "Resident memory of edgepepd; socket buffers and pipes are not in it.",
	  metrics_collect_plain, PLAIN_RESIDENT, 0 },
	{ "edgepep_log_errors_total", COUNTER, "",
	  "Log lines of edgepepd of level error.",
	  metrics_collect_plain, PLAIN_LOG_ERRORS, 0 },
	{ "edgepep_log_warnings_total", COUNTER, "",
	  "Log lines of edgepepd of level warning.",
	  metrics_collect_plain, PLAIN_LOG_WARNINGS, 0 },

	{ "edgepep_flows", GAUGE, "",
	  "Flows that are split now.",
	  metrics_collect_gauge, PEP_GAUGE_FLOWS, 0 },
	{ "edgepep_flows_limit", GAUGE, "",
	  "Flows that may be split at the same time (max-flows).",
	  metrics_collect_plain, PLAIN_FLOWS_LIMIT, 0 },
	{ "edgepep_flows_pending", GAUGE, "",
	  "SYNs being verified and clients whose handshake with the gateway goes on.",
	  metrics_collect_gauge, PEP_GAUGE_PENDING, 0 },
	{ "edgepep_syns_total", COUNTER, "",
	  "SYNs that came to the gate, retransmissions included.",
	  metrics_collect_counter, PEP_COUNTER_SYNS, 0 },
	{ "edgepep_syn_retransmissions_total", COUNTER, "",
	  "SYNs sent again: dropped while the first is verified, or bypassed as the first was.",
	  metrics_collect_counter, PEP_COUNTER_SYN_RETRANSMISSIONS, 0 },
	{ "edgepep_flows_split_total", COUNTER, "",
	  "Flows whose two legs were joined.",
	  metrics_collect_counter, PEP_COUNTER_FLOWS_SPLIT, 0 },
	{ "edgepep_flows_bypassed_total", COUNTER, "reason",
	  "SYNs that were sent end to end, by reason.",
	  metrics_collect_bypassed, 0, 0 },
	{ "edgepep_flows_refused_total", COUNTER, "reason",
	  "SYNs that the gateway itself refused, by reason.",
	  metrics_collect_refused, 0, 0 },
	{ "edgepep_flows_closed_total", COUNTER, "reason",
	  "Flows that ended, by reason.",
	  metrics_collect_closed, 0, 0 },
	{ "edgepep_connect_attempts_total", COUNTER, "",
	  "Connections to servers that were begun.",
	  metrics_collect_counter, PEP_COUNTER_CONNECT_ATTEMPTS, 0 },
	{ "edgepep_connect_failures_total", COUNTER, "reason",
	  "Connections to servers that failed, by reason.",
	  metrics_collect_connect_failures, 0, 0 },
	{ "edgepep_connect_duration_seconds", HISTOGRAM, "",
	  "Time from connecting to a server until it answered.",
	  metrics_collect_histogram, PEP_HISTOGRAM_CONNECT, 0 },
	{ "edgepep_first_byte_seconds", HISTOGRAM, "",
	  "Time from a flow's SYN to the first byte sent to its client.",
	  metrics_collect_histogram, PEP_HISTOGRAM_FIRST_BYTE, 0 },
	{ "edgepep_source_port_fallbacks_total", COUNTER, "",
	  "Server connections that could not have the client's own port.",
	  metrics_collect_counter, PEP_COUNTER_SOURCE_PORT_FALLBACKS, 0 },
	{ "edgepep_accept_orphans_total", COUNTER, "",
	  "Accepted client connections that no flow was waiting for.",
	  metrics_collect_counter, PEP_COUNTER_ACCEPT_ORPHANS, 0 },
	{ "edgepep_accept_failures_total", COUNTER, "",
	  "Client connections that could not be accepted for want of descriptors or memory.",
	  metrics_collect_counter, PEP_COUNTER_ACCEPT_FAILURES, 0 },
	{ "edgepep_socket_option_failures_total", COUNTER, "",
	  "Settings of a leg that the kernel refused; the leg goes on without them.",
	  metrics_collect_counter, PEP_COUNTER_OPTION_FAILURES, 0 },
	{ "edgepep_gate_errors_total", COUNTER, "",
	  "Verdicts on SYNs that the kernel did not take.",
	  metrics_collect_counter, PEP_COUNTER_GATE_ERRORS, 0 },
	{ "edgepep_gate_overruns_total", COUNTER, "",
	  "Times the kernel's SYN queue overflowed; the SYNs lost there are not counted.",
	  metrics_collect_counter, PEP_COUNTER_GATE_OVERRUNS, 0 },

	{ "edgepep_segment_payload_bytes_total", COUNTER, "segment, direction, class",
	  "Payload bytes read from or written to a segment: its goodput.",
	  metrics_collect_payload, 0, 0 },
	{ "edgepep_segment_sent_bytes_total", COUNTER, "segment, cca",
	  "Payload bytes that the kernel sent on a segment, retransmissions included.",
	  metrics_collect_per_cca, PER_CCA_SENT, 0 },
	{ "edgepep_segment_retransmitted_bytes_total", COUNTER, "segment, cca",
	  "Payload bytes that the kernel sent again on a segment.",
	  metrics_collect_per_cca, PER_CCA_RETRANSMITTED, 0 },
	{ "edgepep_segment_busy_seconds_total", COUNTER, "segment",
	  "Time in which a segment's connections had data to send, summed over connections.",
	  metrics_collect_per_segment, PER_SEGMENT_BUSY, SECONDS },
	{ "edgepep_segment_rwnd_limited_seconds_total", COUNTER, "segment",
	  "Part of the busy time in which the peer's window was in the way.",
	  metrics_collect_per_segment, PER_SEGMENT_RWND, SECONDS },
	{ "edgepep_segment_sndbuf_limited_seconds_total", COUNTER, "segment",
	  "Part of the busy time in which the send buffer was too small.",
	  metrics_collect_per_segment, PER_SEGMENT_SNDBUF, SECONDS },
	{ "edgepep_segment_limited_seconds_total", COUNTER, "segment, direction, reason",
	  "Flow time by what held the flow back, and on which segment that lies.",
	  metrics_collect_limited, 0, SECONDS },
	{ "edgepep_segment_rtt_seconds", HISTOGRAM, "segment",
	  "Smoothed round-trip time of connections that made progress, sampled each second.",
	  metrics_collect_segment_histogram, PEP_HISTOGRAM_WIRELESS_RTT, 0 },
	{ "edgepep_segment_min_rtt_seconds", HISTOGRAM, "segment",
	  "Least round-trip time of each connection, observed at its end.",
	  metrics_collect_segment_histogram, PEP_HISTOGRAM_WIRELESS_MIN_RTT, 0 },
	{ "edgepep_segment_flow_throughput_bytes_per_second", HISTOGRAM, "segment",
	  "Mean rate of each flow sent on a segment, observed at its end.",
	  metrics_collect_segment_histogram, PEP_HISTOGRAM_WIRELESS_THROUGHPUT, 0 },
	{ "edgepep_cca_fallbacks_total", COUNTER, "segment, cca",
	  "Connections that did not get the congestion control asked for (label cca).",
	  metrics_collect_per_cca, PER_CCA_FALLBACKS, 0 },

	{ "edgepep_relay_held_bytes", GAUGE, "direction",
	  "Bytes that the relay has read from one leg and not yet written to the other.",
	  metrics_collect_held, 0, 0 },
	{ "edgepep_segment_receive_queue_bytes", GAUGE, "segment",
	  "Bytes that came in from a segment and wait in its sockets to be relayed.",
	  metrics_collect_segment_gauge, PEP_GAUGE_UNREAD_WIRELESS_BYTES, 0 },
	{ "edgepep_segment_send_queue_bytes", GAUGE, "segment",
	  "Bytes that were relayed to a segment and wait in its sockets to be sent a first time.",
	  metrics_collect_segment_gauge, PEP_GAUGE_NOTSENT_WIRELESS_BYTES, 0 },
	{ "edgepep_relay_memory_limit_bytes", GAUGE, "",
	  "Bytes that all relays together may hold.",
	  metrics_collect_plain, PLAIN_MEMORY_LIMIT, 0 },
	{ "edgepep_relay_spliced_bytes_total", COUNTER, "",
	  "Bytes that went from leg to leg without being copied.",
	  metrics_collect_counter, PEP_COUNTER_RELAY_SPLICED_BYTES, 0 },
	{ "edgepep_relay_copied_bytes_total", COUNTER, "",
	  "Bytes that were copied from leg to leg.",
	  metrics_collect_counter, PEP_COUNTER_RELAY_COPIED_BYTES, 0 },
	{ "edgepep_relay_cap_hits_total", COUNTER, "",
	  "Times a relay went on without memory, all together holding as much as they may.",
	  metrics_collect_counter, PEP_COUNTER_RELAY_CAP_HITS, 0 },
	{ "edgepep_pipes_used", GAUGE, "",
	  "Pipes with bytes in them.",
	  metrics_collect_gauge, PEP_GAUGE_PIPES_USED, 0 },
	{ "edgepep_pipes_idle", GAUGE, "",
	  "Pipes kept ready.",
	  metrics_collect_gauge, PEP_GAUGE_PIPES_IDLE, 0 },
	{ "edgepep_pipe_failures_total", COUNTER, "",
	  "Times no pipe was to be had and bytes were copied instead.",
	  metrics_collect_counter, PEP_COUNTER_PIPE_FAILURES, 0 },
	{ "edgepep_event_loop_lag_seconds", HISTOGRAM, "worker",
	  "How late timers of a worker's event loop fire.",
	  metrics_collect_worker_histogram, PEP_HISTOGRAM_LOOP_LAG, 0 },
	{ "edgepep_samples_total", COUNTER, "",
	  "Samples of flows taken.",
	  metrics_collect_counter, PEP_COUNTER_SAMPLES, 0 },
	{ "edgepep_sample_seconds_total", COUNTER, "",
	  "Time spent taking them.",
	  metrics_collect_counter, PEP_COUNTER_SAMPLE_NS, SECONDS },
	{ "edgepep_flow_records_full_total", COUNTER, "",
	  "Flows that are in no list because the flow table was full.",
	  metrics_collect_counter, PEP_COUNTER_RECORDS_FULL, 0 },

	{ "edgepep_monitor_requests_total", COUNTER, "",
	  "HTTP requests that edgepep-mon answered.",
	  metrics_collect_plain, PLAIN_MON_REQUESTS, ALWAYS },
	{ "edgepep_monitor_connections", GAUGE, "",
	  "HTTP connections open at edgepep-mon.",
	  metrics_collect_plain, PLAIN_MON_CONNECTIONS, ALWAYS },
	{ "edgepep_monitor_refused_connections_total", COUNTER, "",
	  "HTTP connections that edgepep-mon closed at once, having too many.",
	  metrics_collect_plain, PLAIN_MON_REFUSED, ALWAYS },
	{ "edgepep_monitor_render_duration_seconds", GAUGE, "",
	  "Time the last rendering of everything that edgepep-mon serves took.",
	  metrics_collect_plain, PLAIN_MON_RENDER, ALWAYS | SECONDS },
};
/* clang-format on */

#define N_ROWS (sizeof(table) / sizeof(table[0]))

void pep_metrics_write(const struct pep_metrics_input *input, enum pep_metrics_format format,
		       FILE *out)
{
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct metrics_row *row = &table[i];
		struct metrics_family family = {out, format, row->name, row->type};

		if (!input->up && !(row->flags & ALWAYS))
			continue;
		metrics_family_begin(&family, row->help);
		row->collect(row, input, &family);
	}
	metrics_end(out, format);
}

const char *pep_metrics_content_type(enum pep_metrics_format format)
{
	switch (format) {
	case PEP_METRICS_FORMAT_PROMETHEUS:
		break;
	case PEP_METRICS_FORMAT_OPENMETRICS:
		return "application/openmetrics-text; version=1.0.0; charset=utf-8";
	}
	return "text/plain; version=0.0.4; charset=utf-8";
}

bool pep_metrics_get(size_t i, struct pep_metric_info *ret)
{
	if (i >= N_ROWS)
		return false;
	*ret = (struct pep_metric_info){table[i].name, table[i].type, table[i].labels,
					table[i].help};
	return true;
}

const char *pep_metric_type_name(enum pep_metric_type type)
{
	switch (type) {
	case PEP_METRIC_TYPE_COUNTER:
		return "counter";
	case PEP_METRIC_TYPE_GAUGE:
		return "gauge";
	case PEP_METRIC_TYPE_HISTOGRAM:
		return "histogram";
	}
	return "untyped";
}

void pep_metrics_document(FILE *out)
{
	fputs("| metric | type | labels | meaning |\n|---|---|---|---|\n", out);
	for (size_t i = 0; i < N_ROWS; i++)
		fprintf(out, "| `%s` | %s | %s | %s |\n", table[i].name,
			pep_metric_type_name(table[i].type), table[i].labels, table[i].help);
}
