/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant: bytes are read only while none are held, so what is held always lies in one place (one
 * pipe or one chunk), and FIN can only be relayed behind the last byte.
 */
#include "proxy/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Large reads in a row before splice pays; short splices in a row before copying pays again. */
#define BULK_ENTER         2
#define BULK_MAX           6
#define LARGE_READ_BYTES   32768
#define SHORT_SPLICE_BYTES 16384

/* With no memory to hold bytes in, so many are offered to the receiving socket at a time. */
#define UNHELD_BYTES 16384

#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK)

void pep_path_init(struct pep_path *d, int from_fd, int to_fd, uint32_t target_bytes)
{
	*d = (struct pep_path){
		.from_fd = from_fd,
		.to_fd = to_fd,
		.target_bytes = target_bytes ? target_bytes : 1,
	};
}

static void give_back(struct pep_path *d, struct pep_pool *pool)
{
	if (d->pipe)
		pep_pool_put_pipe(pool, d->pipe, d->held_bytes == 0);
	if (d->chunk)
		pep_pool_put_chunk(pool, d->chunk);
	d->pipe = NULL;
	d->chunk = NULL;
}

void pep_path_fini(struct pep_path *d, struct pep_pool *pool)
{
	give_back(d, pool);
	pep_pool_hold(pool, -(int64_t)d->held_bytes);
	d->held_bytes = 0;
}

static void hold(struct pep_path *d, struct pep_pool *pool, uint32_t n)
{
	d->held_bytes += n;
	pep_pool_hold(pool, n);
}

/*
 * Sends held bytes. Returns 0 when none are left, -EAGAIN, or the negative errno of the receiver.
 * @cork: the FIN is about to follow, the last segment may wait for it.
 */
static int flush(struct pep_path *d, struct pep_pool *pool, bool cork)
{
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (cork ? MSG_MORE : 0);

	while (d->held_bytes > 0) {
		ssize_t n;

		if (d->pipe)
			n = splice(d->pipe->read_fd, NULL, d->to_fd, NULL, d->held_bytes,
				   SPLICE_FLAGS);
		else
			n = send(d->to_fd, d->chunk->data + d->chunk->start, d->held_bytes, flags);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) /* a pipe that holds bytes never gives none */
			return -EIO;
		if (d->chunk)
			d->chunk->start += (uint32_t)n;
		d->held_bytes -= (uint32_t)n;
		d->corked = cork;
		pep_pool_hold(pool, -(int64_t)n);
	}
	return 0;
}

/* Lets go what waited for a FIN that did not come. */
static void uncork(struct pep_path *d)
{
	int on = 1;

	(void)setsockopt(d->to_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	d->corked = false;
}

/* Reads into the borrowed pipe or chunk. Returns the bytes, 0 at the end, or a negative errno. */
static ssize_t fill(struct pep_path *d, size_t want)
{
	ssize_t n;

	do {
		if (d->pipe)
			n = splice(d->from_fd, NULL, d->pipe->write_fd, NULL, want, SPLICE_FLAGS);
		else
			n = recv(d->from_fd, d->chunk->data, want, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static bool borrow(struct pep_path *d, struct pep_pool *pool, bool may_splice)
{
	if (may_splice && d->bulk_score >= BULK_ENTER) {
		d->pipe = pep_pool_get_pipe(pool);
		if (d->pipe)
			return true;
	}
	d->chunk = pep_pool_get_chunk(pool);
	return d->chunk != NULL;
}

/* Errors that only splice has: a copy moves the same bytes. */
static bool is_of_splice(int err)
{
	return err == -ENOMEM || err == -EINVAL || err == -ENOSYS || err == -EPERM;
}

/*
 * Remembers whether reads come in bulk: splice pays for large pieces only. With a thousand flows
 * their buffers are small: all that may be held counts as large, too.
 */
static void score(struct pep_path *d, size_t n)
{
	if (d->pipe && n < SHORT_SPLICE_BYTES)
		d->bulk_score--;
	else if (d->pipe || n >= LARGE_READ_BYTES ||
		 (n >= SHORT_SPLICE_BYTES && n == d->target_bytes))
		d->bulk_score += d->bulk_score < BULK_MAX;
	else
		d->bulk_score = 0;
}

static size_t read_size(const struct pep_path *d)
{
	size_t room = d->pipe ? d->pipe->size_bytes : PEP_CHUNK_BYTES;

	return room < d->target_bytes ? room : d->target_bytes;
}

/* Takes @n bytes that were looked at out of the sending socket. Returns 0 or a negative errno. */
static int discard(struct pep_path *d, struct pep_pool *pool, size_t n)
{
	while (n > 0) {
		ssize_t got = recv(d->from_fd, pep_pool_scratch(pool), n, MSG_DONTWAIT | MSG_TRUNC);

		if (got == 0)
			return -EIO;
		if (got < 0 && errno != EINTR)
			return -errno;
		n -= got > 0 ? (size_t)got : 0;
	}
	return 0;
}

/*
 * The step for when no memory is to be had: sends what the receiving socket takes at once and
 * leaves the rest where it is. Costs more, but flows whose receivers are stuck with all the memory
 * cannot stop the others.
 */
static enum pep_pump step_unheld(struct pep_path *d, struct pep_pool *pool, size_t *ret_moved,
				 int *ret_error)
{
	uint8_t *data = pep_pool_scratch(pool);
	ssize_t n, sent;
	int err;

	d->starved++;
	do {
		n = recv(d->from_fd, data, UNHELD_BYTES, MSG_DONTWAIT | MSG_PEEK);
	} while (n < 0 && errno == EINTR);
	if (n == 0) {
		d->eof = true;
		return PEP_PUMP_BUDGET;
	}
	if (n < 0 && errno == EAGAIN) {
		d->peer_closed = false;
		d->reads_drained++;
		return PEP_PUMP_DRAINED;
	}
	if (n < 0) {
		*ret_error = errno;
		return PEP_PUMP_READ_FAILED;
	}
	do {
		sent = send(d->to_fd, data, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno == EAGAIN) {
		d->writes_blocked++;
		return PEP_PUMP_BLOCKED;
	}
	if (sent < 0) {
		*ret_error = errno;
		return PEP_PUMP_WRITE_FAILED;
	}
	err = discard(d, pool, (size_t)sent);
	if (err) {
		*ret_error = -err;
		return PEP_PUMP_READ_FAILED;
	}
	d->reads++;
	d->bytes += (uint64_t)sent;
	*ret_moved = (size_t)sent;
	return PEP_PUMP_BUDGET;
}

/*
 * One read and the attempt to send it on. Returns PEP_PUMP_BUDGET when there may be more to move,
 * anything else to stop. *ret_moved gets the bytes read.
 */
static enum pep_pump step(struct pep_path *d, struct pep_pool *pool, bool may_splice, bool first,
			  size_t *ret_moved, int *ret_error)
{
	bool last, was_splice;
	size_t want;
	ssize_t n;
	int err;

	if (pep_pool_is_full(pool) || !borrow(d, pool, may_splice))
		return step_unheld(d, pool, ret_moved, ret_error);
	want = read_size(d);
	was_splice = d->pipe != NULL;
	n = fill(d, want);
	if (n <= 0) {
		give_back(d, pool);
		if (n == 0) {
			d->eof = true;
			return PEP_PUMP_BUDGET;
		}
		if (was_splice && n == -EAGAIN && first) {
			/* splice stops at an urgent byte for ever, a copy takes it in line. */
			d->bulk_score = 0;
			return PEP_PUMP_BUDGET;
		}
		if (was_splice && is_of_splice((int)n)) {
			pep_pool_count_pipe_failure(pool);
			d->bulk_score = 0;
			return PEP_PUMP_BUDGET;
		}
		if (n == -EAGAIN) {
			/* No FIN is queued, or it would have been read; a later one is an event. */
			if (!was_splice)
				d->peer_closed = false;
			d->reads_drained++;
			return PEP_PUMP_DRAINED;
		}
		*ret_error = (int)-n;
		return PEP_PUMP_READ_FAILED;
	}

	d->reads++;
	d->bytes += (uint64_t)n;
	*ret_moved = (size_t)n;
	if (d->chunk)
		d->chunk->end = (uint32_t)n;
	/*
	 * A short copy has emptied the socket, but the event may have been that of a reset behind
	 * these bytes as well (libevent tells errors as readable and writable, which a healthy
	 * socket mostly is): only the next read knows.
	 */
	last = d->chunk && (size_t)n < want && d->peer_closed;
	score(d, (size_t)n);
	hold(d, pool, (uint32_t)n);

	err = flush(d, pool, last);
	if (err == -EAGAIN) {
		d->writes_blocked++;
		return PEP_PUMP_BLOCKED;
	}
	if (err) {
		*ret_error = -err;
		return PEP_PUMP_WRITE_FAILED;
	}
	give_back(d, pool);
	return PEP_PUMP_BUDGET;
}

static enum pep_pump pump(struct pep_path *d, struct pep_pool *pool, bool may_splice,
			  int *ret_error)
{
	size_t moved = 0, now;
	enum pep_pump result;
	int err;

	if (d->fin_sent)
		return PEP_PUMP_FINISHED;
	if (d->held_bytes > 0) {
		err = flush(d, pool, false);
		if (err == -EAGAIN)
			return PEP_PUMP_BLOCKED;
		if (err) {
			*ret_error = -err;
			return PEP_PUMP_WRITE_FAILED;
		}
		give_back(d, pool);
	}
	while (!d->eof) {
		if (moved >= PEP_PUMP_BUDGET_BYTES)
			return PEP_PUMP_BUDGET;
		now = 0;
		result = step(d, pool, may_splice, moved == 0, &now, ret_error);
		if (result != PEP_PUMP_BUDGET)
			return result;
		moved += now;
	}
	if (!d->no_fin) {
		if (!d->fin_by_close && shutdown(d->to_fd, SHUT_WR) < 0) {
			*ret_error = errno;
			return PEP_PUMP_WRITE_FAILED;
		}
		d->corked = false;
	}
	d->fin_sent = true;
	return PEP_PUMP_FINISHED;
}

enum pep_pump pep_path_pump(struct pep_path *d, struct pep_pool *pool, bool may_splice,
			    int *ret_error)
{
	enum pep_pump result = pump(d, pool, may_splice, ret_error);

	d->blocked = result == PEP_PUMP_BLOCKED;
	if (d->corked)
		uncork(d);
	return result;
}
