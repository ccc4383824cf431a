/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receive buffers under our control. */
#include "proxy/leg.h"

#include "proxy/leg_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* Linux 5.14 */
#endif

/* tcpi_rcv_wnd came with Linux 6.2, behind the end of the structure that Debian 12 knows. */
#define RCV_WND_OFFSET 232u

/* A queue of less does not tell what a byte of payload costs. */
#define TELLING_BYTES 262144u

#define LEAST_COST_256 256u

#define DEFAULT_LIMIT (6u << 20) /* the kernel's own */

/* @size as the kernel counts it, which takes half of it from us and doubles that. */
static int set_buffer(int fd, uint64_t size)
{
	return leg_set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE,
			   size / 2 < INT_MAX ? (int)(size / 2) : INT_MAX);
}

static int memory(int fd, uint32_t values[SK_MEMINFO_VARS])
{
	socklen_t size = SK_MEMINFO_VARS * sizeof(*values);

	memset(values, 0, size);
	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &size) < 0 ? -errno : 0;
}

static uint32_t unread(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCINQ, &bytes) < 0 || bytes < 0 ? 0 : (uint32_t)bytes;
}

static uint64_t cost(const struct pep_leg_buffer *buffer, uint64_t bytes)
{
	return bytes * buffer->cost_256 / 256;
}

uint64_t pep_leg_buffer_limit(void)
{
	int fd = open("/proc/sys/net/ipv4/tcp_rmem", O_RDONLY | O_CLOEXEC);
	char text[64] = "", *at = text;
	uint64_t most = 0;

	if (fd >= 0) {
		ssize_t n = read(fd, text, sizeof(text) - 1);

		text[n > 0 ? n : 0] = '\0';
		close(fd);
	}
	for (int i = 0; i < 3; i++)
		most = strtoull(at, &at, 10);
	return most ? most : DEFAULT_LIMIT;
}

int pep_leg_freeze_buffer(int fd, uint64_t limit, struct pep_leg_buffer *ret)
{
	uint32_t values[SK_MEMINFO_VARS];
	int err = memory(fd, values);

	if (!err)
		err = set_buffer(fd, values[SK_MEMINFO_RCVBUF]);
	/* From now on the buffer alone bounds the window. */
	if (!err)
		err = leg_set_int(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, INT_MAX);
	if (err)
		return err;
	*ret = (struct pep_leg_buffer){.cost_256 = 512, .settled = true};
	ret->bytes = values[SK_MEMINFO_RCVBUF] / 2;
	ret->most = values[SK_MEMINFO_RCVBUF] > limit ? values[SK_MEMINFO_RCVBUF] : limit;
	return 0;
}

/* Bytes that the peer may still send; more than none where the kernel is too old to tell. */
static uint32_t open_window(int fd)
{
	uint8_t info[RCV_WND_OFFSET + sizeof(uint32_t)];
	socklen_t size = sizeof(info);
	uint32_t window;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) < 0 || size < sizeof(info))
		return 1;
	memcpy(&window, info + RCV_WND_OFFSET, sizeof(window));
	return window;
}

/* A segment that is half read still takes all of its memory: the least that was seen counts, and
 * more only slowly. */
static void learn_cost(struct pep_leg_buffer *buffer, uint32_t memory_bytes, uint32_t queued)
{
	uint32_t seen;

	if (queued < TELLING_BYTES || buffer->hole)
		return;
	seen = (uint32_t)((uint64_t)memory_bytes * 256 / queued);
	if (seen < LEAST_COST_256)
		seen = LEAST_COST_256;
	if (seen > buffer->cost_256)
		seen = buffer->cost_256 + (seen - buffer->cost_256) / 16;
	buffer->cost_256 = seen;
}

/*
 * What the window bounds comes on top of what is unread, and a window that was given cannot be
 * taken back. So the buffer shrinks by what was read, before the kernel has offered that room: what
 * is under way finds as much room as it was promised. TCP_WINDOW_CLAMP would shut the window at
 * once, but one that was shut by it opens slowly; so does one that was overrun.
 */
static uint64_t shrunk(int fd, const struct pep_leg_buffer *buffer, uint64_t has, uint32_t queued,
		       uint64_t read_bytes)
{
	uint64_t by = cost(buffer, read_bytes), least = cost(buffer, queued);

	if (open_window(fd)) {
		by = by * 7 / 8;
		least += has / PEP_LEG_SHRINK_SHARE * 7 / 8;
	}
	if (has < by || has - by < least)
		return has < least ? has : least;
	return has - by;
}

/*
 * The memory of what came behind a hole. The kernel counts it against the window, which is measured
 * from the hole on: what is read meanwhile would open nothing, and the peer would stop.
 */
static uint64_t behind_hole(const struct pep_leg_buffer *buffer, uint32_t memory_bytes,
			    uint32_t queued)
{
	uint64_t in_order = cost(buffer, queued);

	return buffer->hole && memory_bytes > in_order ? memory_bytes - in_order : 0;
}

int pep_leg_bound_buffer(int fd, uint32_t bytes, uint64_t read_bytes, struct pep_leg_buffer *buffer)
{
	uint32_t values[SK_MEMINFO_VARS], queued = unread(fd);
	uint64_t want, size;
	int err = memory(fd, values);

	if (err)
		return err;
	learn_cost(buffer, values[SK_MEMINFO_RMEM_ALLOC], queued);
	want = cost(buffer, bytes) + behind_hole(buffer, values[SK_MEMINFO_RMEM_ALLOC], queued);
	if (want > buffer->most)
		want = buffer->most;
	size = shrunk(fd, buffer, values[SK_MEMINFO_RCVBUF], queued, read_bytes);
	buffer->bytes = bytes;
	buffer->settled = want >= size;
	return set_buffer(fd, want > size ? want : size);
}

uint32_t pep_leg_buffer_window(const struct pep_leg_buffer *buffer)
{
	uint64_t most = buffer->bytes ? buffer->most * 256 / buffer->cost_256 : 0;

	return buffer->bytes < most ? buffer->bytes : (uint32_t)most;
}

int pep_leg_free_buffer(int fd, struct pep_leg_buffer *buffer)
{
	uint32_t values[SK_MEMINFO_VARS];
	int err = memory(fd, values);

	buffer->bytes = 0;
	if (!err) /* as the kernel would have set it, which raises it with the buffer */
		err = leg_set_int(
			fd, IPPROTO_TCP, TCP_WINDOW_CLAMP,
			(int)((uint64_t)values[SK_MEMINFO_RCVBUF] * 256 / buffer->cost_256));
	return err ? err : leg_set_int(fd, SOL_SOCKET, SO_BUF_LOCK, 0);
}
