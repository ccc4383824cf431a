/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receive buffers under our control. */
#include "proxy/leg.h"

#include <errno.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* Linux 5.14 */
#endif

/* tcpi_rcv_wnd came with Linux 6.2, behind the end of the structure that Debian 12 knows. */
#define RCV_WND_OFFSET 232u

/* Memory that the kernel reckons for a byte of payload, at the start of a connection. */
#define OVERHEAD 2u

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* @size as the kernel counts it, which takes half of it from us and doubles that. */
static int set_buffer(int fd, uint64_t size)
{
	return set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE,
		       size / 2 < INT_MAX ? (int)(size / 2) : INT_MAX);
}

static int memory(int fd, uint32_t values[SK_MEMINFO_VARS])
{
	socklen_t size = SK_MEMINFO_VARS * sizeof(*values);

	memset(values, 0, size);
	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &size) < 0 ? -errno : 0;
}

/* Bytes that the peer may still send without hearing from us; @otherwise where the kernel is too
 * old to tell. */
static uint32_t open_window(int fd, uint32_t otherwise)
{
	uint8_t info[RCV_WND_OFFSET + sizeof(uint32_t)];
	socklen_t size = sizeof(info);
	uint32_t window;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) < 0 || size < sizeof(info))
		return otherwise;
	memcpy(&window, info + RCV_WND_OFFSET, sizeof(window));
	return window;
}

int pep_leg_freeze_buffer(int fd, uint32_t *ret_bytes)
{
	uint32_t values[SK_MEMINFO_VARS];
	int err = memory(fd, values);

	if (!err)
		err = set_buffer(fd, values[SK_MEMINFO_RCVBUF]);
	if (!err)
		*ret_bytes = values[SK_MEMINFO_RCVBUF] / OVERHEAD;
	return err;
}

/*
 * The window bounds what comes on top of what is unread, not the sum. So the buffer shrinks with
 * the window shut: nothing new comes while what is there is read.
 */
int pep_leg_bound_buffer(int fd, uint32_t bytes, bool *ret_settled)
{
	uint64_t want = (uint64_t)bytes * OVERHEAD, least;
	uint32_t values[SK_MEMINFO_VARS];
	int err = memory(fd, values), window;
	bool settled;

	if (err)
		return err;
	/* Data that come in a window we gave must find room: dropped, they would be sent twice. */
	least = values[SK_MEMINFO_RMEM_ALLOC] + (uint64_t)open_window(fd, bytes) * OVERHEAD;
	settled = want >= least || want >= values[SK_MEMINFO_RCVBUF];
	if (!settled && least > values[SK_MEMINFO_RCVBUF])
		least = values[SK_MEMINFO_RCVBUF];
	err = set_buffer(fd, settled ? want : least);
	if (err)
		return err;
	window = settled ? (bytes < INT_MAX ? (int)bytes : INT_MAX) : 1;
	err = set_int(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, window);
	if (!err)
		*ret_settled = settled;
	return err;
}

int pep_leg_free_buffer(int fd)
{
	int err = set_int(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, INT_MAX);

	return err ? err : set_int(fd, SOL_SOCKET, SO_BUF_LOCK, 0);
}
