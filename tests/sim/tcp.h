/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_TCP_H
#define PEP_SIM_TCP_H

/*
 * A TCP sender that behaves as Linux does towards a congestion control: SACK scoreboard, RACK loss
 * detection, tail loss probe, RTO with Eifel undo, proportional rate reduction, delivery-rate
 * samples, and pacing by an internal timer. Windows and sequence numbers count whole packets.
 */

#include <stdbool.h>
#include <stdint.h>

#include "prng.h"

#define SIM_TCP_NIL          UINT32_MAX
#define SIM_TCP_INFINITE     0x7fffffffu /* slow start threshold before the first loss */
#define SIM_TCP_INIT_CWND    10u
#define SIM_TCP_RTO_MIN_US   200000u
#define SIM_TCP_RTO_MAX_US   120000000u
#define SIM_TCP_RTO_INIT_US  1000000u
#define SIM_TCP_TICK_US      8000u      /* least timer: two jiffies at 250 Hz */
#define SIM_TCP_MAX_WINDOW   (1u << 20) /* packets */
#define SIM_TCP_HEADER_BYTES 52u        /* IP, TCP and its timestamps: wire size - MSS */

/* The numbers are those of Linux: the controls under test compare states by order. */
enum sim_ca_state {
	SIM_CA_OPEN,
	SIM_CA_DISORDER,
	SIM_CA_CWR,
	SIM_CA_RECOVERY,
	SIM_CA_LOSS,
};

enum sim_ca_event {
	SIM_EVENT_TX_START,     /* first packet after all were acknowledged */
	SIM_EVENT_CWND_RESTART, /* the same after a long idle time */
	SIM_EVENT_COMPLETE_CWR, /* end of recovery; not for cong_control */
	SIM_EVENT_LOSS,         /* RTO */
};

enum sim_pkt_flag {
	SIM_PKT_SACKED = 1,       /* the sender knows it arrived */
	SIM_PKT_LOST = 2,         /* the sender believes it lost */
	SIM_PKT_RETRANS = 4,      /* a retransmission of it is in flight */
	SIM_PKT_EVER_RETRANS = 8, /* it was sent more than once */
	SIM_PKT_APP_LIMITED = 16, /* sent while there was too little to send */
	SIM_PKT_RECEIVED = 32,    /* the receiver has it (the receiver's flag, not the sender's) */
};

struct sim_pkt {
	uint64_t sent_ns;
	uint64_t first_tx_ns;  /* start of the send interval of its rate sample */
	uint64_t delivered_ns; /* start of the ACK interval; 0 once sampled */
	uint32_t delivered;    /* delivered count when sent */
	uint32_t older, newer; /* list of packets in flight by send time */
	uint32_t flags;
};

/** One rate sample; the fields are those of Linux' struct rate_sample. */
struct sim_rate {
	uint64_t prior_ns; /* 0: no packet was delivered */
	uint32_t prior_delivered;
	int32_t delivered;     /* -1: invalid */
	int64_t interval_us;   /* -1: invalid */
	int64_t rtt_us;        /* -1: none */
	uint32_t losses;       /* newly marked lost */
	uint32_t acked_sacked; /* newly delivered */
	uint32_t prior_in_flight;
	bool is_app_limited, is_retrans, is_ack_delayed;
	uint64_t last_sent_ns; /* the newest packet behind the sample */
	uint32_t last_seq;
};

/** What an ACK tells. */
struct sim_ack {
	uint64_t at_ns;   /* when the sender gets it */
	uint64_t echo_ns; /* when the packet that caused it was sent (the timestamp option) */
	uint32_t una;     /* all below have arrived */
	uint32_t sack;    /* this one has arrived too; SIM_TCP_NIL: none */
};

enum sim_timer {
	SIM_TIMER_NONE,
	SIM_TIMER_RTO,
	SIM_TIMER_PROBE,   /* tail loss probe */
	SIM_TIMER_REORDER, /* RACK's reordering window */
};

struct sim_tcp;
struct sim_cca;

/** How the sender reaches the network and its clock. */
struct sim_tcp_ops {
	/** Puts packet @seq, last sent now, on the wire. */
	void (*transmit)(struct sim_tcp *tp, uint32_t seq);
};

struct sim_tcp {
	uint64_t now_ns;

	/* scoreboard; packet s is pkts[s & mask] */
	struct sim_pkt *pkts;
	uint32_t mask;
	uint32_t una, nxt;  /* oldest not acknowledged, next new */
	uint32_t write_seq; /* the application has given packets below this */
	uint32_t sacked_out, lost_out, retrans_out;
	uint32_t oldest, newest; /* list by send time */
	uint32_t retrans_hint;   /* no lost packet below this waits for its retransmission */

	/* congestion state */
	uint32_t cwnd, cwnd_cnt, ssthresh, prior_cwnd, prior_ssthresh;
	uint32_t prr_delivered, prr_out, high_seq;
	enum sim_ca_state state;
	bool cwnd_limited;
	uint32_t max_packets_out, cwnd_usage_seq;
	uint64_t undo_retrans_ns; /* first retransmission of this episode; 0: none, nothing to undo
				   */

	/* delivery */
	uint32_t delivered, lost, app_limited;
	uint64_t delivered_ns, first_tx_ns;

	/* round-trip time: srtt is in 1/8 us, mdev in 1/4 us, as in Linux */
	uint32_t srtt_us, mdev_us, mdev_max_us, rttvar_us, rtt_seq, min_rtt_us, rto_us, backoff;

	/* RACK */
	uint64_t rack_sent_ns;
	uint32_t rack_seq, rack_rtt_us;

	/* timers; SIM_NEVER when off */
	enum sim_timer timer;
	uint64_t timer_ns, pace_ns;
	uint32_t probe_seq; /* end of the tail loss probe outstanding; SIM_TCP_NIL: none */

	/* pacing */
	bool pacing;
	uint64_t pacing_rate; /* bytes of payload per second */
	uint64_t wstamp_ns;   /* earliest time of the next packet */
	uint64_t last_send_ns;

	uint32_t mss;       /* payload bytes of a packet */
	uint32_t max_burst; /* upper limit of packets sent back to back when paced */
	bool failed;        /* out of memory, or a window beyond SIM_TCP_MAX_WINDOW */

	const struct sim_tcp_ops *ops;
	const struct sim_cca *cca;
	void *ca; /* the control's state */
	struct sim_prng prng;

	/* books */
	uint64_t sent, retransmitted, rtos, undos, recoveries;
};

/** Prepares a connection that has just been set up with one RTT sample. Returns 0 or -ENOMEM. */
int sim_tcp_init(struct sim_tcp *tp, const struct sim_tcp_ops *ops, const struct sim_cca *cca,
		 const void *cca_conf, uint64_t now_ns, uint32_t rtt_us, uint32_t mss,
		 uint64_t seed);
void sim_tcp_fini(struct sim_tcp *tp);

/** Sends what windows, pacing and data allow. Call when data has come or a timer says so. */
void sim_tcp_push(struct sim_tcp *tp);

/** Handles an ACK; tp->now_ns must be its time. */
void sim_tcp_ack(struct sim_tcp *tp, const struct sim_ack *ack);

/** The timer of timer_ns has run out. */
void sim_tcp_timeout(struct sim_tcp *tp);

/** The application has data up to packet @write_seq. */
void sim_tcp_write(struct sim_tcp *tp, uint32_t write_seq);

/* Between the parts of the sender (tcp_out.c, tcp_in.c, tcp_loss.c, tcp_rate.c). */

static inline struct sim_pkt *sim_tcp_pkt(struct sim_tcp *tp, uint32_t seq)
{
	return &tp->pkts[seq & tp->mask];
}

static inline uint32_t sim_tcp_packets_out(const struct sim_tcp *tp)
{
	return tp->nxt - tp->una;
}

static inline uint32_t sim_tcp_in_flight(const struct sim_tcp *tp)
{
	return tp->nxt - tp->una - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static inline uint64_t sim_tcp_us(const struct sim_tcp *tp)
{
	return tp->now_ns / 1000;
}

bool sim_tcp_cwnd_limited(const struct sim_tcp *tp);
bool sim_tcp_in_reduction(const struct sim_tcp *tp); /* CWR or Recovery */
void sim_tcp_list_remove(struct sim_tcp *tp, uint32_t seq);
void sim_tcp_set_state(struct sim_tcp *tp, enum sim_ca_state state);
void sim_tcp_set_timer(struct sim_tcp *tp); /* restarts probe or RTO after progress */
void sim_tcp_arm(struct sim_tcp *tp, enum sim_timer timer, uint64_t at_ns);
void sim_tcp_retransmit(struct sim_tcp *tp, uint32_t seq);

void sim_tcp_event(struct sim_tcp *tp, enum sim_ca_event event);
void sim_tcp_mark_lost(struct sim_tcp *tp, uint32_t seq);
void sim_tcp_rack_advance(struct sim_tcp *tp, uint32_t seq);
void sim_tcp_rack_timeout(struct sim_tcp *tp);
void sim_tcp_enter_loss(struct sim_tcp *tp);
void sim_tcp_alert(struct sim_tcp *tp, const struct sim_ack *ack, bool una_moved);
void sim_tcp_reduce(struct sim_tcp *tp, uint32_t acked, uint32_t lost, bool una_moved);

void sim_tcp_rate_sent(struct sim_tcp *tp, struct sim_pkt *p);
void sim_tcp_rate_delivered(struct sim_tcp *tp, uint32_t seq, struct sim_rate *rs);
void sim_tcp_rate_finish(struct sim_tcp *tp, struct sim_rate *rs);
void sim_tcp_rtt_sample(struct sim_tcp *tp, int64_t seq_rtt_us, int64_t ca_rtt_us);

#endif
