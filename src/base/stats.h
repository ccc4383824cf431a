/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_STATS_H
#define PEP_BASE_STATS_H

/*
 * The stats segment, writer's side: what edgepepd publishes in shared memory (RUN-DIR/stats).
 *
 * The main thread owns the header, each worker owns its block, its flow records and its ring of
 * closed flows: one writer per word. Counters are relaxed atomics; flow records carry a sequence
 * number that is odd while they change. No function below takes a lock, and after
 * pep_stats_create() none allocates. Readers (stats_read.h) never slow a writer down.
 */

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/conf.h"
#include "base/reason.h"

#define PEP_STATS_FILE        "stats" /* in the run-dir */
#define PEP_STATS_VERSION     2u      /* of the layout; any change of it counts */
#define PEP_STATS_MAX_CLASSES 64
#define PEP_STATS_MAX_CCAS    16
#define PEP_STATS_NAME_SIZE   PEP_CONF_NAME_SIZE

/** Payload towards the client or towards the server. */
enum pep_direction {
	PEP_DIRECTION_DOWNLINK, /* read from the wired leg, written to the wireless leg */
	PEP_DIRECTION_UPLINK,   /* read from the wireless leg, written to the wired leg */
	PEP_DIRECTION_COUNT_,
};

/** What the daemon does with new flows. */
enum pep_stats_state {
	PEP_STATS_STATE_STARTING,
	PEP_STATS_STATE_RUNNING,
	PEP_STATS_STATE_DRAINING,
	PEP_STATS_STATE_BYPASS,
	PEP_STATS_STATE_STOPPED, /* left behind by a clean exit that could not unlink */
	PEP_STATS_STATE_COUNT_,
};

/** Counters without a label, one set per worker. */
enum pep_counter {
	PEP_COUNTER_SYNS,                  /* SYNs the gate saw, retransmissions included */
	PEP_COUNTER_SYN_RETRANSMISSIONS,   /* the first is being verified, or was bypassed */
	PEP_COUNTER_FLOWS_SPLIT,           /* flows whose two legs were joined */
	PEP_COUNTER_CONNECT_ATTEMPTS,      /* wired-leg connect() calls */
	PEP_COUNTER_SOURCE_PORT_FALLBACKS, /* client's port was taken, another was used */
	PEP_COUNTER_ACCEPT_ORPHANS,        /* accepted connections that no flow waited for */
	PEP_COUNTER_ACCEPT_FAILURES,       /* clients that could not be accepted */
	PEP_COUNTER_OPTION_FAILURES,       /* socket options that the kernel refused */
	PEP_COUNTER_GATE_ERRORS,           /* verdicts that could not be sent */
	PEP_COUNTER_GATE_OVERRUNS,         /* ENOBUFS: the kernel's queue overflowed */
	PEP_COUNTER_RELAY_COPIED_BYTES,    /* bytes that took the copy path */
	PEP_COUNTER_RELAY_SPLICED_BYTES,   /* bytes that took the splice path */
	PEP_COUNTER_RELAY_CAP_HITS,        /* pumps that went on without relay memory */
	PEP_COUNTER_PIPE_FAILURES,         /* no pipe to be had: copy path taken */
	PEP_COUNTER_SAMPLES,               /* flow samples taken */
	PEP_COUNTER_SAMPLE_NS,             /* time spent taking them */
	PEP_COUNTER_RECORDS_FULL,          /* flows without a record, the table being full */
	PEP_COUNTER_COUNT_,
};

/** Why a wired connect failed. */
enum pep_connect_failure {
	PEP_CONNECT_FAILURE_REFUSED,
	PEP_CONNECT_FAILURE_UNREACHABLE,
	PEP_CONNECT_FAILURE_TIMEOUT,
	PEP_CONNECT_FAILURE_LOCAL, /* no descriptor, port or memory on this host */
	PEP_CONNECT_FAILURE_OTHER,
	PEP_CONNECT_FAILURE_COUNT_,
};

/** Levels, one set per worker; the sum over workers makes sense. */
enum pep_gauge {
	PEP_GAUGE_FLOWS,               /* open flows, both legs joined */
	PEP_GAUGE_PENDING,             /* SYNs being verified or waiting to be accepted */
	PEP_GAUGE_HELD_DOWNLINK_BYTES, /* bytes between the legs */
	PEP_GAUGE_HELD_UPLINK_BYTES,
	PEP_GAUGE_PIPES_USED,
	PEP_GAUGE_PIPES_IDLE, /* in the pool */
	/* Queues in the sockets of the legs, wireless then wired, as last sampled. */
	PEP_GAUGE_UNREAD_WIRELESS_BYTES, /* came in, the relay has not read them */
	PEP_GAUGE_UNREAD_WIRED_BYTES,
	PEP_GAUGE_NOTSENT_WIRELESS_BYTES, /* taken from the relay, never sent yet */
	PEP_GAUGE_NOTSENT_WIRED_BYTES,
	PEP_GAUGE_COUNT_,
};

/** Times are observed in ns, throughput in bytes per second. */
enum pep_histogram {
	PEP_HISTOGRAM_WIRELESS_RTT, /* smoothed, once per sample of an active leg */
	PEP_HISTOGRAM_WIRED_RTT,
	PEP_HISTOGRAM_WIRELESS_MIN_RTT, /* once, at close */
	PEP_HISTOGRAM_WIRED_MIN_RTT,
	PEP_HISTOGRAM_WIRELESS_THROUGHPUT, /* downlink mean of the flow's life, at close */
	PEP_HISTOGRAM_WIRED_THROUGHPUT,    /* uplink, the same */
	PEP_HISTOGRAM_CONNECT,             /* wired connect() to connected */
	PEP_HISTOGRAM_FIRST_BYTE, /* SYN at the gate to the first byte sent to the client */
	PEP_HISTOGRAM_LOOP_LAG,   /* a worker's timer fired so much late */
	PEP_HISTOGRAM_COUNT_,
};

#define PEP_STATS_MAX_BUCKETS 20

typedef _Atomic uint64_t pep_stats_word;

struct pep_stats_histogram {
	pep_stats_word buckets[PEP_STATS_MAX_BUCKETS + 1]; /* not cumulative; last: above all */
	pep_stats_word sum;
};

/** One worker's totals. Indices are segment, direction and reason enums, and name slots. */
struct pep_stats_block {
	pep_stats_word counters[PEP_COUNTER_COUNT_];
	pep_stats_word gauges[PEP_GAUGE_COUNT_];
	pep_stats_word closed[PEP_CLOSE_COUNT_];
	pep_stats_word bypassed[PEP_BYPASS_COUNT_];
	pep_stats_word refused[PEP_REFUSE_COUNT_];
	pep_stats_word connect_failures[PEP_CONNECT_FAILURE_COUNT_];
	pep_stats_word payload_bytes[PEP_SEGMENT_COUNT_][PEP_DIRECTION_COUNT_]
				    [PEP_STATS_MAX_CLASSES];
	/* From TCP_INFO of the legs: what the kernel sent on a segment, payload bytes. */
	pep_stats_word sent_bytes[PEP_SEGMENT_COUNT_][PEP_STATS_MAX_CCAS];
	pep_stats_word retransmitted_bytes[PEP_SEGMENT_COUNT_][PEP_STATS_MAX_CCAS];
	pep_stats_word cca_fallbacks[PEP_SEGMENT_COUNT_][PEP_STATS_MAX_CCAS];
	pep_stats_word busy_ns[PEP_SEGMENT_COUNT_];
	pep_stats_word rwnd_limited_ns[PEP_SEGMENT_COUNT_];
	pep_stats_word sndbuf_limited_ns[PEP_SEGMENT_COUNT_];
	pep_stats_word limited_ns[PEP_SEGMENT_COUNT_][PEP_DIRECTION_COUNT_][PEP_LIMIT_COUNT_];
	struct pep_stats_histogram histograms[PEP_HISTOGRAM_COUNT_];
	/* Bound what a reader scans: records ever used, closed flows ever written. */
	pep_stats_word flows_high, closed_count;
};

/** What we keep of a leg's TCP_INFO; names and units as in `ss -ti`. */
struct pep_stats_tcp {
	uint64_t bytes_acked, bytes_received, bytes_sent, bytes_retrans;
	uint64_t delivery_rate, pacing_rate; /* bytes/s; pacing ~0: none */
	uint64_t busy_us, rwnd_limited_us, sndbuf_limited_us;
	uint32_t srtt_us, rttvar_us, min_rtt_us, rto_us, rcv_rtt_us;
	uint32_t cwnd, ssthresh; /* packets */
	uint32_t snd_mss, rcv_mss, unacked, lost, retrans_total, reordering;
	uint32_t delivered, data_segs_in, data_segs_out, rcv_ooo;
	uint32_t notsent_bytes, snd_wnd, rcv_space, rcv_ssthresh;
	uint8_t state;    /* TCP_ESTABLISHED ... */
	uint8_t ca_state; /* open, disorder, cwr, recovery, loss */
	uint8_t backoff;
	uint8_t valid; /* 0: never sampled */
};

/** What the congestion control believes, where it tells. */
struct pep_stats_belief {
	uint64_t bandwidth; /* bytes/s */
	uint32_t min_rtt_us;
	uint32_t pacing_gain_256, cwnd_gain_256; /* 256 is 1.0 */
	uint32_t congestions;                    /* congestion verdicts so far */
	uint32_t cuts;                           /* window reductions so far */
	uint8_t mode;                            /* the control's own number */
	uint8_t valid;
	char mode_name[14]; /* "startup", "probe_bw"...; "" when unknown */
};

struct pep_stats_leg {
	char cca[PEP_STATS_NAME_SIZE]; /* in use, as TCP_CONGESTION told */
	uint8_t cca_slot;              /* pep_stats_cca() of it */
	uint8_t fallback;              /* 1: another one had been asked for */
	uint16_t local_port;           /* of our own end where it differs, else 0 */
	uint64_t unread_bytes; /* in the socket, not read by the relay, at the last sample */
	struct pep_stats_tcp tcp;
	struct pep_stats_belief belief;
};

struct pep_stats_path {
	uint64_t bytes;        /* relayed to the sending leg since the start */
	uint64_t held_bytes;   /* between the legs at the last sample */
	uint64_t target_bytes; /* what the relay may hold */
	uint64_t rate;         /* bytes/s of the last interval */
	uint8_t limit;         /* enum pep_limit of the last interval */
	uint8_t pad[7];
};

enum pep_stats_flow_state {
	PEP_STATS_FLOW_FREE,       /* no flow in this record */
	PEP_STATS_FLOW_CONNECTING, /* the wired leg is being opened */
	PEP_STATS_FLOW_ACCEPTING,  /* the client's handshake with us goes on */
	PEP_STATS_FLOW_OPEN,
	PEP_STATS_FLOW_UPLINK_CLOSED,   /* the client sent FIN */
	PEP_STATS_FLOW_DOWNLINK_CLOSED, /* the server sent FIN */
	PEP_STATS_FLOW_CLOSING,         /* both did, bytes are still under way */
	PEP_STATS_FLOW_CLOSED,          /* only in the ring of closed flows */
	PEP_STATS_FLOW_COUNT_,
};

/** One flow. Change it only between pep_stats_flow_begin() and pep_stats_flow_end(). */
struct pep_stats_flow {
	_Atomic uint32_t sequence;      /* odd while being written; not the user's business */
	uint32_t slot;                  /* the same */
	uint64_t id;                    /* worker << 48 | number; text form: pep_stats_flow_id() */
	struct in6_addr client, server; /* IPv4 as v4-mapped */
	uint16_t client_port, server_port; /* host order */
	uint8_t state;                     /* enum pep_stats_flow_state */
	uint8_t close_reason;              /* enum pep_close, once CLOSED */
	uint8_t worker, class_slot;        /* class_slot: pep_stats_class() */
	uint8_t dscp;                      /* of the client's SYN */
	uint8_t server_dscp;
	uint8_t pad[6];
	uint64_t start_ns, end_ns; /* CLOCK_REALTIME; end 0 while it lives */
	uint64_t sample_ns;        /* CLOCK_MONOTONIC of the last sample, 0: none */
	struct pep_stats_leg leg[PEP_SEGMENT_COUNT_];
	struct pep_stats_path path[PEP_DIRECTION_COUNT_];
};

/** Main thread's numbers, set with pep_stats_set_*() and pep_stats_heartbeat(). */
struct pep_stats_main {
	pep_stats_word heartbeat_real_ns, heartbeat_mono_ns;
	pep_stats_word state;                 /* enum pep_stats_state */
	pep_stats_word config_generation;     /* 1 at the start, +1 per successful reload */
	pep_stats_word config_failed;         /* 1: the last reload was refused */
	pep_stats_word config_loaded_real_ns; /* of the last successful load */
	pep_stats_word max_flows, memory_limit_bytes;
	pep_stats_word cpu_ns, resident_bytes;
	pep_stats_word log_messages[8]; /* by enum pep_log_level */
};

struct pep_stats;
struct pep_stats_worker;

struct pep_stats_params {
	unsigned int workers;          /* 1..PEP_CONF_MAX_WORKERS */
	unsigned int flows_per_worker; /* records; 1..1048576. Memory is taken as it is used */
	gid_t gid;                     /* group that may read; (gid_t) -1: leave it */
	const char *version;           /* of the program, e.g. PACKAGE_VERSION */
};

/**
 * Creates the segment under a temporary name beside @path, mode 0640, and renames it into place, so
 * that a reader finds a whole one, the old or the new.
 *
 * Returns 0 and stores a new object in @ret, or a negative errno.
 */
int pep_stats_create(const char *path, const struct pep_stats_params *params,
		     struct pep_stats **ret);

/** Unmaps; unlinks the file if it still is ours. NULL is a no-op. */
void pep_stats_destroy(struct pep_stats *stats);

/** Worker @index's part, valid as long as @stats. */
struct pep_stats_worker *pep_stats_worker(struct pep_stats *stats, unsigned int index);

/*
 * Main thread only.
 */

/** Says that the daemon lives; also publishes CPU time, memory and log counts. Call each second. */
void pep_stats_heartbeat(struct pep_stats *stats);
void pep_stats_set_state(struct pep_stats *stats, enum pep_stats_state state);

/** A configuration was put in force. */
void pep_stats_set_config(struct pep_stats *stats, uint64_t generation, uint64_t max_flows,
			  uint64_t memory_limit_bytes);
/** A reload was refused; the old configuration stays in force. */
void pep_stats_set_config_failed(struct pep_stats *stats);

/**
 * The slot of a class or congestion control name: the same name gets the same slot for the life of
 * the segment, so that counters survive a reload. Any thread; new names are appended. Class
 * "default" is slot 0; a full table answers 0 for classes and the last slot ("other") for controls.
 */
unsigned int pep_stats_class(struct pep_stats *stats, const char *name);
unsigned int pep_stats_cca(struct pep_stats *stats, const char *name);

/*
 * Worker thread only, each its own worker.
 */

/** Public for the inline functions below. */
struct pep_stats_worker {
	struct pep_stats_block *block;
	struct pep_stats_flow *flows;  /* flows_per_worker records */
	struct pep_stats_flow *closed; /* ring of recently closed flows */
	uint32_t *free_slots;          /* stack; private memory */
	uint32_t n_free, n_flows, n_closed;
	uint64_t next_number;
	unsigned int index;
};

static inline void pep_stats_word_add(pep_stats_word *word, uint64_t n)
{
	/* One writer: no locked instruction is needed. */
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void pep_stats_word_set(pep_stats_word *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static inline uint64_t pep_stats_word_get(const pep_stats_word *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void pep_stats_add(struct pep_stats_worker *w, enum pep_counter counter, uint64_t n)
{
	pep_stats_word_add(&w->block->counters[counter], n);
}

static inline void pep_stats_gauge_set(struct pep_stats_worker *w, enum pep_gauge gauge,
				       uint64_t value)
{
	pep_stats_word_set(&w->block->gauges[gauge], value);
}

/** @n may be negative. */
static inline void pep_stats_gauge_add(struct pep_stats_worker *w, enum pep_gauge gauge, int64_t n)
{
	pep_stats_word_add(&w->block->gauges[gauge], (uint64_t)n);
}

static inline void pep_stats_bypassed(struct pep_stats_worker *w, enum pep_bypass reason)
{
	pep_stats_word_add(&w->block->bypassed[reason], 1);
}

/** SYNs that went end to end while the worker itself could not look at them. */
static inline void pep_stats_stalled(struct pep_stats_worker *w, uint64_t syns)
{
	pep_stats_word_add(&w->block->counters[PEP_COUNTER_SYNS], syns);
	pep_stats_word_add(&w->block->bypassed[PEP_BYPASS_STALLED], syns);
}

static inline void pep_stats_refused(struct pep_stats_worker *w, enum pep_refuse reason)
{
	pep_stats_word_add(&w->block->refused[reason], 1);
}

static inline void pep_stats_connect_failed(struct pep_stats_worker *w,
					    enum pep_connect_failure reason)
{
	pep_stats_word_add(&w->block->connect_failures[reason], 1);
}

/** A leg of @segment did not get the control @asked (a pep_stats_cca() slot). */
static inline void pep_stats_cca_fallback(struct pep_stats_worker *w, enum pep_segment segment,
					  unsigned int asked)
{
	pep_stats_word_add(&w->block->cca_fallbacks[segment][asked], 1);
}

/** @bytes of payload were read from (receiving leg) or written to (sending leg) @segment. */
static inline void pep_stats_payload(struct pep_stats_worker *w, enum pep_segment segment,
				     enum pep_direction direction, unsigned int class_slot,
				     uint64_t bytes)
{
	pep_stats_word_add(&w->block->payload_bytes[segment][direction][class_slot], bytes);
}

void pep_stats_observe(struct pep_stats_worker *w, enum pep_histogram histogram, uint64_t value);

/** Upper bounds of @histogram's buckets, ascending, 0 after the last; in its own unit. */
const uint64_t *pep_histogram_bounds(enum pep_histogram histogram);

/** Class of an errno that connect() gave. */
enum pep_connect_failure pep_connect_failure_from_errno(int error);

/** Changes the sums of the legs' queues by @flow's, in (@sign 1) or out (-1). For stats*.c. */
void pep_stats_count_queues(struct pep_stats_worker *w, const struct pep_stats_flow *flow,
			    int sign);

/*
 * Flow records.
 */

/**
 * A cleared record with id, worker and start time set, or NULL when the table is full (counted;
 * the flow goes on without one: every function below takes NULL as a no-op).
 */
struct pep_stats_flow *pep_stats_flow_acquire(struct pep_stats_worker *w);

/** Brackets a change of the record's fields; keep it short and do not nest. */
void pep_stats_flow_begin(struct pep_stats_flow *flow);
void pep_stats_flow_end(struct pep_stats_flow *flow);

/**
 * The flow is over: counts @reason, observes the closing histograms, keeps the record's last state
 * in the ring of closed flows, and frees it. With @flow NULL only counts.
 */
void pep_stats_flow_release(struct pep_stats_worker *w, struct pep_stats_flow *flow,
			    enum pep_close reason);

#define PEP_STATS_FLOW_ID_SIZE 32

/** Writes the id's text form, "WORKER-NUMBER", to @text and returns it. */
const char *pep_stats_flow_id(uint64_t id, char text[PEP_STATS_FLOW_ID_SIZE]);

/** Reads that form; returns 0 or -EINVAL. */
int pep_stats_flow_id_parse(const char *text, uint64_t *ret);

/**
 * TCP_INFO of the socket @fd. (Not through <netinet/tcp.h>: its struct tcp_info ends with
 * tcpi_total_retrans in Debian 12.) Returns 0 or a negative errno.
 */
int pep_stats_tcp_read(int fd, struct pep_stats_tcp *ret);

const char *pep_direction_name(enum pep_direction direction); /* "downlink", "uplink" */
const char *pep_stats_state_name(enum pep_stats_state state);
const char *pep_stats_flow_state_name(enum pep_stats_flow_state state);
const char *pep_connect_failure_name(enum pep_connect_failure reason);

#endif
