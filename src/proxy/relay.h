/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_RELAY_H
#define PEP_PROXY_RELAY_H

/*
 * Moves the bytes of one direction of a flow from one socket to the other, and its end (FIN) after
 * them. What was read and not yet taken by the receiving socket is held in a borrowed pipe or
 * chunk; while bytes are held nothing more is read, so that the sender sees a closed window. When
 * there is no memory to hold bytes in, they are moved only as far as the receiving socket takes
 * them.
 */

#include "proxy/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct pep_path {
	int from_fd, to_fd;      /* borrowed */
	struct pep_pipe *pipe;   /* borrowed while it holds bytes */
	struct pep_chunk *chunk; /* the same */
	uint32_t held_bytes;
	bool blocked;          /* the receiving socket took no more; bytes may be held or not */
	uint32_t target_bytes; /* most bytes to hold; at least 1 */
	bool peer_closed;      /* the sender's FIN is known to be behind the queued bytes */
	bool eof;              /* FIN read */
	bool fin_sent;         /* the end was relayed: this direction is finished */
	bool no_fin;           /* the sending leg broke: its end is no FIN */
	bool fin_by_close;  /* the caller closes @to_fd orderly once this direction is finished */
	bool corked;        /* the last bytes wait in @to_fd for the FIN to go with them */
	uint8_t bulk_score; /* full reads lately; decides between copy and splice */

	/* What the attribution wants to know; the reader takes differences. */
	uint64_t bytes;          /* read from the sender */
	uint32_t reads;          /* successful reads */
	uint32_t reads_drained;  /* times the sending socket had nothing (more) to read */
	uint32_t writes_blocked; /* times the receiving socket took no more */
	uint32_t starved;        /* steps without memory to hold bytes in */
};

enum pep_pump {
	PEP_PUMP_DRAINED,      /* nothing to read now; an event will tell */
	PEP_PUMP_BLOCKED,      /* the receiving socket is full; an event will tell */
	PEP_PUMP_BUDGET,       /* the budget is used up; call again soon */
	PEP_PUMP_FINISHED,     /* FIN relayed */
	PEP_PUMP_READ_FAILED,  /* the sending leg failed: *ret_error */
	PEP_PUMP_WRITE_FAILED, /* the receiving leg failed: *ret_error */
};

#define PEP_PUMP_BUDGET_BYTES (1u << 20)

void pep_path_init(struct pep_path *d, int from_fd, int to_fd, uint32_t target_bytes);

/** Drops what is held and gives everything back to @pool. */
void pep_path_fini(struct pep_path *d, struct pep_pool *pool);

/**
 * Moves bytes until nothing moves any more, or about PEP_PUMP_BUDGET_BYTES were moved.
 *
 * @splice      false: copy only.
 * @ret_error   a positive errno, set with the two ..._FAILED results only.
 *
 * Never blocks. May be called at any time, also after PEP_PUMP_FINISHED.
 */
enum pep_pump pep_path_pump(struct pep_path *d, struct pep_pool *pool, bool splice, int *ret_error);

#endif
