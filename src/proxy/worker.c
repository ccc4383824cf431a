/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/worker_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "proxy/guard.h"
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

#define ACCEPT_BATCH 64

int worker_open_reserve(void)
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
	w->reserve_fd = worker_open_reserve();
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
	if (pep_log_limit_ok(&w->accept_limit, pep_clock_mono_ns() / 1000000u, 10000, &suppressed))
		pep_warning("cannot accept a client (%s)%s, worker=%u suppressed=%u",
			    strerror(error),
			    out_of_descriptors ? ": raise LimitNOFILE or lower max-flows" : "",
			    w->params.index, suppressed);
}

void worker_on_acceptable(evutil_socket_t fd, short what, void *data)
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

void worker_on_syn(void *context, const struct pep_gate_ticket *ticket, const struct pep_syn *syn)
{
	struct pep_worker *w = context;

	pep_flows_on_syn(w->flows, ticket, syn);
}

void worker_on_synack(void *context, const struct pep_syn *synack)
{
	struct pep_worker *w = context;

	pep_flows_on_synack(w->flows, synack);
}

void worker_on_malformed(void *context, int error)
{
	struct pep_worker *w = context;

	(void)error;
	pep_flows_on_malformed(w->flows);
}

void worker_on_tick(evutil_socket_t fd, short what, void *data)
{
	struct pep_worker *w = data;
	struct pep_stats_worker *stats = pep_stats_worker(w->params.stats, w->params.index);
	uint64_t now = pep_clock_mono_ns();

	(void)fd;
	(void)what;
	if (w->next_tick_ns && now > w->next_tick_ns)
		pep_stats_observe(stats, PEP_HISTOGRAM_LOOP_LAG, now - w->next_tick_ns);
	atomic_store_explicit(&w->last_tick_ns, now, memory_order_relaxed);
	pep_stats_stalled(stats, pep_guard_tick(w->params.guard, w->params.index, now));
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
	case PEP_MAIL_LOCAL_ADDRS:
		pep_flows_set_local_addrs(w->flows, mail->pointer);
		pep_local_addrs_unref(w->params.local_addrs);
		w->params.local_addrs = mail->pointer;
		mail->result = 0;
		break;
	case PEP_MAIL_INTAKE:
		pep_flows_set_intake(w->flows, (enum pep_intake)mail->value);
		mail->result = 0;
		break;
	case PEP_MAIL_KILL:
		mail->result = pep_flows_kill(w->flows, mail->value);
		break;
	}
	/* The main thread posts no more than it takes answers for: this cannot block for long. */
	(void)send(w->mail[WORKER_MAIL_OWN], mail, sizeof(*mail), MSG_NOSIGNAL);
}

void worker_on_mail(evutil_socket_t fd, short what, void *data)
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
	pep_guard_leave(w->params.guard, w->params.index);
	pep_flows_free(w->flows);
	w->flows = NULL;
	return NULL;
}

int pep_worker_start(struct pep_worker *w)
{
	uint64_t now = pep_clock_mono_ns();
	sigset_t all, before;
	char name[16];
	int err;

	atomic_store_explicit(&w->last_tick_ns, now, memory_order_relaxed);
	(void)pep_guard_tick(w->params.guard, w->params.index, now);
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
		shutdown(w->mail[WORKER_MAIL_MAIN], SHUT_RDWR);
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
	pep_local_addrs_unref(w->params.local_addrs);
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
	return send(w->mail[WORKER_MAIL_MAIN], mail, sizeof(*mail), MSG_NOSIGNAL | MSG_DONTWAIT) < 0
		       ? -errno
		       : 0;
}

int pep_worker_queue_fd(const struct pep_worker *w)
{
	return pep_gate_fd(w->gate);
}

int pep_worker_answer_fd(const struct pep_worker *w)
{
	return w->mail[WORKER_MAIL_MAIN];
}

int pep_worker_take_answer(struct pep_worker *w, struct pep_mail *ret)
{
	ssize_t n = recv(w->mail[WORKER_MAIL_MAIN], ret, sizeof(*ret), MSG_DONTWAIT);

	return n == (ssize_t)sizeof(*ret) ? 0 : -EAGAIN;
}
