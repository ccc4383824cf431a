/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proxy/daemon_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stats.h"
#include "proxy/beliefs.h"
#include "proxy/clients.h"
#include "proxy/control.h"
#include "proxy/guard.h"
#include "proxy/local_addrs.h"
#include "proxy/notify.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A worker that hangs is ended within STALL + HEARTBEAT + the unit's WatchdogSec. */
#define HEARTBEAT_MS    200
#define WORKER_STALL_NS 250000000u  /* a loop turns each 50 ms */
#define STALL_TOLD_NS   1000000000u /* a busy machine makes shorter ones that are no news */
#define WATCH_SECONDS   5           /* how often local addresses and controls are looked at again */

/* -- questions to all workers ---------------------------------------------------------------------
 */

struct question {
	daemon_done_fn *done;
	void *user;
	unsigned int open;
	int best;
};

int daemon_ask_all(struct pep_daemon *daemon, const struct pep_mail *mail, daemon_done_fn *done,
		   void *user)
{
	struct question *q = calloc(1, sizeof(*q));
	struct pep_mail copy = *mail;

	if (!q)
		return -ENOMEM;
	*q = (struct question){.done = done, .user = user, .best = -ENOENT};
	copy.context = q;
	for (unsigned int i = 0; i < daemon->n_workers; i++)
		if (pep_worker_post(daemon->workers[i].worker, &copy) == 0)
			q->open++;
	if (q->open == 0) {
		free(q);
		return -EAGAIN;
	}
	return 0;
}

static void on_answer(evutil_socket_t fd, short what, void *data)
{
	struct daemon_worker *w = data;
	struct pep_mail mail;

	(void)fd;
	(void)what;
	while (pep_worker_take_answer(w->worker, &mail) == 0) {
		struct question *q = mail.context;

		if (!q) /* nobody waits for this answer */
			continue;
		if (mail.result == 0)
			q->best = 0;
		else if (q->best == -ENOENT)
			q->best = mail.result;
		if (--q->open > 0)
			continue;
		if (q->done)
			q->done(w->daemon, q->best, q->user);
		free(q);
	}
}

static enum pep_stats_state state_of(const struct pep_daemon *daemon)
{
	if (daemon->draining)
		return PEP_STATS_STATE_DRAINING;
	return daemon->bypass ? PEP_STATS_STATE_BYPASS : PEP_STATS_STATE_RUNNING;
}

int daemon_set_intake(struct pep_daemon *daemon, daemon_done_fn *done, void *user)
{
	struct pep_mail mail = {.type = PEP_MAIL_INTAKE};

	mail.value = daemon->draining ? PEP_INTAKE_DRAIN
		     : daemon->bypass ? PEP_INTAKE_BYPASS
				      : PEP_INTAKE_SPLIT;
	pep_stats_set_state(daemon->stats, state_of(daemon));
	return daemon_ask_all(daemon, &mail, done, user);
}

uint64_t daemon_flows(const struct pep_daemon *daemon, uint64_t *ret_pending)
{
	uint64_t flows = 0, pending = 0;

	for (unsigned int i = 0; i < daemon->n_workers; i++) {
		const struct pep_stats_block *b = pep_stats_worker(daemon->stats, i)->block;

		flows += pep_stats_word_get(&b->gauges[PEP_GAUGE_FLOWS]);
		pending += pep_stats_word_get(&b->gauges[PEP_GAUGE_PENDING]);
	}
	if (ret_pending)
		*ret_pending = pending;
	return flows + pending;
}

/* -- configuration --------------------------------------------------------------------------------
 */

static void log_fallbacks(const struct pep_conf *conf)
{
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		struct pep_leg_setup setup;
		int err = pep_leg_setup_resolve(&conf->leg[s], &setup);

		if (setup.cca_fallback)
			pep_warning(
				"congestion control '%s' of leg %s cannot be used (%s), using '%s' "
				"instead; for the pep_ family run 'edgepep-cca load'",
				conf->leg[s].congestion_control,
				pep_segment_name((enum pep_segment)s), strerror(-err),
				setup.conf.congestion_control[0] ? setup.conf.congestion_control
								 : "the system's default");
	}
}

static void publish_conf(struct pep_daemon *daemon)
{
	pep_stats_set_config(daemon->stats, daemon->generation, daemon->max_flows,
			     daemon->conf->relay.memory_bytes);
}

static void on_conf_taken(struct pep_daemon *daemon, int result, void *user)
{
	(void)daemon;
	(void)result;
	pep_conf_free(user);
}

int daemon_reload(struct pep_daemon *daemon, struct pep_conf **ret_before, char errors[512])
{
	struct pep_conf *conf = NULL, *copy = NULL;
	struct pep_mail mail = {.type = PEP_MAIL_CONF};
	int err;

	err = pep_conf_load_apart(daemon->conf_path, true, errors, 512, &conf);
	if (!err) {
		copy = malloc(sizeof(*copy));
		err = copy ? 0 : -ENOMEM;
	}
	if (err) {
		pep_stats_set_config_failed(daemon->stats);
		pep_conf_free(conf);
		return err;
	}
	/* What needs a restart keeps the value that is in force. */
	*copy = *conf;
	memcpy(&copy->steering, &daemon->conf->steering, sizeof(copy->steering));
	copy->max_pending = daemon->conf->max_pending;
	mail.pointer = copy;
	err = daemon_ask_all(daemon, &mail, on_conf_taken, copy);
	if (err) {
		pep_conf_free(copy);
		pep_conf_free(conf);
		return err;
	}
	*ret_before = daemon->conf;
	daemon->conf = conf;
	daemon->generation++;
	pep_log_set_level((enum pep_log_level)conf->log_level);
	log_fallbacks(conf);
	publish_conf(daemon);
	pep_notice("configuration reloaded, generation=%llu",
		   (unsigned long long)daemon->generation);
	return 0;
}

/* -- timers and signals ---------------------------------------------------------------------------
 */

static void end_of_drain(struct pep_daemon *daemon)
{
	uint64_t flows = daemon_flows(daemon, NULL);
	bool late = daemon->drain_deadline_ns && pep_clock_mono_ns() >= daemon->drain_deadline_ns;

	if (flows > 0 && !late)
		return;
	pep_notice("drained, flows_left=%llu", (unsigned long long)flows);
	event_base_loopbreak(daemon->base);
}

/* A worker whose loop stands still keeps its queue and listener: only its end opens the path. */
static bool all_workers_turn(struct pep_daemon *daemon)
{
	uint64_t now = pep_clock_mono_ns();

	for (unsigned int i = 0; i < daemon->n_workers; i++) {
		uint64_t tick = pep_worker_last_tick_ns(daemon->workers[i].worker);

		if (now > tick + STALL_TOLD_NS)
			pep_error("worker %u stands still, the watchdog is not fed any more, "
				  "milliseconds=%llu",
				  i, (unsigned long long)((now - tick) / 1000000u));
		if (now > tick + WORKER_STALL_NS)
			return false;
	}
	return true;
}

static void on_heartbeat(evutil_socket_t fd, short what, void *data)
{
	struct pep_daemon *daemon = data;
	uint64_t pending, flows = daemon_flows(daemon, &pending);

	(void)fd;
	(void)what;
	if (!all_workers_turn(daemon))
		return;
	pep_stats_heartbeat(daemon->stats);
	(void)pep_notify("WATCHDOG=1\nSTATUS=%s, %llu flows, %llu pending",
			 pep_stats_state_name(state_of(daemon)),
			 (unsigned long long)(flows - pending), (unsigned long long)pending);
	if (daemon->draining)
		end_of_drain(daemon);
}

/* Addresses come and go. A worker that cannot take the new set now gets it the next time. */
static void refresh_local_addrs(struct pep_daemon *daemon)
{
	struct pep_local_addrs *addrs;

	if (pep_local_addrs_load(&addrs) < 0)
		return;
	if (pep_local_addrs_equal(addrs, daemon->local_addrs)) {
		pep_local_addrs_unref(addrs);
	} else {
		pep_local_addrs_unref(daemon->local_addrs);
		daemon->local_addrs = addrs;
		daemon->addrs_generation++;
	}
	for (unsigned int i = 0; i < daemon->n_workers; i++) {
		struct daemon_worker *w = &daemon->workers[i];
		struct pep_mail mail = {.type = PEP_MAIL_LOCAL_ADDRS};

		if (w->addrs_generation == daemon->addrs_generation)
			continue;
		mail.pointer = pep_local_addrs_ref(daemon->local_addrs);
		if (pep_worker_post(w->worker, &mail) == 0)
			w->addrs_generation = daemon->addrs_generation;
		else
			pep_local_addrs_unref(mail.pointer);
	}
}

static void on_watch(evutil_socket_t fd, short what, void *data)
{
	(void)fd;
	(void)what;
	struct pep_daemon *daemon = data;

	refresh_local_addrs(daemon);
	pep_beliefs_refresh(daemon->beliefs);
}

/* Without it a hang costs new connections seconds, no more; so the daemon goes on. */
static void on_guard_ended(evutil_socket_t fd, short what, void *data)
{
	struct pep_daemon *daemon = data;

	(void)fd;
	(void)what;
	pep_error("the guard process has ended: until a restart, new connections wait when the "
		  "daemon hangs");
	event_free(daemon->guard_event);
	daemon->guard_event = NULL;
}

int daemon_watch_guard(struct pep_daemon *daemon)
{
	daemon->guard_event = event_new(daemon->base, pep_guard_fd(daemon->guard), EV_READ,
					on_guard_ended, daemon);
	return daemon->guard_event && event_add(daemon->guard_event, NULL) == 0 ? 0 : -ENOMEM;
}

static void on_signal(evutil_socket_t number, short what, void *data)
{
	struct pep_daemon *daemon = data;
	struct pep_conf *before;
	char errors[512];

	(void)what;
	if (number == SIGHUP) {
		if (daemon_reload(daemon, &before, errors) == 0)
			pep_conf_free(before);
		else
			pep_error("reload refused, the old configuration stays: %s", errors);
		return;
	}
	pep_notice("ending on signal %d", (int)number);
	event_base_loopbreak(daemon->base);
}

int daemon_open_events(struct pep_daemon *daemon)
{
	static const int signals[3] = {SIGTERM, SIGINT, SIGHUP};
	struct timeval heartbeat = {.tv_usec = HEARTBEAT_MS * 1000};
	struct timeval watch = {.tv_sec = WATCH_SECONDS};
	uint64_t watchdog_us = pep_notify_watchdog_us();

	if (watchdog_us && watchdog_us / 4 < HEARTBEAT_MS * 1000u)
		heartbeat.tv_usec = (suseconds_t)(watchdog_us / 4);

	for (int i = 0; i < 3; i++) {
		daemon->signal_events[i] =
			evsignal_new(daemon->base, signals[i], on_signal, daemon);
		if (!daemon->signal_events[i] || event_add(daemon->signal_events[i], NULL) < 0)
			return -ENOMEM;
	}
	daemon->heartbeat_event = event_new(daemon->base, -1, EV_PERSIST, on_heartbeat, daemon);
	daemon->watch_event = event_new(daemon->base, -1, EV_PERSIST, on_watch, daemon);
	if (!daemon->heartbeat_event || !daemon->watch_event ||
	    event_add(daemon->heartbeat_event, &heartbeat) < 0 ||
	    event_add(daemon->watch_event, &watch) < 0)
		return -ENOMEM;
	for (unsigned int i = 0; i < daemon->n_workers; i++) {
		struct daemon_worker *w = &daemon->workers[i];

		w->answer_event = event_new(daemon->base, pep_worker_answer_fd(w->worker),
					    EV_READ | EV_PERSIST, on_answer, w);
		if (!w->answer_event || event_add(w->answer_event, NULL) < 0)
			return -ENOMEM;
	}
	return 0;
}

int pep_daemon_new(const char *conf_path, struct pep_conf *conf, struct pep_daemon **ret)
{
	struct pep_daemon *daemon = calloc(1, sizeof(*daemon));
	int err;

	if (!daemon)
		return -ENOMEM;
	signal(SIGPIPE, SIG_IGN);
	daemon->conf_path = conf_path;
	daemon->conf = conf;
	daemon->generation = 1;
	daemon->start_ns = pep_clock_mono_ns();
	daemon->max_flows = conf->max_flows;
	err = daemon_open(daemon);
	if (err) {
		daemon->conf = NULL;
		pep_daemon_free(daemon);
		return err;
	}
	log_fallbacks(conf);
	publish_conf(daemon);
	pep_stats_set_state(daemon->stats, state_of(daemon));
	pep_stats_heartbeat(daemon->stats);
	*ret = daemon;
	return 0;
}

int pep_daemon_run(struct pep_daemon *daemon)
{
	pep_notice("ready, version=%s workers=%u max_flows=%u accept=%s source=%s", PACKAGE_VERSION,
		   daemon->n_workers, daemon->max_flows,
		   daemon->conf->accept == PEP_ACCEPT_EARLY ? "early" : "verified",
		   daemon->conf->source == PEP_SOURCE_CLIENT ? "client" : "gateway");
	(void)pep_notify("READY=1\nSTATUS=running");
	if (event_base_dispatch(daemon->base) < 0)
		return -EIO;
	(void)pep_notify("STOPPING=1");
	return 0;
}

static void free_event(struct event *event)
{
	if (event)
		event_free(event);
}

void pep_daemon_free(struct pep_daemon *daemon)
{
	if (!daemon)
		return;
	for (unsigned int i = 0; i < daemon->n_workers; i++) {
		free_event(daemon->workers[i].answer_event);
		pep_worker_free(daemon->workers[i].worker);
	}
	pep_control_free(daemon->control);
	for (int i = 0; i < 3; i++)
		free_event(daemon->signal_events[i]);
	free_event(daemon->heartbeat_event);
	free_event(daemon->watch_event);
	free_event(daemon->guard_event);
	if (daemon->base)
		event_base_free(daemon->base);
	pep_local_addrs_unref(daemon->local_addrs);
	pep_guard_free(daemon->guard);
	pep_clients_free(daemon->clients);
	pep_beliefs_free(daemon->beliefs);
	pep_stats_destroy(daemon->stats);
	pep_conf_free(daemon->conf);
	free(daemon);
}
