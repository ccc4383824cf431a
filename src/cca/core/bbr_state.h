/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BBR_STATE_H
#define PEP_CCA_CORE_BBR_STATE_H

/* What one connection of the BBR family remembers, and the constants that are not parameters. */

#include "cca/core/bbr_params.h"
#include "cca/core/filter.h"

#define PEP_BBR_CYCLE_LEN          8U      /* phases of a ProbeBW cycle, about one least RTT each */
#define PEP_BBR_CYCLE_RAND         7U      /* places a cycle may start at; never the slow phase */
#define PEP_BBR_FULL_BW_GAIN       320U    /* 1/256: growth that says the pipe is not full */
#define PEP_BBR_FULL_BW_ROUNDS     3U      /* rounds without it that say it is */
#define PEP_BBR_LT_MIN_ROUNDS      4U      /* rounds of a policer's sampling interval, least ... */
#define PEP_BBR_LT_MAX_ROUNDS      16U     /* ... and most */
#define PEP_BBR_LT_LOSS_THRESH     50U     /* 1/256: share lost that looks like a policer */
#define PEP_BBR_LT_BW_RATIO        32U     /* 1/256: two intervals agree within 1/8 ... */
#define PEP_BBR_LT_BW_DIFF         500U    /* bytes/s: ... or within 4 kbit/s */
#define PEP_BBR_LT_HOLD_ROUNDS     48U     /* rounds a policer's rate is kept */
#define PEP_BBR_EXTRA_ACKED_ROUNDS 5U      /* rounds of one half of the aggregation window */
#define PEP_BBR_EXTRA_ACKED_MAX_US 100000U /* us of bandwidth the aggregation may add */
#define PEP_BBR_EPOCH_ACKED_MAX    (1U << 20)    /* packets; the aggregation epoch restarts here */
#define PEP_BBR_LT_MAX_INTERVAL_US 4294967000ULL /* us; a longer interval tells nothing */
#define PEP_BBR_FIRST_RTT_US       1000U         /* us; believed until an RTT is known */

#define PEP_BBR_JITTER_MDEV        2U /* jitter allowance: so many mean deviations ... */
#define PEP_BBR_JITTER_CAP_SHIFT   1U /* ... at most min_rtt / 2 */
#define PEP_BBR_SAME_TOL_SHIFT     3U /* "the same RTT" is never coarser than min_rtt / 8 (paper) */
#define PEP_BBR_SAFE_SLACK_SHIFT   5U /* safe pacing lets RTprop/32 of queue pass, ... */
#define PEP_BBR_NEW_SLACK_SHIFT    4U /* ... and RTprop/16 before the jitter is known */
#define PEP_BBR_STRICT_FLOOR       128U /* 1/256: 1/2; safe pacing's as well without jitter */
#define PEP_BBR_JITTER_FLOOR       208U /* 1/256: 13/16, which times 5/4 is still above 1 */
#define PEP_BBR_JITTER_MUCH_SHIFT  2U   /* jitter that counts: above RTprop/4 */
#define PEP_BBR_SPARSE_FACTOR      2U   /* few packets see about half of the jitter many see */
#define PEP_BBR_SPARSE_ROUNDS      4U   /* rounds that make the first measurement of jitter ... */
#define PEP_BBR_SPARSE_LONG_US     800000U /* ... but no more than so long over probe-rtt */
#define PEP_BBR_JOIN_QUEUE_SHIFT   4U      /* a queue of RTprop/16 that was there a round ago ... */
#define PEP_BBR_JOIN_GONE_SHIFT    5U      /* ... is gone when the RTT is within RTprop/32 */
#define PEP_BBR_JOIN_SHIFT         3U      /* ProbeRTT may join others' 1/8 of the window early */
#define PEP_BBR_BASE_CHECK_US      1000000U /* us after the start when a busy RTT ... */
#define PEP_BBR_BASE_CHECK_SHIFT   2U /* ... above the least RTT by 1/4 is checked by ProbeRTT */
#define PEP_BBR_PACING_MIN_SAMPLES 4U /* RTT samples a standing RTT must rest on */
#define PEP_BBR_PACING_IDLE_ROUNDS 3U /* round starts after idle until it is trusted again */
#define PEP_BBR_USUAL_DOWN_SHIFT   3U /* the usual loss follows a lower share by 1/8 a round ... */
#define PEP_BBR_USUAL_UP_SHIFT     6U /* ... and a higher one by 1/64 */
#define PEP_BBR_REGAIN_RISE_SHIFT  3U /* a standing RTT up by 1/8 is a queue: no search then */
#define PEP_BBR_REGAIN_CNT         1U /* rounds without growth a new search has had already */
#define PEP_BBR_QUIET_PHASE        4U /* from here on a cycle's own queue is gone: one that ... */
#define PEP_BBR_QUIET_RISE_SHIFT   2U /* ... stands above 1/4 of the RTT and ... */
#define PEP_BBR_QUIET_BURST_US     2000U /* us; ... two bursts of the pacer is others' */
#define PEP_BBR_QUIET_CYCLES       2U    /* cycles without such a queue before a search */
#define PEP_BBR_BURST_MIN          2U /* losses of a round that are never a burst by themselves, */
#define PEP_BBR_BURST_SHIFT        6U /* and one more for each 64 packets (1.6 %) */

enum pep_bbr_mode {
	PEP_BBR_STARTUP,
	PEP_BBR_DRAIN,
	PEP_BBR_PROBE_BW,
	PEP_BBR_PROBE_RTT,
	PEP_BBR_MODE_COUNT_,
};

/*
 * What share of the packets gets lost when no queue overflows. Overflows come in bursts with rounds
 * without loss between, so that a mean that falls fast and rises slowly hardly sees them.
 */
struct pep_usual_loss {
	uint32_t share;     /* 1/65536 */
	uint32_t lost;      /* sock.lost and ... */
	uint32_t delivered; /* ... sock.delivered when the round began */
};

/*
 * The standing RTT of a path in use: the least of all rounds that carried at least half a
 * bandwidth-delay product, in this min-rtt-window and the one before. Where jitter keeps the order
 * of packets, dense traffic never sees the least RTT that single packets see; compared with that,
 * there would always be a queue.
 */
struct pep_busy_rtt {
	uint64_t since_us; /* start of this window */
	uint32_t now_us;   /* least of this window, PEP_RTT_NONE before the first round */
	uint32_t before_us;
};

/*
 * What the few packets of ProbeRTT, without a queue, tell of jitter. Rounds rather than packets
 * count: where order is kept the packets of a round wait for the same one. Of the greatest RTTs of
 * the rounds the second least is taken, so that another flow's queue, coming or going in some of
 * them, does not pass for jitter.
 */
struct pep_sparse_rtt {
	uint32_t jitter_us; /* what jitter may add to the RTT; PEP_RTT_NONE: not measured yet */
	uint32_t least_us;  /* least RTT of this ProbeRTT */
	uint32_t round_us;  /* greatest RTT of this round, 0 before the first sample */
	uint32_t low_us[2]; /* the two least of the rounds' greatest, PEP_RTT_NONE before */
	uint32_t rounds;    /* rounds that have ended in this ProbeRTT */
};

struct pep_bbr {
	uint64_t min_rtt_stamp_us;    /* when min_rtt_us was taken */
	uint64_t probe_rtt_done_us;   /* when ProbeRTT may end; 0: not yet known */
	uint64_t cycle_us;            /* start of the ProbeBW phase */
	uint64_t epoch_us;            /* start of the aggregation epoch */
	uint64_t lt_last_us;          /* start of the policer interval */
	uint64_t tick_us;             /* last tick of the bandwidth filter's clock */
	struct pep_max_filter bw;     /* best bandwidth, clock in ticks */
	struct pep_standing_rtt rtt;  /* for verdicts and RTT-adjusted pacing */
	struct pep_sparse_rtt sparse; /* for RTT-adjusted pacing */
	struct pep_busy_rtt busy;     /* for the search after a blockage */
	struct pep_usual_loss usual;  /* for verdicts */
	uint32_t min_rtt_us;
	uint32_t ticks; /* the filter's clock: rounds, unless bw-window-time hurries it */
	uint32_t next_rtt_delivered; /* sock.delivered that ends the round */
	uint32_t prior_cwnd;         /* packets; to come back to after Recovery or ProbeRTT */
	uint32_t cycle_bw;           /* best bandwidth when the ProbeBW cycle began */
	uint32_t cwnd_cap;           /* packets; rises again after a congestive loss; 0: none */
	uint32_t full_bw;            /* best bandwidth when it last grew by a quarter */
	uint32_t lt_bw;              /* policer's rate */
	uint32_t lt_last_delivered;
	uint32_t lt_last_lost;
	uint32_t epoch_acked;    /* packets acked in the aggregation epoch */
	uint32_t extra_acked[2]; /* packets acked beyond what the bandwidth explains */
	uint32_t last_rtt_us;    /* previous RTT sample (paper, author) */
	uint32_t random;

	/* For observers. */
	uint32_t congestive_losses; /* loss episodes or rounds judged congestive */
	uint32_t radio_losses;      /* loss episodes judged not congestive */
	uint32_t cuts;              /* times the window was halved */
	uint32_t probe_rtts;        /* times ProbeRTT was entered */

	uint16_t pacing_gain; /* of the mode and phase */
	uint16_t cwnd_gain;
	uint16_t applied_gain; /* pacing gain after cuts and RTT adjustment */
	uint8_t mode;          /* enum pep_bbr_mode */
	uint8_t cycle_idx;
	uint8_t prev_ca_state;
	uint8_t full_bw_cnt;
	uint8_t lt_rounds;
	uint8_t extra_acked_rounds;
	uint8_t extra_acked_idx;
	uint8_t rise_count;   /* RTT samples in a row that showed the rise, or the same RTT */
	uint8_t idle_rounds;  /* round starts until the RTT is trusted again */
	uint8_t quiet_cycles; /* ProbeBW cycles since others' queue was seen, saturated */
	bool packet_conservation;
	bool round_start;
	bool idle_restart;
	bool probe_rtt_round_done;
	bool lt_is_sampling;
	bool lt_use_bw;
	bool full_bw_reached;
	bool has_seen_rtt;
	bool cut_round;      /* this round follows a cut: window held, cut-gain */
	bool episode_cut;    /* this loss episode had a cut */
	bool jitter_checked; /* ProbeRTT has come early to tell jitter from a queue */
};

#endif
