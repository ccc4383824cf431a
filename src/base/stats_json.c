/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys are those of the record and of `ss -ti`; a unit is part of each key that has one. */
#include "base/stats_json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

const char *pep_stats_address(const struct in6_addr *addr, char text[PEP_STATS_ADDRESS_SIZE])
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, &addr->s6_addr[12], text, PEP_STATS_ADDRESS_SIZE);
	else
		inet_ntop(AF_INET6, addr, text, PEP_STATS_ADDRESS_SIZE);
	return text;
}

static json_t *integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *seconds(uint64_t ns)
{
	return json_real((double)ns / 1e9);
}

static const char *tcp_state_name(uint8_t state)
{
	static const char *const names[] = {
		"none",      "established", "syn_sent",   "syn_recv", "fin_wait1", "fin_wait2",
		"time_wait", "close",       "close_wait", "last_ack", "listen",    "closing",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

static const char *ca_state_name(uint8_t state)
{
	static const char *const names[] = {"open", "disorder", "cwr", "recovery", "loss"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

/* json_pack() wants json_int_t for "I". */
#define I(x) ((json_int_t)(x))

static json_t *tcp_json(const struct pep_stats_tcp *t)
{
	if (!t->valid)
		return json_null();
	return json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:I,"
		" s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"state", tcp_state_name(t->state), "ca_state", ca_state_name(t->ca_state), "rtt_us",
		I(t->srtt_us), "rttvar_us", I(t->rttvar_us), "min_rtt_us",
		I(t->min_rtt_us == UINT32_MAX ? 0 : t->min_rtt_us), "rto_us", I(t->rto_us),
		"rcv_rtt_us", I(t->rcv_rtt_us), "cwnd", I(t->cwnd), "ssthresh", I(t->ssthresh),
		"mss", I(t->snd_mss), "unacked", I(t->unacked), "lost", I(t->lost), "retrans_total",
		I(t->retrans_total), "reordering", I(t->reordering), "notsent_bytes",
		I(t->notsent_bytes), "snd_wnd", I(t->snd_wnd), "rcv_space", I(t->rcv_space),
		"rcv_ssthresh", I(t->rcv_ssthresh), "rcv_mss", I(t->rcv_mss), "data_segs_in",
		I(t->data_segs_in), "rcv_ooo", I(t->rcv_ooo), "delivered", I(t->delivered),
		"bytes_sent", integer(t->bytes_sent), "bytes_acked", integer(t->bytes_acked),
		"bytes_retrans", integer(t->bytes_retrans), "bytes_received",
		integer(t->bytes_received), "delivery_rate", integer(t->delivery_rate),
		"pacing_rate", integer(t->pacing_rate == UINT64_MAX ? 0 : t->pacing_rate),
		"busy_us", integer(t->busy_us), "rwnd_limited_us", integer(t->rwnd_limited_us),
		"sndbuf_limited_us", integer(t->sndbuf_limited_us));
}

static json_t *belief_json(const struct pep_stats_belief *b)
{
	if (!b->valid)
		return json_null();
	return json_pack("{s:s, s:i, s:o, s:I, s:f, s:f, s:I, s:I}", "mode", b->mode_name,
			 "mode_number", (int)b->mode, "bandwidth", integer(b->bandwidth),
			 "min_rtt_us", I(b->min_rtt_us), "pacing_gain", b->pacing_gain_256 / 256.0,
			 "cwnd_gain", b->cwnd_gain_256 / 256.0, "congestions", I(b->congestions),
			 "cuts", I(b->cuts));
}

static json_t *leg_json(const struct pep_stats_leg *leg)
{
	return json_pack("{s:s, s:b, s:i, s:o, s:o, s:o}", "cca", leg->cca, "cca_fallback",
			 (int)leg->fallback, "local_port", (int)leg->local_port, "unread_bytes",
			 integer(leg->unread_bytes), "tcp", tcp_json(&leg->tcp), "belief",
			 belief_json(&leg->belief));
}

static json_t *path_json(const struct pep_stats_path *path)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:s}", "bytes", integer(path->bytes),
			 "bytes_per_second", integer(path->rate), "held_bytes",
			 integer(path->held_bytes), "target_bytes", integer(path->target_bytes),
			 "limit", pep_limit_name((enum pep_limit)path->limit));
}

json_t *pep_stats_flow_json(const struct pep_stats_flow *flow, const struct pep_stats_info *info,
			    uint64_t now_real_ns)
{
	char id[PEP_STATS_FLOW_ID_SIZE];
	char client[PEP_STATS_ADDRESS_SIZE], server[PEP_STATS_ADDRESS_SIZE];
	bool closed = flow->state == PEP_STATS_FLOW_CLOSED;
	uint64_t end = closed ? flow->end_ns : now_real_ns;
	const char *class_name = info->classes[flow->class_slot];

	return json_pack(
		"{s:s, s:s, s:s, s:i, s:s, s:i, s:s, s:i, s:i, s:i, s:o, s:o, s:s?, s:o, s:o, s:o,"
		" s:o}",
		"id", pep_stats_flow_id(flow->id, id), "state",
		pep_stats_flow_state_name((enum pep_stats_flow_state)flow->state), "client",
		pep_stats_address(&flow->client, client), "client_port", (int)flow->client_port,
		"server", pep_stats_address(&flow->server, server), "server_port",
		(int)flow->server_port, "class", class_name, "worker", (int)flow->worker, "dscp",
		(int)flow->dscp, "server_dscp", (int)flow->server_dscp, "start_time",
		seconds(flow->start_ns), "age_seconds",
		seconds(end > flow->start_ns ? end - flow->start_ns : 0), "close_reason",
		closed ? pep_close_name((enum pep_close)flow->close_reason) : NULL, "downlink",
		path_json(&flow->path[PEP_DIRECTION_DOWNLINK]), "uplink",
		path_json(&flow->path[PEP_DIRECTION_UPLINK]), "wireless",
		leg_json(&flow->leg[PEP_SEGMENT_WIRELESS]), "wired",
		leg_json(&flow->leg[PEP_SEGMENT_WIRED]));
}

/* {"NAME": count, ...} of @count words. */
static json_t *reasons(const pep_stats_word *words, int count, const char *(*name)(int))
{
	json_t *object = json_object();

	for (int i = 0; object && i < count; i++)
		json_object_set_new(object, name(i), integer(pep_stats_word_get(&words[i])));
	return object;
}

static const char *close_name(int i)
{
	return pep_close_name((enum pep_close)i);
}

static const char *bypass_name(int i)
{
	return pep_bypass_name((enum pep_bypass)i);
}

static const char *refuse_name(int i)
{
	return pep_refuse_name((enum pep_refuse)i);
}

static const char *failure_name(int i)
{
	return pep_connect_failure_name((enum pep_connect_failure)i);
}

json_t *pep_stats_status_json(const struct pep_stats_info *info,
			      const struct pep_stats_block *totals, uint64_t now_real_ns)
{
	const pep_stats_word *g = totals->gauges, *c = totals->counters;
	uint64_t start = info->start_real_ns;

	return json_pack(
		"{s:s, s:s, s:I, s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
		" s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"state", pep_stats_state_name(info->state), "version", info->version, "pid",
		I(info->pid), "workers", (int)info->workers, "start_time", seconds(start),
		"uptime_seconds", seconds(now_real_ns > start ? now_real_ns - start : 0),
		"config_generation", integer(info->config_generation), "config_loaded_time",
		seconds(info->config_loaded_real_ns), "config_failed", (int)info->config_failed,
		"cpu_seconds", seconds(info->cpu_ns), "resident_bytes",
		integer(info->resident_bytes), "flows",
		integer(pep_stats_word_get(&g[PEP_GAUGE_FLOWS])), "flows_limit",
		integer(info->max_flows), "flows_pending",
		integer(pep_stats_word_get(&g[PEP_GAUGE_PENDING])), "flows_split",
		integer(pep_stats_word_get(&c[PEP_COUNTER_FLOWS_SPLIT])), "syns",
		integer(pep_stats_word_get(&c[PEP_COUNTER_SYNS])), "held_bytes",
		integer(pep_stats_word_get(&g[PEP_GAUGE_HELD_DOWNLINK_BYTES]) +
			pep_stats_word_get(&g[PEP_GAUGE_HELD_UPLINK_BYTES])),
		"held_bytes_limit", integer(info->memory_limit_bytes), "log_errors",
		integer(info->log_messages[PEP_LOG_LEVEL_ERROR]), "log_warnings",
		integer(info->log_messages[PEP_LOG_LEVEL_WARNING]), "closed",
		reasons(totals->closed, PEP_CLOSE_COUNT_, close_name), "bypassed",
		reasons(totals->bypassed, PEP_BYPASS_COUNT_, bypass_name), "refused",
		reasons(totals->refused, PEP_REFUSE_COUNT_, refuse_name), "connect_failures",
		reasons(totals->connect_failures, PEP_CONNECT_FAILURE_COUNT_, failure_name));
}

void pep_stats_explain(const char *path, int error, char *text, size_t size)
{
	uint32_t version;

	switch (error) {
	case -ENOENT:
		snprintf(text, size, "%s: no stats segment: edgepepd is not running", path);
		break;
	case -EPROTO:
		if (pep_stats_version(path, &version) == 0 && version != PEP_STATS_VERSION)
			snprintf(text, size,
				 "%s: stats segment has layout version %u, this program reads %u: "
				 "update both or restart edgepepd",
				 path, version, PEP_STATS_VERSION);
		else
			snprintf(text, size,
				 "%s: stats segment was written by another build of this version: "
				 "restart edgepepd",
				 path);
		break;
	case -EBADMSG:
		snprintf(text, size, "%s: not a stats segment, or damaged", path);
		break;
	default:
		snprintf(text, size, "%s: %s", path, strerror(-error));
		break;
	}
}
