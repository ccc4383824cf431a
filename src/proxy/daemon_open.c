/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the daemon comes up: everything is opened, then the privileges go, then the workers run. */
#include "proxy/daemon_internal.h"

#include "base/log.h"
#include "base/stats.h"
#include "proxy/beliefs.h"
#include "proxy/clients.h"
#include "proxy/control.h"
#include "proxy/guard.h"
#include "proxy/local_addrs.h"
#include "proxy/privileges.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PIPES 256 /* fs.pipe-user-pages-soft admits so many of 256 KiB to a user */

struct identity {
	uid_t uid;
	gid_t gid;
	gid_t control_gid; /* (gid_t) -1: leave it */
};

static int find_identity(const struct pep_conf *conf, struct identity *ret)
{
	ret->uid = geteuid();
	ret->gid = getegid();
	ret->control_gid = (gid_t)-1;
	if (geteuid() != 0)
		return 0;
	if (pep_user_lookup(conf->user, &ret->uid, &ret->gid) < 0) {
		pep_error("user '%s' does not exist: run systemd-sysusers, create it with 'useradd "
			  "--system %s', or set 'user'",
			  conf->user, conf->user);
		return -ENOENT;
	}
	if (pep_group_lookup(conf->group, &ret->control_gid) < 0) {
		pep_error(
			"group '%s' does not exist: run systemd-sysusers, create it with 'groupadd "
			"--system %s', or set 'group'",
			conf->group, conf->group);
		return -ENOENT;
	}
	return 0;
}

static int make_run_dir(const struct pep_conf *conf, const struct identity *id)
{
	if (mkdir(conf->run_dir, 0755) < 0 && errno != EEXIST) {
		int err = -errno;

		pep_error("cannot create run-dir '%s': %s", conf->run_dir, strerror(errno));
		return err;
	}
	/* The daemon removes its files after it has become its user. */
	if (geteuid() == 0 && id->uid != 0 && chown(conf->run_dir, id->uid, id->gid) < 0)
		return -errno;
	return 0;
}

static int open_workers(struct pep_daemon *daemon)
{
	const struct pep_conf *conf = daemon->conf;
	struct pep_worker_params params = {
		.conf = conf,
		.stats = daemon->stats,
		.beliefs = daemon->beliefs,
		.clients = daemon->clients,
		.guard = daemon->guard,
		.local_addrs = daemon->local_addrs,
		.max_flows = (daemon->max_flows + conf->workers - 1) / conf->workers,
		.memory_bytes = conf->relay.memory_bytes / conf->workers,
		.max_pipes = conf->relay.splice ? MAX_PIPES / conf->workers : 0,
	};
	char error[256];

	for (unsigned int i = 0; i < conf->workers; i++) {
		int err;

		params.index = i;
		err = pep_worker_new(&params, error, &daemon->workers[i].worker);
		if (err) {
			pep_error("%s", error);
			return err;
		}
		daemon->workers[i].daemon = daemon;
		daemon->n_workers++;
	}
	return 0;
}

static int open_stats(struct pep_daemon *daemon, const struct identity *id)
{
	const struct pep_conf *conf = daemon->conf;
	struct pep_stats_params params = {
		.workers = conf->workers,
		.flows_per_worker = (daemon->max_flows + conf->workers - 1) / conf->workers,
		.gid = id->control_gid,
		.version = PACKAGE_VERSION,
	};
	char path[sizeof(conf->run_dir) + 32];
	int err;

	snprintf(path, sizeof(path), "%s/" PEP_STATS_FILE, conf->run_dir);
	err = pep_stats_create(path, &params, &daemon->stats);
	if (err)
		pep_error("cannot create the stats segment '%s': %s", path, strerror(-err));
	return err;
}

static int open_control(struct pep_daemon *daemon, const struct identity *id)
{
	char path[sizeof(daemon->conf->run_dir) + 32];
	struct pep_control_params params = {
		.path = path,
		.gid = id->control_gid,
		.commands = daemon_commands,
		.context = daemon,
	};
	int err;

	snprintf(path, sizeof(path), "%s/control.sock", daemon->conf->run_dir);
	err = pep_control_new(daemon->base, &params, &daemon->control);
	if (err == -EADDRINUSE)
		pep_error("another edgepepd answers on '%s': stop it, or set another 'run-dir'",
			  path);
	else if (err)
		pep_error("cannot open the control socket '%s': %s", path, strerror(-err));
	return err;
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int drop_privileges(const struct identity *id)
{
	int err = pep_privileges_drop(id->uid, id->gid);

	if (err == -EPERM)
		pep_error("CAP_NET_ADMIN and CAP_NET_RAW are needed: start as root or through "
			  "edgepep.service");
	else if (err)
		pep_error("cannot drop privileges: %s", strerror(-err));
	return err;
}

/* Where nothing may pass without the daemon there is nothing for a guard to do. */
static int start_guard(struct pep_daemon *daemon)
{
	struct pep_guard_params params = {
		.n_queues = daemon->n_workers,
		.first_queue = daemon->conf->steering.first_queue,
		.mark_mask = daemon->conf->steering.mark_mask,
	};
	int err;

	for (unsigned int i = 0; i < daemon->n_workers; i++)
		params.fds[i] = pep_worker_queue_fd(daemon->workers[i].worker);
	err = pep_guard_start(daemon->guard, &params);
	if (!err)
		err = daemon_watch_guard(daemon);
	if (err)
		pep_error("cannot start the guard process: %s", strerror(-err));
	return err;
}

int daemon_open(struct pep_daemon *daemon)
{
	struct identity id;
	int err = find_identity(daemon->conf, &id);

	raise_descriptor_limit();
	if (!err)
		err = make_run_dir(daemon->conf, &id);
	if (err)
		return err;
	daemon->base = event_base_new();
	if (!daemon->base)
		return -ENOMEM;
	/* The socket first: it tells whether another daemon runs on this run-dir. */
	err = open_control(daemon, &id);
	if (!err)
		err = open_stats(daemon, &id);
	if (!err)
		err = pep_clients_new(daemon->max_flows * 4, &daemon->clients);
	if (!err)
		err = pep_beliefs_new(&daemon->beliefs);
	if (!err)
		err = pep_local_addrs_load(&daemon->local_addrs);
	if (!err)
		err = pep_guard_new(&daemon->guard);
	if (!err)
		err = open_workers(daemon);
	if (!err)
		err = daemon_open_events(daemon);
	if (!err)
		err = drop_privileges(&id);
	if (!err && daemon->conf->fail == PEP_FAIL_OPEN)
		err = start_guard(daemon);
	for (unsigned int i = 0; !err && i < daemon->n_workers; i++)
		err = pep_worker_start(daemon->workers[i].worker);
	return err;
}
