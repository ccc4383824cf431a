/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_FLOW_INTERNAL_H
#define PEP_PROXY_FLOW_INTERNAL_H

/*
 * Shared by the files that make up the flow module: flow.c (the set of flows), flow_gate.c
 * (verdicts on SYNs), flow_open.c (SYN to joined legs), flow_move.c (events and bytes),
 * flow_close.c (ends) and flow_sample.c (statistics).
 */

#include "base/attribution.h"
#include "base/log.h"
#include "proxy/flow.h"
#include "proxy/relay.h"
#include "proxy/target.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#define FLOW_HANDSHAKE_MS   20000 /* wired leg up, the client has not finished its handshake */
#define FLOW_FLUSH_TICK_MS  20
#define FLOW_FLUSH_STALL_MS 10000 /* no progress for so long: give the rest up */

#define EV_LEG (EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST)

enum flow_state {
	FLOW_FREE,
	FLOW_CONNECTING, /* wired leg under way; with accept early the client may be there */
	FLOW_AWAITING,   /* wired leg up, client's handshake under way */
	FLOW_OPEN,
	FLOW_FLUSHING, /* one leg broke; what it had sent is still delivered */
};

/* Which list a flow is in, so that it can leave it. */
enum flow_list {
	FLOW_LIST_NONE,
	FLOW_LIST_CONNECTING, /* oldest first */
	FLOW_LIST_AWAITING,   /* oldest first */
	FLOW_LIST_OPEN,
	FLOW_LIST_FLUSHING,
	FLOW_LIST_COUNT_,
};

enum flow_queue {
	FLOW_QUEUE_NONE,
	FLOW_QUEUE_READY, /* has more to move than one turn's budget */
	FLOW_QUEUE_COUNT_,
};

struct flow;

struct flow_leg {
	int fd; /* -1: not there */
	struct flow *flow;
	struct event event;
	bool event_added;
	short heard; /* events before the flow was open */
};

struct flow_buffer {
	struct pep_target target;
	struct pep_leg_buffer leg; /* of the reading leg */
	uint64_t delivered_bytes;  /* by the sending leg */
	uint32_t delivered;        /* its own count, in segments */
	uint32_t came, disordered; /* segments, to the reading leg; of these behind missing ones */
};

struct flow {
	struct pep_tuple_node node;       /* first: a node of by_tuple is its flow */
	struct pep_tuple_node wired_node; /* the wired leg's own tuple, where it differs */
	bool in_wired_table;
	struct pep_flows *set;
	struct pep_policy *policy; /* held until both legs are up, then NULL */
	struct flow_leg leg[PEP_SEGMENT_COUNT_];
	struct pep_path path[PEP_DIRECTION_COUNT_];
	struct flow_buffer buffer[PEP_DIRECTION_COUNT_];
	struct pep_gate_ticket ticket;
	uint32_t syn_sequence;
	enum flow_state state;
	enum flow_list list;
	enum flow_queue queue;
	bool ticket_held; /* a verdict is owed */
	bool early;       /* the client was answered before the server */
	bool cca_fallback[PEP_SEGMENT_COUNT_];
	bool first_byte_seen;
	uint8_t dscp, server_dscp;
	uint8_t class_slot;
	unsigned int class_index;    /* in policy->classes */
	enum pep_segment broken_leg; /* FLUSHING: which, and why */
	enum pep_close close_reason;
	bool clean_end; /* FLUSHING: the broken leg had sent its FIN before */
	uint32_t flush_unacked;
	uint64_t since_ns; /* SYN, then connect, then last progress of a flush */
	uint64_t syn_ns;
	uint64_t active_ns; /* last byte in either direction */
	struct pep_attribution_relay attribution[PEP_DIRECTION_COUNT_];
	struct pep_stats_flow *record; /* NULL when the table is full */
	TAILQ_ENTRY(flow) list_link;
	TAILQ_ENTRY(flow) queue_link;
	LIST_ENTRY(flow) free_link;
};

TAILQ_HEAD(flow_tailq, flow);
LIST_HEAD(flow_freelist, flow);

struct pep_flows {
	struct pep_flows_params params;
	struct pep_stats_worker *stats;
	struct pep_policy *policy;
	struct pep_gate *gate;
	const struct pep_local_addrs *local_addrs;
	struct pep_probation *probation;
	struct pep_recent *recent;
	enum pep_intake intake;
	struct pep_tuple_table *by_tuple, *by_wired_tuple;
	struct flow_tailq lists[FLOW_LIST_COUNT_];
	struct flow_tailq queues[FLOW_QUEUE_COUNT_];
	struct flow_freelist free;
	uint32_t n_pending, n_used, high; /* high: flows ever used at once */
	struct event ready_event, flush_event;
	uint32_t sample_cursor;
	uint64_t sampled_ns; /* until then, samples were taken */
	struct pep_log_limit trouble_limit;
	struct pep_budget budget;
	uint64_t buffer_limit; /* of the kernel for a receive buffer */
	uint32_t n_ticks;
	struct flow *all; /* params.max_flows */
};

static inline uint64_t flow_ms(uint64_t ms)
{
	return ms * 1000000u;
}

uint64_t flow_now_ns(void);

/* flow.c */
struct flow *flow_alloc(struct pep_flows *set);
void flow_move_to_list(struct flow *flow, enum flow_list list);
void flow_enqueue(struct flow *flow, enum flow_queue queue);
int flow_watch_leg(struct flow *flow, enum pep_segment segment);

/* flow_gate.c */

/** Lets a SYN go end to end, and remembers it. */
void flow_bypass(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		 const struct pep_tuple *tuple, uint32_t sequence, enum pep_bypass reason);

/* flow_open.c */

/** Makes a flow of an admitted SYN; gives its verdict or keeps the ticket. */
void flow_split(struct pep_flows *set, const struct pep_gate_ticket *ticket,
		const struct pep_syn *syn, const struct pep_tuple *tuple, unsigned int class);
/** Ends a flow whose wired leg could not be opened (@error: errno), telling the client the truth.
 */
void flow_connect_failed(struct flow *flow, int error);
void flow_on_connect_event(struct flow *flow);

/* flow_move.c */
void flow_on_event(evutil_socket_t fd, short what, void *data);
void flow_start(struct flow *flow);
void flow_pump(struct flow *flow);
void flow_on_ready(evutil_socket_t fd, short what, void *data);

/* flow_buffer.c */
void flow_buffer_init(struct flow *flow, enum pep_direction direction);
void flow_buffer_fini(struct flow *flow, enum pep_direction direction);
/** After a pump. */
void flow_buffer_after(struct flow *flow, enum pep_direction direction, uint64_t read_bytes);
void flow_buffer_tick(struct flow *flow, enum pep_direction direction, uint64_t now_ns);

/* flow_close.c */

/** Ends the flow with RST on every leg that is there. The flow is gone afterwards. */
void flow_abort(struct flow *flow, enum pep_close reason);
/** Ends the flow with FIN on both legs (both directions have finished). */
void flow_finish(struct flow *flow);
/** One leg broke with @error (errno). What it had sent is delivered before the other one is reset.
 */
void flow_leg_broke(struct flow *flow, enum pep_segment segment, int error);
/** All bytes of a flushing flow were handed over: waits for them to be acknowledged. */
void flow_flush_check(struct flow *flow);
void flow_on_flush_tick(evutil_socket_t fd, short what, void *data);

/** Counts a setting that the kernel refused; @err 0 is none. */
void flow_count_option(struct pep_flows *set, int err);
/** A line, at most one in ten seconds, about a failure of this host; @error: errno. */
void flow_log_trouble(struct pep_flows *set, const char *what, int error);

/* flow_sample.c */
void flow_sample(struct flow *flow, uint64_t now_ns);
void flow_count_moved(struct flow *flow, enum pep_direction direction, uint64_t read_bytes,
		      uint64_t written_bytes);
void flow_publish_state(struct flow *flow);

#endif
