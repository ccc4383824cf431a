/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant: the guard outlives the daemon by an instant only. It holds the queues open, so a guard
 * that stayed would be worse than none.
 */
#include "proxy/guard.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mark.h"

#include <arpa/inet.h>
#include <cap-ng.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS      50
#define STALL_LOOKS  (PEP_GUARD_STALL_MS / LOOK_MS)
#define PACKET_BYTES 1024
#define ROUND        1024 /* SYNs of one queue before the others are looked at */
#define LEFT         0    /* a tick of the past: the worker has left */
#define NOT_YET      UINT64_MAX

struct shared {
	_Atomic uint64_t tick_ns;
	_Atomic uint64_t released;
};

struct pep_guard {
	struct shared *shared; /* one of each worker, in memory of both processes */
	int life;              /* our end of a socket pair; the other is the guard's */
	pid_t pid;
};

/* What the process knows; it allocates nothing. */
struct watch {
	struct shared *shared;
	const struct pep_guard_params *params;
	uint64_t looked_ns;
	uint64_t tick_ns[PEP_CONF_MAX_WORKERS];   /* as last seen */
	unsigned int looks[PEP_CONF_MAX_WORKERS]; /* since it changed */
	struct pep_log_limit told[PEP_CONF_MAX_WORKERS];
	struct pollfd polled[2 + PEP_CONF_MAX_WORKERS]; /* life, the daemon, queues */
};

/* -- the daemon's side ----------------------------------------------------------------------------
 */

int pep_guard_new(struct pep_guard **ret)
{
	struct pep_guard *guard = calloc(1, sizeof(*guard));
	size_t bytes = PEP_CONF_MAX_WORKERS * sizeof(*guard->shared);

	if (!guard)
		return -ENOMEM;
	guard->life = -1;
	guard->shared =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->shared == MAP_FAILED) {
		free(guard);
		return -ENOMEM;
	}
	for (int i = 0; i < PEP_CONF_MAX_WORKERS; i++)
		atomic_init(&guard->shared[i].tick_ns, NOT_YET);
	*ret = guard;
	return 0;
}

uint64_t pep_guard_tick(struct pep_guard *guard, unsigned int queue, uint64_t now)
{
	struct shared *s = &guard->shared[queue];

	atomic_store_explicit(&s->tick_ns, now, memory_order_relaxed);
	if (atomic_load_explicit(&s->released, memory_order_relaxed) == 0)
		return 0;
	return atomic_exchange_explicit(&s->released, 0, memory_order_relaxed);
}

void pep_guard_leave(struct pep_guard *guard, unsigned int queue)
{
	atomic_store_explicit(&guard->shared[queue].tick_ns, LEFT, memory_order_relaxed);
}

int pep_guard_fd(const struct pep_guard *guard)
{
	return guard->life;
}

void pep_guard_free(struct pep_guard *guard)
{
	if (!guard)
		return;
	if (guard->life >= 0)
		close(guard->life);
	if (guard->pid > 0)
		(void)kill(guard->pid, SIGCONT); /* if somebody has stopped it */
	while (guard->pid > 0 && waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap(guard->shared, PEP_CONF_MAX_WORKERS * sizeof(*guard->shared));
	free(guard);
}

/* -- the process ----------------------------------------------------------------------------------
 */

/* A SYN goes end to end, a SYN-ACK on to its socket. Returns whether the kernel took that. */
static bool let_go(const struct watch *w, unsigned int queue, const struct nlattr *const *attr)
{
	const struct nfqnl_msg_packet_hdr *header = mnl_attr_get_payload(attr[NFQA_PACKET_HDR]);
	uint32_t mark = 0;
	bool is_syn = header->hook != NF_INET_LOCAL_IN;
	char buffer[256];
	struct nlmsghdr *nlh =
		nfq_nlmsg_put(buffer, NFQNL_MSG_VERDICT, w->params->first_queue + queue);

	if (attr[NFQA_MARK])
		mark = ntohl(mnl_attr_get_u32(attr[NFQA_MARK]));
	nfq_nlmsg_verdict_put(nlh, (int)ntohl(header->packet_id), is_syn ? NF_REPEAT : NF_ACCEPT);
	if (is_syn)
		nfq_nlmsg_verdict_put_mark(
			nlh, pep_mark_set(mark, w->params->mark_mask, PEP_MARK_KIND_BYPASS, queue));
	for (int tries = 0; tries < 10; tries++) {
		if (send(w->params->fds[queue], nlh, nlh->nlmsg_len, 0) >= 0)
			return is_syn;
		if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
			break;
	}
	return false;
}

/* Empties a queue. Returns how many SYNs went end to end. */
static unsigned int empty(struct watch *w, unsigned int queue)
{
	union {
		struct nlmsghdr header;
		uint8_t bytes[PACKET_BYTES];
	} message;
	unsigned int count = 0;

	for (int i = 0; i < ROUND; i++) {
		struct nlattr *attr[NFQA_MAX + 1] = {NULL};
		ssize_t n = recv(w->params->fds[queue], &message, sizeof(message), MSG_DONTWAIT);

		if (n < 0 && (errno == ENOBUFS || errno == EINTR))
			continue;
		if (n < 0)
			break;
		if (mnl_nlmsg_ok(&message.header, (int)n) &&
		    message.header.nlmsg_type != NLMSG_ERROR &&
		    nfq_nlmsg_parse(&message.header, attr) >= 0 && attr[NFQA_PACKET_HDR])
			count += let_go(w, queue, (const struct nlattr *const *)attr);
	}
	atomic_fetch_add_explicit(&w->shared[queue].released, count, memory_order_relaxed);
	return count;
}

/*
 * A queue that is full lets packets pass (NFQA_CFG_F_FAIL_OPEN, which the gate has set), and one of
 * length 0 is: nothing can come into it between its last look and its end, and be lost with it.
 */
static void shut(const struct watch *w, unsigned int queue)
{
	char buffer[256];
	struct nlmsghdr *nlh =
		nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, w->params->first_queue + queue);

	nfq_nlmsg_cfg_put_qmaxlen(nlh, 0);
	(void)send(w->params->fds[queue], nlh, nlh->nlmsg_len, 0);
}

static void stand_in(struct watch *w, unsigned int queue, uint64_t now, uint64_t tick)
{
	unsigned int count = empty(w, queue);
	uint32_t suppressed;

	w->polled[2 + queue].fd = w->params->fds[queue];
	if (count > 0 && tick != LEFT &&
	    pep_log_limit_ok(&w->told[queue], now / 1000000u, 10000, &suppressed))
		pep_warning("worker %u stands still, new connections go end to end, "
			    "milliseconds=%llu",
			    queue, (unsigned long long)((now - tick) / 1000000u));
}

/*
 * Time is counted in looks of our own: when the whole machine stands still, or is slow, the workers
 * may be as late as we are.
 */
static void look_at_workers(struct watch *w)
{
	uint64_t now = pep_clock_mono_ns();
	bool counts = now - w->looked_ns >= LOOK_MS * 1000000u;

	if (counts)
		w->looked_ns = now;
	for (unsigned int i = 0; i < w->params->n_queues; i++) {
		uint64_t tick = atomic_load_explicit(&w->shared[i].tick_ns, memory_order_relaxed);

		if (tick != w->tick_ns[i])
			w->looks[i] = 0;
		else
			w->looks[i] += counts;
		w->tick_ns[i] = tick;
		if (tick != NOT_YET && (tick == LEFT || w->looks[i] >= STALL_LOOKS))
			stand_in(w, i, now, tick);
		else
			w->polled[2 + i].fd = -1;
	}
}

static void close_all_but(const struct watch *w)
{
	int kept[2 + PEP_CONF_MAX_WORKERS + 1], n = 0, next = 3;

	kept[n++] = w->polled[0].fd;
	kept[n++] = w->polled[1].fd;
	for (unsigned int i = 0; i < w->params->n_queues; i++)
		kept[n++] = w->params->fds[i];
	for (;;) {
		int low = -1;

		for (int i = 0; i < n; i++)
			if (kept[i] >= next && (low < 0 || kept[i] < low))
				low = kept[i];
		if (low < 0)
			break;
		if (low > next)
			(void)syscall(SYS_close_range, next, low - 1, 0);
		next = low + 1;
	}
	(void)syscall(SYS_close_range, next, ~0u, 0);
}

/* Nothing but the daemon's end ends it, be it that somebody stops it with the daemon. */
static int settle(struct watch *w, int life, pid_t daemon)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};
	int fd = (int)syscall(SYS_pidfd_open, daemon, 0);

	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	if (fd < 0 || getppid() != daemon)
		return -ESRCH;
	capng_clear(CAPNG_SELECT_CAPS);
	(void)capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_ADMIN);
	if (capng_apply(CAPNG_SELECT_CAPS) < 0)
		return -EPERM;
	(void)prctl(PR_SET_PDEATHSIG, SIGCONT);
	(void)prctl(PR_SET_NAME, "edgepep-guard");
	(void)setsid();
	w->polled[0] = (struct pollfd){.fd = life, .events = POLLIN};
	w->polled[1] = (struct pollfd){.fd = fd, .events = POLLIN};
	for (int i = 0; i < PEP_CONF_MAX_WORKERS; i++)
		w->polled[2 + i] = (struct pollfd){.fd = -1, .events = POLLIN};
	close_all_but(w);
	return 0;
}

static void guard_process(struct watch *w)
{
	unsigned int last = 0;

	for (;;) {
		int n = poll(w->polled, 2 + w->params->n_queues, LOOK_MS);

		if (n > 0 && (w->polled[0].revents || w->polled[1].revents))
			break;
		look_at_workers(w);
	}
	/*
	 * What the daemon held is left to be dropped: the server knows of it by another SYN, of
	 * ours, and the client's would meet that (measured: worse).
	 */
	for (unsigned int i = 0; i < w->params->n_queues; i++) {
		shut(w, i);
		last += empty(w, i);
	}
	if (last > 0)
		pep_notice("the daemon has ended, new connections that waited go end to end, "
			   "connections=%u",
			   last);
}

int pep_guard_start(struct pep_guard *guard, const struct pep_guard_params *params)
{
	pid_t daemon = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(pair[0]);
		close(pair[1]);
		return err;
	}
	if (pid == 0) {
		struct watch watch = {.shared = guard->shared, .params = params};

		if (settle(&watch, pair[1], daemon) == 0)
			guard_process(&watch);
		_exit(0);
	}
	close(pair[1]);
	guard->life = pair[0];
	guard->pid = pid;
	return 0;
}
