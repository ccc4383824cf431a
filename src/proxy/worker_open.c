/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a worker comes up, in the main thread. */
#include "proxy/worker_internal.h"

#include "proxy/local_addrs.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUARD_ENDS_TRIES 20
#define GUARD_ENDS_US    10000

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
	w->listeners[which].event = event_new(w->base, w->listeners[which].fd, EV_READ | EV_PERSIST,
					      worker_on_acceptable, w);
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
		.max_length = conf->max_pending + 8192,
	};
	struct pep_gate_handler handler = {
		.on_syn = worker_on_syn,
		.on_synack = worker_on_synack,
		.on_malformed = worker_on_malformed,
		.context = w,
	};
	int err = pep_gate_new(w->base, &params, &handler, &w->gate);

	/* The guard of a daemon that was killed keeps its queues for an instant more. */
	for (int i = 0; i < GUARD_ENDS_TRIES && (err == -EPERM || err == -EBUSY); i++) {
		(void)usleep(GUARD_ENDS_US);
		err = pep_gate_new(w->base, &params, &handler, &w->gate);
	}
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
	if (evutil_make_socket_nonblocking(w->mail[WORKER_MAIL_MAIN]) < 0)
		return -errno;
	w->mail_event = event_new(w->base, w->mail[WORKER_MAIL_OWN], EV_READ | EV_PERSIST,
				  worker_on_mail, w);
	if (!w->mail_event || event_add(w->mail_event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static int open_ticks(struct pep_worker *w)
{
	struct timeval tv = {.tv_usec = PEP_FLOWS_TICK_MS * 1000};

	w->tick_event = event_new(w->base, -1, EV_PERSIST, worker_on_tick, w);
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
	pep_local_addrs_ref(w->params.local_addrs);
	w->mail[WORKER_MAIL_MAIN] = w->mail[WORKER_MAIL_OWN] = w->listeners[0].fd =
		w->listeners[1].fd = -1;
	w->reserve_fd = worker_open_reserve();
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
