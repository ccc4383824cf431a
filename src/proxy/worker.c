/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Invariant: after pep_worker_start() everything in here but `mail[MAIN]` and `thread` belongs to
 * the worker's thread.
 */
#include "proxy/worker.h"

#include "base/log.h"
#include "proxy/gate.h"
#include "proxy/local_addrs.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MAIN,
	WORKER
}; /* ends of the mail socket pair */

#define ACCEPT_BATCH 64

struct listener {
	int fd;
	struct event *event;
	bool paused; /* until the next tick: accept() cannot succeed now */
};

struct pep_worker {
	struct pep_worker_params params;
	struct event_base *base;
	struct pep_policy *policy;
	struct pep_pool *pool;
	struct pep_flows *flows;
	struct pep_gate *gate;
	struct listener listeners[2]; /* IPv4, IPv6 */
	int reserve_fd;               /* given up to be able to turn a client away */
	int mail[2];
	struct event *mail_event, *tick_event;
	uint64_t next_tick_ns;
	_Atomic uint64_t last_tick_ns; /* read by the main thread */
	struct pep_log_limit accept_limit;
	pthread_t thread;
	bool running;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Takes one connection with the reserve descriptor and resets it. Returns whether that worked. */
static bool turn_away(struct pep_worker *w, int listener)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	int fd;

	if (w->reserve_fd >= 0)
		close(w->reserve_fd);
	fd = accept4(listener, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);
	if (fd >= 0)
		pep_flows_on_turned_away(w->flows, fd, &peer);
	w->reserve_fd = open_reserve();
	return fd >= 0;
}

/* The listener is readable and accept() fails: waits a tick rather than spin. */
static void on_accept_failure(struct pep_worker *w, struct listener *l, int error)
{
	bool out_of_descriptors = error == EMFILE || error == ENFILE;
	uint32_t suppressed;

	pep_stats_add(pep_stats_worker(w->params.stats, w->params.index),
		      PEP_COUNTER_ACCEPT_FAILURES, 1);
	if (!out_of_descriptors || !turn_away(w, l->fd)) {
		event_del(l->event);
		l->paused = true;
	}
	if (pep_log_limit_ok(&w->accept_limit, now_ns() / 1000000u, 10000, &suppressed))
		pep_warning("cannot accept a client (%s)%s, worker=%u suppressed=%u",
			    strerror(error),
			    out_of_descriptors ? ": raise LimitNOFILE or lower max-flows" : "",
			    w->params.index, suppressed);
}

static void on_acceptable(evutil_socket_t fd, short what, void *data)
{
	struct pep_worker *w = data;
	struct listener *l = &w->listeners[fd == w->listeners[0].fd ? 0 : 1];

	(void)what;
	for (int i = 0; i < ACCEPT_BATCH && !l->paused; i++) {
		struct sockaddr_storage peer;
		socklen_t size = sizeof(peer);
		int client =
			accept4(fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client >= 0)
			pep_flows_on_accept(w->flows, client, &peer);
		else if (errno == EAGAIN)
			return;
		else if (errno != ECONNABORTED && errno != EINTR)
			on_accept_failure(w, l, errno);
	}
}

static void resume_listeners(struct pep_worker *w)
{
	for (int i = 0; i < 2; i++) {
		struct listener *l = &w->listeners[i];

		if (l->paused && event_add(l->event, NULL) == 0)
			l->paused = false;
	}
}

static void on_syn(void *context, const struct pep_gate_ticket *ticket, const struct pep_syn *syn)
{
	struct pep_worker *w = context;

	pep_flows_on_syn(w->flows, ticket, syn);
}

static void on_synack(void *context, const struct pep_syn *synack)
{
	struct pep_worker *w = context;

	pep_flows_on_synack(w->flows, synack);
}

static void on_malformed(void *context, int error)
{
	struct pep_worker *w = context;

	(void)error;
	pep_flows_on_malformed(w->flows);
}

static void on_tick(evutil_socket_t fd, short what, void *data)
{
	struct pep_worker *w = data;
	uint64_t now = now_ns();

	(void)fd;
	(void)what;
	if (w->next_tick_ns && now > w->next_tick_ns)
		pep_stats_observe(pep_stats_worker(w->params.stats, w->params.index),
				  PEP_HISTOGRAM_LOOP_LAG, now - w->next_tick_ns);
	atomic_store_explicit(&w->last_tick_ns, now, memory_order_relaxed);
	w->next_tick_ns = now + PEP_FLOWS_TICK_MS * 1000000u;
	pep_flows_tick(w->flows);
	pep_gate_flush(w->gate);
	resume_listeners(w);
}

static int take_conf(struct pep_worker *w, const struct pep_conf *conf)
{
	struct pep_policy *policy;
	int err = pep_policy_new(conf, w->params.stats, &policy);

	if (err)
		return err;
	/* Accepted sockets inherit from the listeners: bring those to the new settings. */
	for (int i = 0; i < 2; i++) {
		if (w->listeners[i].fd >= 0)
			(void)pep_leg_reconfigure(
				w->listeners[i].fd,
				&pep_policy_default(w->policy)->leg[PEP_SEGMENT_WIRELESS],
				&pep_policy_default(policy)->leg[PEP_SEGMENT_WIRELESS]);
	}
	pep_flows_set_policy(w->flows, policy);
	pep_policy_unref(w->policy);
	w->policy = policy;
	return 0;
}

static void handle_mail(struct pep_worker *w, struct pep_mail *mail)
{
	switch (mail->type) {
	case PEP_MAIL_CONF:
		mail->result = take_conf(w, mail->pointer);
		break;
	case PEP_MAIL_LOCAL_ADDRS: {
		const struct pep_local_addrs *before = w->params.local_addrs;

		w->params.local_addrs = mail->pointer;
		pep_flows_set_local_addrs(w->flows, mail->pointer);
		mail->pointer = (void *)(uintptr_t)before;
		mail->result = 0;
		break;
	}
	case PEP_MAIL_INTAKE:
		pep_flows_set_intake(w->flows, (enum pep_intake)mail->value);
		mail->result = 0;
		break;
	case PEP_MAIL_KILL:
		mail->result = pep_flows_kill(w->flows, mail->value);
		break;
	}
	/* The main thread posts no more than it takes answers for: this cannot block for long. */
	(void)send(w->mail[WORKER], mail, sizeof(*mail), MSG_NOSIGNAL);
}

static void on_mail(evutil_socket_t fd, short what, void *data)
{
	struct pep_worker *w = data;
	struct pep_mail mail;
	ssize_t n;

	(void)what;
	while ((n = recv(fd, &mail, sizeof(mail), MSG_DONTWAIT)) == (ssize_t)sizeof(mail))
		handle_mail(w, &mail);
	if (n == 0) /* the main thread hung up: it could not even post the end */
		event_base_loopbreak(w->base);
}

static int open_listener(struct pep_worker *w, int which, char error[256])
{
	const struct pep_conf *conf = w->params.conf;
	int family = which == 0 ? AF_INET : AF_INET6;
	uint16_t port = (uint16_t)(conf->steering.first_port + w->params.index);
	uint32_t mark =
		pep_mark_make(conf->steering.mark_mask, PEP_MARK_KIND_WIRELESS, w->params.index);
	const char *step = "";
	int err;

	/* The backlog takes every SYN that may be pending: SYN cookies never come into play. */
	err = pep_leg_listen(family, port,
			     &pep_policy_default(w->policy)->leg[PEP_SEGMENT_WIRELESS], mark,
			     (int)conf->max_pending * 2, &w->listeners[which].fd, &step);
	if (family == AF_INET6 && (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL)) {
		if (w->params.index == 0)
			pep_notice("IPv6 is disabled on this host, splitting IPv4 only");
		return 0;
	}
	if (err == -EADDRINUSE)
		snprintf(error, 256,
			 "port %u on %s is taken: end the other process or change "
			 "'steering { first-port }'",
			 port, family == AF_INET ? "127.0.0.1" : "::1");
	else if (err)
		snprintf(error, 256, "cannot open the transparent listener: %s: %s", step,
			 strerror(-err));
	if (err)
		return err;
	w->listeners[which].event =
		event_new(w->base, w->listeners[which].fd, EV_READ | EV_PERSIST, on_acceptable, w);
	if (!w->listeners[which].event || event_add(w->listeners[which].event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static int open_gate(struct pep_worker *w, char error[256])
{
	const struct pep_conf *conf = w->params.conf;
	struct pep_gate_params params = {
		.queue = (uint16_t)(conf->steering.first_queue + w->params.index),
		.mark_mask = conf->steering.mark_mask,
		.worker = w->params.index,
		.max_length = conf->max_pending + 1024,
	};
	struct pep_gate_handler handler = {
		.on_syn = on_syn,
		.on_synack = on_synack,
		.on_malformed = on_malformed,
		.context = w,
	};
	int err = pep_gate_new(w->base, &params, &handler, &w->gate);

	if (err == -EPERM)
		snprintf(error, 256,
			 "cannot bind NFQUEUE %u: CAP_NET_ADMIN is missing (AmbientCapabilities="
			 "CAP_NET_ADMIN in the unit, or start as root)",
			 params.queue);
	else if (err == -EBUSY)
		snprintf(error, 256,
			 "NFQUEUE %u is taken: end the other process or change "
			 "'steering { first-queue }'",
			 params.queue);
	else if (err)
		snprintf(error, 256,
			 "cannot bind NFQUEUE %u: %s (is nfnetlink_queue in this kernel?)",
			 params.queue, strerror(-err));
	if (!err)
		pep_flows_set_gate(w->flows, w->gate);
	return err;
}

static int open_mail(struct pep_worker *w)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, w->mail) < 0)
		return -errno;
	if (evutil_make_socket_nonblocking(w->mail[MAIN]) < 0)
		return -errno;
	w->mail_event = event_new(w->base, w->mail[WORKER], EV_READ | EV_PERSIST, on_mail, w);
	if (!w->mail_event || event_add(w->mail_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static int open_ticks(struct pep_worker *w)
{
	struct timeval tv = {.tv_usec = PEP_FLOWS_TICK_MS * 1000};

	w->tick_event = event_new(w->base, -1, EV_PERSIST, on_tick, w);
	if (!w->tick_event || event_add(w->tick_event, &tv) < 0)
		return -ENOMEM;
	return 0;
}

static int open_base(struct event_base **ret)
{
	struct event_config *config = event_config_new();

	if (!config)
		return -ENOMEM;
	/* A worker's base is touched by its thread only; edge triggering needs epoll. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE);
	*ret = event_base_new_with_config(config);
	event_config_free(config);
	return *ret ? 0 : -ENOSYS;
}

static int open_memory(struct pep_worker *w)
{
	const struct pep_worker_params *p = &w->params;
	struct pep_pool_params pool = {
		.memory_bytes = p->memory_bytes,
		.pipe_bytes = p->conf->relay.pipe_bytes,
		.max_pipes = p->max_pipes,
	};
	struct pep_flows_params flows = {
		.base = w->base,
		.stats = p->stats,
		.beliefs = p->beliefs,
		.clients = p->clients,
		.worker = p->index,
		.max_flows = p->max_flows,
	};
	int err = pep_policy_new(p->conf, p->stats, &w->policy);

	if (!err)
		err = pep_pool_new(&pool, &w->pool);
	if (err)
		return err;
	flows.policy = w->policy;
	flows.pool = w->pool;
	err = pep_flows_new(&flows, &w->flows);
	if (!err)
		pep_flows_set_local_addrs(w->flows, p->local_addrs);
	return err;
}

int pep_worker_new(const struct pep_worker_params *params, char error[256], struct pep_worker **ret)
{
	struct pep_worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->params = *params;
	w->mail[MAIN] = w->mail[WORKER] = w->listeners[0].fd = w->listeners[1].fd = -1;
	w->reserve_fd = open_reserve();
	error[0] = '\0';

	err = open_base(&w->base);
	if (!err)
		err = open_memory(w);
	if (!err)
		err = open_mail(w);
	if (!err)
		err = open_ticks(w);
	for (int i = 0; !err && i < 2; i++)
		err = open_listener(w, i, error);
	if (!err)
		err = open_gate(w, error);
	if (err) {
		if (!error[0])
			snprintf(error, 256, "cannot set up worker %u: %s", params->index,
				 strerror(-err));
		pep_worker_free(w);
		return err;
	}
	w->params.conf = NULL;
	*ret = w;
	return 0;
}

static void *run(void *data)
{
	struct pep_worker *w = data;

	event_base_dispatch(w->base);
	/* SYNs that are held or queued go end to end: ending loses nobody's new connection. */
	pep_flows_set_intake(w->flows, PEP_INTAKE_DRAIN);
	pep_gate_run(w->gate);
	pep_flows_let_go(w->flows);
	pep_flows_set_gate(w->flows, NULL);
	pep_gate_free(w->gate);
	w->gate = NULL;
	pep_flows_free(w->flows);
	w->flows = NULL;
	return NULL;
}

int pep_worker_start(struct pep_worker *w)
{
	sigset_t all, before;
	char name[16];
	int err;

	atomic_store_explicit(&w->last_tick_ns, now_ns(), memory_order_relaxed);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
	err = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	w->running = true;
	snprintf(name, sizeof(name), "worker-%u", w->params.index);
	(void)pthread_setname_np(w->thread, name);
	return 0;
}

static void close_listener(struct listener *l)
{
	if (l->event)
		event_free(l->event);
	if (l->fd >= 0)
		close(l->fd);
}

void pep_worker_free(struct pep_worker *w)
{
	if (!w)
		return;
	if (w->running) {
		shutdown(w->mail[MAIN], SHUT_RDWR);
		pthread_join(w->thread, NULL);
	}
	for (int i = 0; i < 2; i++)
		close_listener(&w->listeners[i]);
	pep_flows_free(w->flows);
	pep_gate_free(w->gate);
	if (w->tick_event)
		event_free(w->tick_event);
	if (w->mail_event)
		event_free(w->mail_event);
	for (int i = 0; i < 2; i++)
		if (w->mail[i] >= 0)
			close(w->mail[i]);
	if (w->reserve_fd >= 0)
		close(w->reserve_fd);
	pep_pool_free(w->pool);
	pep_policy_unref(w->policy);
	if (w->base)
		event_base_free(w->base);
	free(w);
}

uint64_t pep_worker_last_tick_ns(const struct pep_worker *w)
{
	return atomic_load_explicit(&w->last_tick_ns, memory_order_relaxed);
}

int pep_worker_post(struct pep_worker *w, const struct pep_mail *mail)
{
	return send(w->mail[MAIN], mail, sizeof(*mail), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno
											 : 0;
}

int pep_worker_answer_fd(const struct pep_worker *w)
{
	return w->mail[MAIN];
}

int pep_worker_take_answer(struct pep_worker *w, struct pep_mail *ret)
{
	ssize_t n = recv(w->mail[MAIN], ret, sizeof(*ret), MSG_DONTWAIT);

	return n == (ssize_t)sizeof(*ret) ? 0 : -EAGAIN;
}
