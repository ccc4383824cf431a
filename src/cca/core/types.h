/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_TYPES_H
#define PEP_CCA_CORE_TYPES_H

/*
 * What a congestion control of ours sees and what it answers, without any kernel header.
 *
 * The same functions are compiled into the BPF objects, the unit tests and the simulator. BPF sets
 * the limits: no floating point, no signed division, no 128-bit product, every loop bounded.
 *
 * Units: time in microseconds of one monotonic clock, packets for windows and counters, bandwidth
 * in packets per microsecond scaled by 2^24 (PEP_BW_UNIT), gains scaled by 2^8 (PEP_GAIN_UNIT),
 * pacing in bytes per second.
 */

#include <stdbool.h>
#include <stdint.h>

/* Each function becomes part of its caller: a BPF program may pass no structs to a sub-program. */
#define PEP_CORE static inline __attribute__((always_inline, unused))

#define PEP_BW_SHIFT   24 /* bandwidth unit: 2^-24 packets/us (tcp_bbr.c, BW_SCALE) */
#define PEP_BW_UNIT    (1ULL << PEP_BW_SHIFT)
#define PEP_GAIN_SHIFT 8 /* gain unit: 1/256 (tcp_bbr.c, BBR_SCALE) */
#define PEP_GAIN_UNIT  (1U << PEP_GAIN_SHIFT)

#define PEP_USEC_PER_MSEC 1000U
#define PEP_USEC_PER_SEC  1000000U
#define PEP_NSEC_PER_USEC 1000U

#define PEP_RTT_NONE      UINT32_MAX  /* us; no RTT was ever measured */
#define PEP_SSTHRESH_NONE 0x7fffffffU /* packets; TCP_INFINITE_SSTHRESH */
#define PEP_INIT_CWND     10U         /* packets; TCP_INIT_CWND, RFC 6928 */
#define PEP_MIN_CWND      4U          /* packets; two delayed ACKs in flight (BBR, 4.2.3) */
#define PEP_GSO_MAX_BYTES 65536U      /* GSO_LEGACY_MAX_SIZE */
#define PEP_HEADER_BYTES  320U        /* MAX_TCP_HEADER of a usual x86-64 kernel */
#define PEP_SNDBUF_EXPAND 3U      /* send buffer over the window: a start may go on in recovery */
#define PEP_TSO_SEGS_MAX  0x7fU   /* packets; largest goal BBR aims at */
#define PEP_TSO_MIN_RATE  150000U /* bytes/s (1.2 Mbit/s): below, one segment at a time */

/** Values of icsk_ca_state. */
enum pep_ca_state {
	PEP_CA_OPEN,
	PEP_CA_DISORDER,
	PEP_CA_CWR,
	PEP_CA_RECOVERY,
	PEP_CA_LOSS,
};

/** The socket as a callback finds it. */
struct pep_cc_sock {
	uint64_t now_us;          /* clock of this event (tcp_mstamp) */
	uint64_t delivered_us;    /* when the last packet was delivered (delivered_mstamp) */
	uint64_t clock_ns;        /* cached clock (tcp_clock_cache) ... */
	uint64_t wstamp_ns;       /* ... and earliest departure of the next packet, same clock */
	uint64_t pacing_rate;     /* bytes/s, as set last */
	uint64_t max_pacing_rate; /* bytes/s, SO_MAX_PACING_RATE; ~0 when not set */
	uint32_t delivered;       /* packets delivered since the start, wraps */
	uint32_t lost;            /* packets declared lost since the start, wraps */
	uint32_t inflight;        /* packets_out - (sacked_out + lost_out) + retrans_out */
	uint32_t cwnd;            /* packets */
	uint32_t cwnd_clamp;      /* packets; never exceeded */
	uint32_t ssthresh;        /* packets */
	uint32_t app_limited; /* value of ->delivered until which the sender lacks data, 0 if not */
	uint32_t mss_bytes;   /* payload of a full packet, >= 1 */
	uint32_t srtt_us;     /* smoothed RTT, 0 when none; not shifted */
	uint32_t mdev_us;     /* mean deviation of the RTT; not shifted */
	uint32_t min_rtt_us;  /* the kernel's windowed minimum, PEP_RTT_NONE when none */
	uint32_t random;      /* read by init only */
	uint8_t pacing_shift; /* sk_pacing_shift: 10 lets about 1 ms of data into one burst */
	uint8_t ca_state;     /* enum pep_ca_state */
	bool cwnd_limited;    /* the window, not the application, held sending back */
};

/** What one ACK told about delivery (struct rate_sample). */
struct pep_cc_rate {
	int64_t interval_us;      /* over which ->delivered was delivered; <= 0: no valid sample */
	int64_t rtt_us;           /* of the newest packet acked, -1 when unknown */
	int32_t delivered;        /* packets delivered in the interval; < 0: no valid sample */
	uint32_t prior_delivered; /* sock.delivered when the acked packet was sent */
	uint32_t losses;          /* packets declared lost on this ACK */
	uint32_t acked_sacked;    /* packets newly (s)acked by this ACK */
	uint32_t prior_inflight;  /* packets in flight before this ACK */
	bool app_limited;         /* the sender lacked data while the sample was taken */
	bool ack_delayed;         /* the receiver is believed to have delayed this ACK */
};

/** What the control wants; starts as a copy of the socket's values (pep_cc_out_init). */
struct pep_cc_out {
	uint64_t pacing_rate; /* bytes/s */
	uint32_t cwnd;        /* packets */
	uint32_t ssthresh;    /* packets */
	uint32_t app_limited; /* see pep_cc_sock */
};

PEP_CORE void pep_cc_out_init(struct pep_cc_out *out, const struct pep_cc_sock *sk)
{
	out->pacing_rate = sk->pacing_rate;
	out->cwnd = sk->cwnd;
	out->ssthresh = sk->ssthresh;
	out->app_limited = sk->app_limited;
}

PEP_CORE uint32_t pep_min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

PEP_CORE uint32_t pep_max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

PEP_CORE uint64_t pep_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

PEP_CORE uint64_t pep_max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

PEP_CORE uint32_t pep_sat32(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/** Whether packet counter @a is @b or later; counters wrap. */
PEP_CORE bool pep_seq_reached(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) >= 0;
}

/** Time from @then to @now, 0 when @then is later. */
PEP_CORE uint64_t pep_elapsed_us(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

/** @packets in @interval_us (>= 1) as a bandwidth, saturated at 256 packets/us. */
PEP_CORE uint32_t pep_bw(uint32_t packets, uint64_t interval_us)
{
	return pep_sat32(((uint64_t)packets << PEP_BW_SHIFT) / interval_us);
}

/** Packets that @bw delivers in @us, saturated. */
PEP_CORE uint32_t pep_bw_packets(uint32_t bw, uint64_t us)
{
	/* bw < 2^32, so the product fits for any time below 71 minutes. */
	return pep_sat32((bw * pep_min64(us, UINT32_MAX)) >> PEP_BW_SHIFT);
}

/** ceil(@bw * @us * @gain) in packets, saturated. */
PEP_CORE uint32_t pep_bw_packets_gain(uint32_t bw, uint32_t us, uint32_t gain)
{
	uint64_t packets = (uint64_t)bw * us;

	/* A gain is below 2^10: past 2^54 the product would not fit, and so many packets never are.
	 */
	if (packets >> 54)
		return UINT32_MAX;
	packets = (packets * gain) >> PEP_GAIN_SHIFT;
	return pep_sat32((packets + PEP_BW_UNIT - 1) >> PEP_BW_SHIFT);
}

/** @bw times @gain as bytes/s, @margin_ppm millionths left out; saturated. */
PEP_CORE uint64_t pep_bw_bytes(uint32_t bw, uint32_t mss_bytes, uint32_t gain, uint32_t margin_ppm)
{
	/* bw < 2^32, mss <= 2^16, gain < 2^10: fits. 2^44 after the shift is 1 MB/us. */
	uint64_t rate = ((uint64_t)bw * mss_bytes * gain) >> PEP_GAIN_SHIFT;

	rate = pep_min64(rate, (1ULL << 44) - 1);
	return (rate * (PEP_USEC_PER_SEC - margin_ppm)) >> PEP_BW_SHIFT;
}

/** A bandwidth scaled by @gain, saturated. */
PEP_CORE uint32_t pep_gain(uint32_t value, uint32_t gain)
{
	return pep_sat32(((uint64_t)value * gain) >> PEP_GAIN_SHIFT);
}

/** Fewest segments of a burst at this pacing rate. */
PEP_CORE uint32_t pep_min_tso_segs(uint64_t pacing_rate)
{
	return pacing_rate < PEP_TSO_MIN_RATE ? 1 : 2;
}

/** Segments the stack is expected to put in one burst at this pacing rate. */
PEP_CORE uint32_t pep_tso_goal(const struct pep_cc_sock *sk, uint64_t pacing_rate)
{
	uint32_t bytes = (uint32_t)pep_min64(pacing_rate >> (sk->pacing_shift & 63),
					     PEP_GSO_MAX_BYTES - 1 - PEP_HEADER_BYTES);
	uint32_t segs = pep_max32(bytes / sk->mss_bytes, pep_min_tso_segs(pacing_rate));

	return pep_min32(segs, PEP_TSO_SEGS_MAX);
}

/** Next value of a small pseudo-random generator (xorshift32); @state is never 0 after it. */
PEP_CORE uint32_t pep_random(uint32_t *state)
{
	uint32_t x = *state ? *state : 0x9e3779b9U;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

#endif
