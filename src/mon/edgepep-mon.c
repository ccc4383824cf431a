/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepep-mon: shows what edgepepd publishes, over HTTP. It can disturb nothing. */
#include "config.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/usage.h"
#include "mon/api.h"
#include "mon/http_server.h"
#include "mon/listen.h"
#include "mon/privileges.h"

#define MONITOR_USER "edgepep-mon"

enum {
	OPTION_CHECK = PEP_USAGE_LONG,
	OPTION_LISTEN,
	OPTION_METRICS,
	OPTION_STATS,
	OPTION_USER
};

static const struct pep_usage_option options[] = {
	{'c', "config", "FILE", "read FILE in place of " PEP_CONF_FILE},
	{OPTION_CHECK, "check-config", NULL, "read the configuration, say what is wrong, and exit"},
	{OPTION_LISTEN, "listen", "ADDRESS", "listen here, whatever the configuration says"},
	{OPTION_METRICS, "list-metrics", NULL, "print every metric with its meaning, and exit"},
	{OPTION_STATS, "stats", "FILE", "read this stats segment, not the one in run-dir"},
	{OPTION_USER, "user", "NAME", "become this user when started as root (" MONITOR_USER ")"},
	{0},
};

static const struct pep_usage usage = {
	.program = "edgepep-mon",
	.synopsis = "[OPTION...]",
	.summary = "Shows what edgepepd does: a web page, JSON and Prometheus metrics over HTTP.",
	.options = options,
};

struct settings {
	const char *conf_path, *listen, *stats, *user;
	bool check;
};

struct monitor {
	struct event_base *base;
	struct pep_view *view;
	struct pep_api *api;
	struct pep_http_server *server;
	struct event *tick, *sigint, *sigterm;
};

/* Returns -1 to go on, or the exit code. */
static int read_options(int argc, char **argv, struct settings *ret)
{
	int option;

	*ret = (struct settings){.conf_path = PEP_CONF_FILE, .user = MONITOR_USER};
	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		switch (option) {
		case 'c':
			ret->conf_path = optarg;
			break;
		case OPTION_CHECK:
			ret->check = true;
			break;
		case OPTION_LISTEN:
			ret->listen = optarg;
			break;
		case OPTION_METRICS:
			pep_metrics_document(stdout);
			return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
		case OPTION_STATS:
			ret->stats = optarg;
			break;
		case OPTION_USER:
			ret->user = optarg;
			break;
		case PEP_USAGE_DONE:
			return EXIT_SUCCESS;
		default:
			return PEP_EXIT_USAGE;
		}
	}
	if (optind < argc)
		return pep_usage_error(&usage, "'%s': no argument is expected", argv[optind]);
	return -1;
}

static int open_listeners(struct monitor *m, const char *address)
{
	int inherited = pep_listen_inherited(), fd, err;

	for (int i = 0; i < inherited; i++) {
		err = pep_http_server_listen(m->server, 3 + i);
		if (err)
			return err;
	}
	if (inherited) {
		pep_notice("listening on inherited sockets count=%d", inherited);
		return 0;
	}
	fd = pep_listen_open(address);
	if (fd < 0)
		return fd;
	err = pep_http_server_listen(m->server, fd);
	if (err)
		close(fd);
	else
		pep_notice("listening address=%s", address);
	return err;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct monitor *m = arg;

	(void)fd;
	(void)what;
	pep_api_tick(m->api);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct monitor *m = arg;

	(void)what;
	pep_notice("ending signal=%d", (int)number);
	event_base_loopbreak(m->base);
}

static int add_events(struct monitor *m)
{
	static const struct timeval second = {1, 0};

	m->tick = event_new(m->base, -1, EV_PERSIST, on_tick, m);
	m->sigint = evsignal_new(m->base, SIGINT, on_signal, m);
	m->sigterm = evsignal_new(m->base, SIGTERM, on_signal, m);
	if (!m->tick || !m->sigint || !m->sigterm || event_add(m->tick, &second) < 0 ||
	    event_add(m->sigint, NULL) < 0 || event_add(m->sigterm, NULL) < 0)
		return -ENOMEM;
	return 0;
}

static void monitor_fini(struct monitor *m)
{
	if (m->tick)
		event_free(m->tick);
	if (m->sigint)
		event_free(m->sigint);
	if (m->sigterm)
		event_free(m->sigterm);
	pep_http_server_free(m->server);
	pep_api_free(m->api);
	pep_view_free(m->view);
	if (m->base)
		event_base_free(m->base);
}

static int monitor_init(struct monitor *m, const char *stats_path)
{
	int err;

	m->base = event_base_new();
	if (!m->base)
		return -ENOMEM;
	err = pep_view_new(stats_path, &m->view);
	if (!err)
		err = pep_api_new(m->view, &m->api);
	if (!err)
		err = pep_http_server_new(m->base, &pep_http_default_limits, pep_api_handle, m->api,
					  &m->server);
	if (!err)
		pep_api_set_server(m->api, m->server);
	return err;
}

static int run(const struct settings *settings, const struct pep_conf *conf)
{
	const char *address = settings->listen ? settings->listen : conf->monitor.listen;
	struct monitor monitor = {0};
	char stats_path[sizeof(conf->run_dir) + 16];
	int err;

	snprintf(stats_path, sizeof(stats_path), "%s/%s", conf->run_dir, PEP_STATS_FILE);
	err = monitor_init(&monitor, settings->stats ? settings->stats : stats_path);
	if (err) {
		pep_error("out of memory");
		goto out;
	}
	err = open_listeners(&monitor, address);
	if (err) {
		pep_error("cannot listen address=%s error=\"%s\"", address, strerror(-err));
		goto out;
	}
	err = pep_privileges_drop(settings->user, conf->group);
	if (err == -ENOENT) {
		pep_warning("no such user, staying root without its powers user=%s",
			    settings->user);
	} else if (err) {
		pep_error("cannot give up privileges user=%s error=\"%s\"", settings->user,
			  strerror(-err));
		goto out;
	}
	err = add_events(&monitor);
	if (err) {
		pep_error("out of memory");
		goto out;
	}
	pep_api_tick(monitor.api);
	event_base_dispatch(monitor.base);

out:
	monitor_fini(&monitor);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct pep_conf *conf = NULL;
	int code = read_options(argc, argv, &settings);

	if (code >= 0)
		return code;
	if (pep_conf_load(settings.conf_path, stderr, &conf) < 0)
		return PEP_EXIT_USAGE;
	if (settings.check) {
		pep_conf_free(conf);
		return EXIT_SUCCESS;
	}
	pep_log_init("edgepep-mon", (enum pep_log_level)conf->log_level);
	(void)signal(SIGPIPE, SIG_IGN);
	code = run(&settings, conf);
	pep_conf_free(conf);
	return code;
}
