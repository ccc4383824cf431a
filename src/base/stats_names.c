/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and bucket bounds of what the segment holds, and classes of errno. */
#include "base/stats.h"

#include <errno.h>

#define US 1000ull
#define MS 1000000ull
#define S  1000000000ull

/* Radio legs live at 1-50 ms, core legs at 10-300 ms; queues reach seconds. */
static const uint64_t rtt_bounds[] = {
	1 * MS,   2 * MS,   5 * MS,   10 * MS,  20 * MS, 35 * MS, 50 * MS, 75 * MS,
	100 * MS, 150 * MS, 250 * MS, 500 * MS, 1 * S,   2 * S,   4 * S,   0,
};

/* bytes/s, three per decade from 10 kB/s to 1 GB/s. */
static const uint64_t throughput_bounds[] = {
	10000,    20000,    50000,    100000,    200000,    500000,    1000000,    2000000, 5000000,
	10000000, 20000000, 50000000, 100000000, 200000000, 500000000, 1000000000, 0,
};

static const uint64_t wait_bounds[] = {
	5 * MS, 10 * MS,   25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS,
	1 * S,  2500 * MS, 5 * S,   10 * S,  30 * S,   0,
};

static const uint64_t lag_bounds[] = {
	100 * US, 250 * US, 500 * US, 1 * MS, 2500 * US, 5 * MS,
	10 * MS,  25 * MS,  100 * MS, 1 * S,  0,
};

_Static_assert(sizeof(throughput_bounds) / sizeof(uint64_t) <= PEP_STATS_MAX_BUCKETS + 1,
	       "a histogram has more buckets than the segment holds");

const uint64_t *pep_histogram_bounds(enum pep_histogram histogram)
{
	switch (histogram) {
	case PEP_HISTOGRAM_WIRELESS_RTT:
	case PEP_HISTOGRAM_WIRED_RTT:
	case PEP_HISTOGRAM_WIRELESS_MIN_RTT:
	case PEP_HISTOGRAM_WIRED_MIN_RTT:
		return rtt_bounds;
	case PEP_HISTOGRAM_WIRELESS_THROUGHPUT:
	case PEP_HISTOGRAM_WIRED_THROUGHPUT:
		return throughput_bounds;
	case PEP_HISTOGRAM_CONNECT:
	case PEP_HISTOGRAM_FIRST_BYTE:
		return wait_bounds;
	case PEP_HISTOGRAM_LOOP_LAG:
		return lag_bounds;
	case PEP_HISTOGRAM_COUNT_:
		break;
	}
	return rtt_bounds;
}

void pep_stats_observe(struct pep_stats_worker *w, enum pep_histogram histogram, uint64_t value)
{
	struct pep_stats_histogram *h = &w->block->histograms[histogram];
	const uint64_t *bounds = pep_histogram_bounds(histogram);
	unsigned int i = 0;

	while (bounds[i] && value > bounds[i])
		i++;
	pep_stats_word_add(&h->buckets[i], 1);
	pep_stats_word_add(&h->sum, value);
}

enum pep_connect_failure pep_connect_failure_from_errno(int error)
{
	switch (error) {
	case ECONNREFUSED:
	case ECONNRESET:
		return PEP_CONNECT_FAILURE_REFUSED;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EPROTO:
		return PEP_CONNECT_FAILURE_UNREACHABLE;
	case ETIMEDOUT:
		return PEP_CONNECT_FAILURE_TIMEOUT;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case EADDRINUSE:
	case EADDRNOTAVAIL:
	case EACCES:
	case EPERM:
		return PEP_CONNECT_FAILURE_LOCAL;
	default:
		return PEP_CONNECT_FAILURE_OTHER;
	}
}

const char *pep_direction_name(enum pep_direction direction)
{
	switch (direction) {
	case PEP_DIRECTION_DOWNLINK:
		return "downlink";
	case PEP_DIRECTION_UPLINK:
		return "uplink";
	case PEP_DIRECTION_COUNT_:
		break;
	}
	return "?";
}

const char *pep_stats_state_name(enum pep_stats_state state)
{
	switch (state) {
	case PEP_STATS_STATE_STARTING:
		return "starting";
	case PEP_STATS_STATE_RUNNING:
		return "running";
	case PEP_STATS_STATE_DRAINING:
		return "draining";
	case PEP_STATS_STATE_BYPASS:
		return "bypass";
	case PEP_STATS_STATE_STOPPED:
		return "stopped";
	case PEP_STATS_STATE_COUNT_:
		break;
	}
	return "?";
}

const char *pep_stats_flow_state_name(enum pep_stats_flow_state state)
{
	switch (state) {
	case PEP_STATS_FLOW_FREE:
		return "free";
	case PEP_STATS_FLOW_CONNECTING:
		return "connecting";
	case PEP_STATS_FLOW_ACCEPTING:
		return "accepting";
	case PEP_STATS_FLOW_OPEN:
		return "open";
	case PEP_STATS_FLOW_UPLINK_CLOSED:
		return "uplink_closed";
	case PEP_STATS_FLOW_DOWNLINK_CLOSED:
		return "downlink_closed";
	case PEP_STATS_FLOW_CLOSING:
		return "closing";
	case PEP_STATS_FLOW_CLOSED:
		return "closed";
	case PEP_STATS_FLOW_COUNT_:
		break;
	}
	return "?";
}

const char *pep_connect_failure_name(enum pep_connect_failure reason)
{
	switch (reason) {
	case PEP_CONNECT_FAILURE_REFUSED:
		return "refused";
	case PEP_CONNECT_FAILURE_UNREACHABLE:
		return "unreachable";
	case PEP_CONNECT_FAILURE_TIMEOUT:
		return "timeout";
	case PEP_CONNECT_FAILURE_LOCAL:
		return "local";
	case PEP_CONNECT_FAILURE_OTHER:
		return "other";
	case PEP_CONNECT_FAILURE_COUNT_:
		break;
	}
	return "?";
}
