/* SPDX-License-Identifier: GPL-2.0-or-later */
/* No state, no clock, no I/O: the same input always gets the same verdict. */
#include "base/attribution.h"

#include <string.h>

#define MS 1000000ull

#define IDLE_GAP_MIN_NS (40 * MS) /* shorter silences are the ACK clock or a scheduler */
#define IDLE_GAP_MAX_NS (1000 * MS)

static uint64_t reading_rtt_us(const struct pep_stats_tcp *tcp)
{
	/*
	 * A leg that only receives has no fresh srtt; rcv_rtt follows the data, but it also counts
	 * a sender's pauses as round trips: let it say at most four times what srtt says.
	 */
	if (!tcp->rcv_rtt_us)
		return tcp->srtt_us;
	if (tcp->srtt_us && tcp->rcv_rtt_us > 4 * (uint64_t)tcp->srtt_us)
		return 4 * (uint64_t)tcp->srtt_us;
	return tcp->rcv_rtt_us > tcp->srtt_us ? tcp->rcv_rtt_us : tcp->srtt_us;
}

static uint64_t idle_gap_ns(const struct pep_stats_tcp *reading)
{
	uint64_t gap = reading ? reading_rtt_us(reading) * 1500 + 10 * MS : 0;

	if (gap < IDLE_GAP_MIN_NS)
		return IDLE_GAP_MIN_NS;
	return gap > IDLE_GAP_MAX_NS ? IDLE_GAP_MAX_NS : gap;
}

void pep_attribution_init(struct pep_attribution_relay *relay, uint64_t now_ns)
{
	memset(relay, 0, sizeof(*relay));
	relay->since_ns = now_ns;
	relay->last_read_ns = now_ns;
	relay->idle_gap_ns = idle_gap_ns(NULL);
}

/* The closed periods and the part of an open one that lies in this interval. */
static uint64_t close_period(uint64_t *since_ns, uint64_t *sum_ns, uint64_t now_ns)
{
	uint64_t ns = *sum_ns;

	if (*since_ns) {
		ns += now_ns - *since_ns;
		*since_ns = now_ns;
	}
	*sum_ns = 0;
	return ns;
}

void pep_attribution_take(struct pep_attribution_relay *relay, uint64_t now_ns,
			  const struct pep_stats_tcp *reading, struct pep_attribution_input *ret)
{
	uint64_t idle = relay->idle_ns;

	if (now_ns - relay->last_read_ns > relay->idle_gap_ns)
		idle += now_ns - (relay->last_read_ns > relay->since_ns ? relay->last_read_ns
									: relay->since_ns);

	ret->interval_ns = now_ns - relay->since_ns;
	ret->bytes_in = relay->bytes_in;
	ret->idle_ns = idle;
	ret->bursts = relay->bursts;
	ret->blocked_ns = close_period(&relay->blocked_since_ns, &relay->blocked_ns, now_ns);
	ret->capped_ns = close_period(&relay->capped_since_ns, &relay->capped_ns, now_ns);

	relay->since_ns = now_ns;
	relay->bytes_in = relay->bytes_out = 0;
	relay->idle_ns = 0;
	relay->bursts = 0;
	relay->idle_gap_ns = idle_gap_ns(reading);
}

static uint64_t delta64(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static uint32_t delta32(uint32_t before, uint32_t after)
{
	return after - before; /* the kernel's counters wrap */
}

/*
 * Data waited for the sending leg through half of the interval, or its socket never ran dry. Two
 * looks at a socket prove that only if the kernel, too, was busy sending meanwhile: a relay that
 * gets along slowly may have just filled it both times.
 */
static bool sending_leg_waits(const struct pep_attribution_input *in)
{
	const struct pep_stats_tcp *before = in->sending_before, *after = in->sending_after;
	uint64_t busy_ns = delta64(before->busy_us, after->busy_us) * 1000;

	if (2 * in->blocked_ns >= in->interval_ns)
		return true;
	return before->notsent_bytes > 2 * before->snd_mss &&
	       after->notsent_bytes > 2 * after->snd_mss && 2 * busy_ns >= in->interval_ns;
}

static enum pep_limit judge_sending(const struct pep_attribution_input *in)
{
	const struct pep_stats_tcp *before = in->sending_before, *after = in->sending_after;
	uint64_t busy_us = delta64(before->busy_us, after->busy_us);
	uint64_t rwnd_us = delta64(before->rwnd_limited_us, after->rwnd_limited_us);
	uint64_t starved_us = delta64(before->sndbuf_limited_us, after->sndbuf_limited_us);
	/*
	 * BBR goes down to four segments for a moment each ten seconds, in which the peer empties
	 * its buffer and opens its window: a look at that moment shows neither as it mostly is.
	 */
	uint64_t cwnd = before->cwnd > after->cwnd ? before->cwnd : after->cwnd;
	uint32_t window = before->valid && before->snd_wnd < after->snd_wnd ? before->snd_wnd
									    : after->snd_wnd;

	/*
	 * The kernel's own account of the time in which only the peer's window was in the way. A
	 * slow reader opens it in small steps, each of which ends such a time: then it is enough
	 * that the window is below what the path would bear.
	 */
	if (rwnd_us > 0 &&
	    (2 * rwnd_us >= busy_us || (10 * rwnd_us >= busy_us && window < cwnd * after->snd_mss)))
		return PEP_LIMIT_RECEIVER;
	/* A closed window with nothing in flight: only window probes go out. */
	if (after->snd_wnd < after->snd_mss && after->unacked == 0 && after->notsent_bytes > 0)
		return PEP_LIMIT_RECEIVER;
	/* The socket wanted more while the relay had it. */
	if (2 * starved_us >= busy_us && starved_us > 0)
		return PEP_LIMIT_PROXY;
	return in->direction == PEP_DIRECTION_DOWNLINK ? PEP_LIMIT_WIRELESS : PEP_LIMIT_WIRED;
}

/* The sender filled the window that we give it, or what it sent lies unread. */
static bool our_window_limits(const struct pep_attribution_input *in)
{
	uint64_t window = in->reading_after->rcv_ssthresh;
	uint64_t rtt_us = reading_rtt_us(in->reading_after);
	uint64_t per_rtt;

	if (in->window_bytes && (!window || in->window_bytes < window))
		window = in->window_bytes;
	if (!window)
		return false;
	if (2 * in->unread_bytes >= window)
		return true;

	/* The kernel's autotuning keeps the window at more than twice of what a round trip brings.
	 */
	per_rtt = in->bytes_in * rtt_us / (in->interval_ns / 1000 + 1);
	if (4 * per_rtt >= 3 * window)
		return true;
	/*
	 * The round trip of a leg that only receives is the kernel's least estimate: on a jittery
	 * path, or with a busy CPU, a filled window looks less than full. rcv_space is the most
	 * that came in one round trip: near the window, it had been filled and could not grow.
	 */
	return 8 * (uint64_t)in->reading_after->rcv_space >= 7 * window && 2 * per_rtt >= window;
}

/* A sender with data in hand sends full segments back to back, or one round trip apart at most. */
static bool sender_has_nothing(const struct pep_attribution_input *in)
{
	const struct pep_stats_tcp *before = in->reading_before, *after = in->reading_after;
	uint64_t bytes = delta64(before->bytes_received, after->bytes_received);
	uint64_t segments = delta32(before->data_segs_in, after->data_segs_in);
	uint64_t disordered = delta32(before->rcv_ooo, after->rcv_ooo);
	uint64_t full, deficit;

	if (in->bytes_in == 0 && bytes == 0)
		return disordered == 0; /* else a hole is being repaired */
	/* A silence after a loss may be the sender's retransmission timer. */
	if (2 * in->idle_ns >= in->interval_ns && disordered == 0)
		return true;
	if (segments == 0)
		return false;

	/* rcv_mss follows what arrives: for small messages it is small. Ours tells what would fit.
	 */
	if (after->snd_mss && bytes * 100 < segments * after->snd_mss * 85)
		return true;

	/*
	 * Bursts that end with segments that are not full were written by a program, not by a
	 * queue: a sender with a queue was never seen to send a short one. Segments that came out
	 * of order are counted before their bytes are.
	 */
	full = segments * after->rcv_mss;
	deficit = full > bytes ? full - bytes : 0;
	return deficit > disordered * after->rcv_mss &&
	       deficit - disordered * after->rcv_mss >= after->rcv_mss &&
	       deficit * 24 >= (uint64_t)in->bursts * after->rcv_mss;
}

enum pep_limit pep_attribution_judge(const struct pep_attribution_input *in)
{
	if (in->interval_ns == 0)
		return PEP_LIMIT_APPLICATION;
	if (sending_leg_waits(in))
		return judge_sending(in);
	/* Without memory the relay goes on at higher cost: that limits only if data lie unread. */
	if (2 * in->capped_ns >= in->interval_ns &&
	    in->unread_bytes > 2 * (uint64_t)in->reading_after->rcv_mss)
		return PEP_LIMIT_PROXY;
	/* Before the sender: the last segment that fits a window is seldom a full one either. */
	if (our_window_limits(in))
		return PEP_LIMIT_PROXY;
	if (sender_has_nothing(in))
		return PEP_LIMIT_APPLICATION;
	return in->direction == PEP_DIRECTION_DOWNLINK ? PEP_LIMIT_WIRED : PEP_LIMIT_WIRELESS;
}

enum pep_segment pep_attribution_segment(enum pep_limit limit, enum pep_direction direction)
{
	switch (limit) {
	case PEP_LIMIT_WIRED:
		return PEP_SEGMENT_WIRED;
	case PEP_LIMIT_WIRELESS:
		return PEP_SEGMENT_WIRELESS;
	case PEP_LIMIT_RECEIVER:
		return pep_direction_sending(direction);
	case PEP_LIMIT_APPLICATION:
	case PEP_LIMIT_PROXY:
	case PEP_LIMIT_COUNT_:
		break;
	}
	return pep_direction_reading(direction);
}
