/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bounded: at most MAX_CACHED rendered answers are kept, and none longer than a tick. */
#include "mon/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/stats_json.h"
#include "config.h"
#include "mon/assets.h"
#include "mon/query.h"

#define MAX_CACHED 32

struct cached {
	char key[PEP_HTTP_MAX_TARGET * 2 + 2]; /* path?query */
	struct pep_page *page;
};

struct pep_api {
	struct pep_view *view;
	const struct pep_http_server *server;
	struct pep_page *metrics[2]; /* by enum pep_metrics_format */
	struct cached cached[MAX_CACHED];
	unsigned int n_cached;
	uint64_t render_ns, start_ns;
};

int pep_api_new(struct pep_view *view, struct pep_api **ret)
{
	struct pep_api *api = calloc(1, sizeof(*api));

	if (!api)
		return -ENOMEM;
	api->view = view;
	api->start_ns = pep_clock_mono_ns();
	*ret = api;
	return 0;
}

static void forget(struct pep_api *api)
{
	for (unsigned int i = 0; i < api->n_cached; i++)
		pep_page_unref(api->cached[i].page);
	api->n_cached = 0;
}

static void forget_metrics(struct pep_api *api)
{
	for (int f = 0; f < 2; f++) {
		pep_page_unref(api->metrics[f]);
		api->metrics[f] = NULL;
	}
}

void pep_api_free(struct pep_api *api)
{
	if (!api)
		return;
	forget(api);
	forget_metrics(api);
	free(api);
}

void pep_api_set_server(struct pep_api *api, const struct pep_http_server *server)
{
	api->server = server;
}

static struct pep_page *render_metrics(struct pep_api *api, enum pep_metrics_format format)
{
	struct pep_metrics_input input = {
		.up = pep_view_up(api->view),
		.info = pep_view_info(api->view),
		.totals = pep_view_totals(api->view),
		.workers = pep_view_workers(api->view),
		.monitor.render_ns = api->render_ns,
	};
	struct pep_http_counts counts;
	char *text = NULL;
	size_t size = 0;
	FILE *out;
	bool failed;

	if (api->server) {
		pep_http_server_counts(api->server, &counts);
		input.monitor.requests = counts.requests;
		input.monitor.connections = counts.connections;
		input.monitor.refused_connections = counts.refused_connections;
	}
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	pep_metrics_write(&input, format, out);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return pep_page_new(200, pep_metrics_content_type(format), text, size);
}

void pep_api_tick(struct pep_api *api)
{
	uint64_t start = pep_clock_mono_ns();

	pep_view_tick(api->view);
	forget(api);
	forget_metrics(api);
	api->render_ns = pep_clock_mono_ns() - start;
}

static struct pep_page *get_metrics(struct pep_api *api, const struct pep_http_request *request)
{
	int open = pep_http_accept_quality(request->accept, "application/openmetrics-text");
	int text = pep_http_accept_quality(request->accept, "text/plain");
	/* An Accept that names neither, such as star/star, gets the format that everything reads.
	 */
	bool openmetrics = strstr(request->accept, "openmetrics") && open > 0 && open >= text;
	enum pep_metrics_format format =
		openmetrics ? PEP_METRICS_FORMAT_OPENMETRICS : PEP_METRICS_FORMAT_PROMETHEUS;

	if (pep_view_refresh(api->view))
		forget_metrics(api);
	if (!api->metrics[format])
		api->metrics[format] = render_metrics(api, format);
	return api->metrics[format] ? pep_page_ref(api->metrics[format]) : NULL;
}

static struct pep_page *text_page(int status, const char *text)
{
	size_t length = strlen(text);
	char *copy = malloc(length + 2);

	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	memcpy(copy + length, "\n", 2);
	return pep_page_new(status, "text/plain; charset=utf-8", copy, length + 1);
}

static struct pep_page *get_status(struct pep_api *api)
{
	const char *unready = pep_view_unready(api->view);
	json_t *daemon = json_null();

	if (pep_view_up(api->view))
		daemon = pep_stats_status_json(pep_view_info(api->view), pep_view_totals(api->view),
					       pep_view_time_ns(api->view));
	return pep_page_new_json(
		200, json_pack("{s:b, s:b, s:b, s:s?, s:f, s:o, s:{s:s, s:f, s:f}}", "up",
			       (int)pep_view_up(api->view), "blind", (int)pep_view_blind(api->view),
			       "ready", unready == NULL, "reason", unready, "time",
			       (double)pep_view_time_ns(api->view) / 1e9, "daemon", daemon,
			       "monitor", "version", PACKAGE_VERSION, "uptime_seconds",
			       (double)(pep_clock_mono_ns() - api->start_ns) / 1e9,
			       "render_seconds", (double)api->render_ns / 1e9));
}

static struct pep_page *get_segments(struct pep_api *api, const struct pep_query *query)
{
	unsigned int seconds = query->seconds ? query->seconds : 1;
	struct pep_history_tick now;

	if (pep_view_refresh(api->view))
		forget_metrics(api);
	pep_view_now(api->view, &now);
	return pep_page_new_json(
		200, pep_history_segments_json(pep_view_history(api->view), &now, seconds));
}

static struct pep_page *get_history(struct pep_api *api, const struct pep_query *query)
{
	unsigned int seconds = query->seconds ? query->seconds : PEP_HISTORY_SECONDS;

	return pep_page_new_json(200, pep_history_json(pep_view_history(api->view), seconds));
}

struct closed_list {
	struct pep_api *api;
	const struct pep_flowset_query *query;
	struct pep_stats_flow *flows;
	size_t n, room;
};

static bool take_closed(const struct pep_stats_flow *flow, void *user)
{
	struct closed_list *list = user;

	if (list->query->by_client &&
	    memcmp(&flow->client, &list->query->client, sizeof(flow->client)) != 0)
		return true;
	memcpy(&list->flows[list->n++], (const void *)flow, sizeof(*flow));
	return list->n < list->room;
}

static int latest_first(const void *a, const void *b)
{
	const struct pep_stats_flow *x = a, *y = b;

	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static struct pep_page *get_closed(struct pep_api *api, const struct pep_query *query)
{
	struct closed_list list = {api, &query->flows, NULL, 0, 4096};
	json_t *array = json_array();

	list.flows = calloc(list.room, sizeof(*list.flows));
	if (!list.flows || !array) {
		free(list.flows);
		json_decref(array);
		return NULL;
	}
	if (pep_view_up(api->view))
		(void)pep_stats_each_closed(pep_view_reader(api->view), take_closed, &list);
	qsort(list.flows, list.n, sizeof(*list.flows), latest_first);
	for (size_t i = 0; i < list.n && i < query->flows.limit; i++)
		json_array_append_new(
			array, pep_stats_flow_json(&list.flows[i], pep_view_info(api->view), 0));
	free(list.flows);
	return pep_page_new_json(200, json_pack("{s:I, s:s, s:o}", "total", (json_int_t)list.n,
						"sort", "end", "flows", array));
}

static struct pep_page *get_flows(struct pep_api *api, const struct pep_query *query)
{
	if (query->closed)
		return get_closed(api, query);
	return pep_page_new_json(200, pep_flowset_json(pep_view_flows(api->view),
						       pep_view_info(api->view), &query->flows,
						       pep_view_time_ns(api->view)));
}

static struct pep_page *get_flow(struct pep_api *api, const char *id_text)
{
	struct pep_stats_flow flow;
	json_t *json;
	uint64_t id;

	if (pep_stats_flow_id_parse(id_text, &id) < 0)
		return pep_page_new_error(400, "flow: expected WORKER-NUMBER, as in 0-17");
	if (!pep_view_up(api->view) ||
	    pep_stats_read_flow(pep_view_reader(api->view), id, &flow) < 0)
		return pep_page_new_error(404, "no such flow, or it ended a while ago");
	json = pep_stats_flow_json(&flow, pep_view_info(api->view), pep_view_time_ns(api->view));
	if (json && json_object_set_new(json, "history",
					pep_flowset_history_json(pep_view_flows(api->view), id))) {
		json_decref(json);
		return NULL;
	}
	return pep_page_new_json(200, json);
}

static struct pep_page *get_asset(const char *path)
{
	if (strcmp(path, "/") == 0)
		path = "/index.html";
	for (const struct pep_asset *a = pep_assets; a->path; a++)
		if (strcmp(a->path, path) == 0)
			return pep_page_new_static(200, a->type, (const char *)a->data, a->size);
	return NULL;
}

enum endpoint {
	ENDPOINT_SEGMENTS,
	ENDPOINT_HISTORY,
	ENDPOINT_FLOWS,
	ENDPOINT_FLOW,
};

static const struct route {
	const char *path;
	enum endpoint endpoint;
	enum pep_query_set query;
	bool prefix;
} routes[] = {
	{"/api/v1/segments", ENDPOINT_SEGMENTS, PEP_QUERY_SECONDS, false},
	{"/api/v1/segments/history", ENDPOINT_HISTORY, PEP_QUERY_SECONDS, false},
	{"/api/v1/flows", ENDPOINT_FLOWS, PEP_QUERY_FLOWS, false},
	{"/api/v1/flows/", ENDPOINT_FLOW, PEP_QUERY_NONE, true},
};

static const struct route *find_route(const char *path)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const struct route *r = &routes[i];

		if (r->prefix ? strncmp(path, r->path, strlen(r->path)) == 0
			      : strcmp(path, r->path) == 0)
			return r;
	}
	return NULL;
}

static struct pep_page *render(struct pep_api *api, const struct route *route,
			       const struct pep_http_request *request)
{
	char why[PEP_QUERY_WHY_SIZE];
	struct pep_query query;

	if (pep_query_parse(request->query, route->query, &query, why) < 0)
		return pep_page_new_error(400, "%s", why);
	switch (route->endpoint) {
	case ENDPOINT_SEGMENTS:
		return get_segments(api, &query);
	case ENDPOINT_HISTORY:
		return get_history(api, &query);
	case ENDPOINT_FLOWS:
		return get_flows(api, &query);
	case ENDPOINT_FLOW:
		break;
	}
	return get_flow(api, request->path + strlen(route->path));
}

/* The answer rendered for this path and query since the last tick, or a new one. */
static struct pep_page *render_cached(struct pep_api *api, const struct route *route,
				      const struct pep_http_request *request)
{
	struct cached *c;
	struct pep_page *page;
	char key[sizeof(c->key)];

	snprintf(key, sizeof(key), "%s?%s", request->path, request->query);
	for (unsigned int i = 0; i < api->n_cached; i++)
		if (strcmp(api->cached[i].key, key) == 0)
			return pep_page_ref(api->cached[i].page);
	page = render(api, route, request);
	/* Segments are told as they are now, and cost next to nothing. */
	if (route->endpoint == ENDPOINT_SEGMENTS)
		return page;
	if (!page || page->status != 200 || api->n_cached == MAX_CACHED)
		return page;
	c = &api->cached[api->n_cached++];
	memcpy(c->key, key, sizeof(key));
	c->page = pep_page_ref(page);
	return page;
}

struct pep_page *pep_api_handle(const struct pep_http_request *request, void *user)
{
	struct pep_api *api = user;
	const char *path = request->path;
	const struct route *route;
	struct pep_page *page;

	if (strcmp(path, "/healthz") == 0)
		return text_page(200, "ok");
	page = get_asset(path);
	if (page)
		return page;

	/* Whether the daemon lives is told as it is now, not as it was up to a second ago. */
	if (pep_view_changed(api->view))
		pep_api_tick(api);
	if (strcmp(path, "/readyz") == 0) {
		const char *unready = pep_view_unready(api->view);

		return unready ? text_page(503, unready) : text_page(200, "ready");
	}
	if (strcmp(path, "/metrics") == 0)
		return get_metrics(api, request);
	if (strcmp(path, "/api/v1/status") == 0)
		return get_status(api);
	route = find_route(path);
	if (!route)
		return pep_page_new_error(404, "no such page; the API begins at /api/v1/status");
	return render_cached(api, route, request);
}
