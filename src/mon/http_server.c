/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection is in one state at a time: it reads one request, writes one answer, or lingers after
 * its last answer so that the client gets it although it is still sending.
 */
#include "mon/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_LISTENERS 8
#define LINGER_MS     1000
#define RETRY_MS      100 /* after accept() failed for want of a descriptor */

const struct pep_http_limits pep_http_default_limits = {
	.connections = 128,
	.head_ms = 5000,
	.idle_ms = 30000,
	.write_ms = 10000,
};

enum state {
	STATE_READING,
	STATE_WRITING,
	STATE_LINGERING
};

struct connection {
	TAILQ_ENTRY(connection) entry; /* in the list of its state: readers, or others */
	struct pep_http_server *server;
	struct bufferevent *bev;
	struct event *deadline;
	enum state state;
	size_t skip;      /* bytes of a body still to be thrown away */
	bool head_begun;  /* bytes of the next request have come */
	bool close_after; /* no further request after this answer */
	bool eof;         /* the client sends nothing more */
};

TAILQ_HEAD(connection_list, connection);

struct pep_http_server {
	struct event_base *base;
	struct pep_http_limits limits;
	pep_http_handler *handler;
	void *user;
	struct evconnlistener *listeners[MAX_LISTENERS];
	unsigned int n_listeners;
	struct event *retry;
	struct connection_list readers; /* longest waiting first */
	struct connection_list others;
	struct pep_http_counts counts;
};

static void read_requests(struct connection *c);

static struct timeval ms(unsigned int n)
{
	return (struct timeval){.tv_sec = n / 1000, .tv_usec = (suseconds_t)(n % 1000) * 1000};
}

static void connection_free(struct connection *c)
{
	if (!c)
		return;
	TAILQ_REMOVE(c->state == STATE_READING ? &c->server->readers : &c->server->others, c,
		     entry);
	c->server->counts.connections--;
	if (c->deadline)
		event_free(c->deadline);
	if (c->bev)
		bufferevent_free(c->bev);
	free(c);
}

static void set_state(struct connection *c, enum state state, unsigned int deadline_ms)
{
	struct pep_http_server *s = c->server;
	struct timeval tv = ms(deadline_ms);

	TAILQ_REMOVE(c->state == STATE_READING ? &s->readers : &s->others, c, entry);
	c->state = state;
	TAILQ_INSERT_TAIL(state == STATE_READING ? &s->readers : &s->others, c, entry);
	event_add(c->deadline, &tv);
}

static const char common_headers[] =
	"Cache-Control: no-store\r\n"
	"X-Content-Type-Options: nosniff\r\n"
	"Referrer-Policy: no-referrer\r\n"
	"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
	"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
	"frame-ancestors 'none'\r\n";

static void page_sent(const void *data, size_t size, void *page)
{
	(void)data;
	(void)size;
	pep_page_unref(page);
}

/* Takes the reference to @page. */
static void send_page(struct connection *c, struct pep_page *page, bool head)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	struct pep_page *answer = page ? page : pep_page_new_error(500, "out of memory");

	if (!answer) {
		connection_free(c);
		return;
	}
	bufferevent_disable(c->bev, EV_READ); /* the next request waits its turn in the socket */
	set_state(c, STATE_WRITING, c->server->limits.write_ms);
	evbuffer_add_printf(out,
			    "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			    "Vary: Accept\r\n%s%s%s\r\n",
			    answer->status, pep_http_reason(answer->status), answer->type,
			    answer->size, common_headers,
			    answer->status == 405 ? "Allow: GET, HEAD\r\n" : "",
			    c->close_after ? "Connection: close\r\n" : "");
	if (head || answer->size == 0 ||
	    evbuffer_add_reference(out, answer->data, answer->size, page_sent, answer) < 0)
		pep_page_unref(answer);
}

static void send_status(struct connection *c, int status, const char *why)
{
	c->close_after = true;
	c->server->counts.requests++;
	send_page(c, pep_page_new_error(status, "%s", why), false);
}

static const char *explain(int status)
{
	switch (status) {
	case 405:
		return "only GET and HEAD are served";
	case 408:
		return "the request took too long";
	case 411:
		return "a request with a body must tell its length";
	case 413:
		return "the request's body is too long";
	case 414:
		return "the request's target is too long";
	case 431:
		return "the request's headers are too long or too many";
	case 505:
		return "only HTTP/1.0 and HTTP/1.1 are spoken";
	default:
		return "not a well-formed HTTP request";
	}
}

static void read_one_request(struct connection *c, struct evbuffer *in)
{
	size_t have = evbuffer_get_length(in);
	struct pep_http_request request;
	int n;

	if (have > PEP_HTTP_MAX_HEAD)
		have = PEP_HTTP_MAX_HEAD;
	n = pep_http_parse((const char *)evbuffer_pullup(in, (ev_ssize_t)have), have, &request);
	if (n < 0) {
		send_status(c, -n, explain(-n));
		return;
	}
	if (n == 0) {
		/* The clock of a head starts with its first byte and is not wound again. */
		if (!c->head_begun) {
			struct timeval tv = ms(c->server->limits.head_ms);

			c->head_begun = true;
			event_add(c->deadline, &tv);
		}
		return;
	}
	evbuffer_drain(in, (size_t)n);
	c->head_begun = false;
	c->skip = request.body_length;
	c->close_after = !request.keep_alive;
	c->server->counts.requests++;
	send_page(c, c->server->handler(&request, c->server->user), request.head);
}

static void read_requests(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	size_t have = evbuffer_get_length(in);

	if (c->skip) {
		size_t n = have < c->skip ? have : c->skip;

		evbuffer_drain(in, n);
		c->skip -= n;
		have -= n;
	}
	if (have > 0)
		read_one_request(c, in);
	else if (c->eof)
		connection_free(c);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct connection *c = arg;

	switch (c->state) {
	case STATE_READING:
		read_requests(c);
		break;
	case STATE_LINGERING:
		evbuffer_drain(bufferevent_get_input(bev), SIZE_MAX);
		break;
	case STATE_WRITING:
		break;
	}
}

static void linger(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);

	if (c->eof || shutdown(bufferevent_getfd(c->bev), SHUT_WR) < 0) {
		connection_free(c);
		return;
	}
	evbuffer_drain(in, SIZE_MAX);
	set_state(c, STATE_LINGERING, LINGER_MS);
	bufferevent_enable(c->bev, EV_READ);
}

/* The whole answer has been taken by the socket. */
static void on_written(struct bufferevent *bev, void *arg)
{
	struct connection *c = arg;

	if (c->state != STATE_WRITING || evbuffer_get_length(bufferevent_get_output(bev)) > 0)
		return;
	if (c->close_after) {
		linger(c);
		return;
	}
	set_state(c, STATE_READING, c->server->limits.idle_ms);
	bufferevent_enable(bev, EV_READ);
	read_requests(c);
}

static void on_event(struct bufferevent *bev, short events, void *arg)
{
	struct connection *c = arg;

	(void)bev;
	if ((events & BEV_EVENT_EOF) && c->state == STATE_WRITING) {
		c->eof = true; /* `printf 'GET ...' | nc -N`: it still wants the answer */
		return;
	}
	connection_free(c);
}

/* Some of the answer went out: it has the full time again for the rest. */
static void on_output_drained(struct evbuffer *buffer, const struct evbuffer_cb_info *info,
			      void *arg)
{
	struct connection *c = arg;
	struct timeval tv = ms(c->server->limits.write_ms);

	(void)buffer;
	if (info->n_deleted > 0 && c->state == STATE_WRITING)
		event_add(c->deadline, &tv);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	(void)fd;
	(void)what;
	if (c->state == STATE_READING && c->head_begun)
		send_status(c, 408, explain(408));
	else
		connection_free(c);
}

/* False when every connection is busy with an answer. */
static bool make_room(struct pep_http_server *s)
{
	if (s->counts.connections < s->limits.connections)
		return true;
	if (TAILQ_EMPTY(&s->readers))
		return false;
	connection_free(TAILQ_FIRST(&s->readers));
	return true;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
		      int length, void *arg)
{
	struct pep_http_server *s = arg;
	struct connection *c;
	struct timeval tv = ms(s->limits.idle_ms);

	(void)listener;
	(void)addr;
	(void)length;
	if (!make_room(s)) {
		s->counts.refused_connections++;
		close(fd);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return;
	}
	c->server = s;
	TAILQ_INSERT_TAIL(&s->readers, c, entry);
	s->counts.connections++;

	c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	c->deadline = evtimer_new(s->base, on_deadline, c);
	if (!c->bev || !c->deadline) {
		if (!c->bev)
			close(fd);
		connection_free(c);
		return;
	}
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, PEP_HTTP_MAX_HEAD);
	evbuffer_add_cb(bufferevent_get_output(c->bev), on_output_drained, c);
	event_add(c->deadline, &tv);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct pep_http_server *s = arg;

	(void)fd;
	(void)what;
	for (unsigned int i = 0; i < s->n_listeners; i++)
		evconnlistener_enable(s->listeners[i]);
}

/* Without descriptors the socket stays readable: wait instead of spinning. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct pep_http_server *s = arg;
	struct timeval tv = ms(RETRY_MS);

	s->counts.refused_connections++;
	evconnlistener_disable(listener);
	event_add(s->retry, &tv);
}

int pep_http_server_new(struct event_base *base, const struct pep_http_limits *limits,
			pep_http_handler *handler, void *user, struct pep_http_server **ret)
{
	struct pep_http_server *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->base = base;
	s->limits = *limits;
	s->handler = handler;
	s->user = user;
	TAILQ_INIT(&s->readers);
	TAILQ_INIT(&s->others);
	s->retry = evtimer_new(base, on_retry, s);
	if (!s->retry) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void pep_http_server_free(struct pep_http_server *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < s->n_listeners; i++)
		evconnlistener_free(s->listeners[i]);
	while (!TAILQ_EMPTY(&s->readers))
		connection_free(TAILQ_FIRST(&s->readers));
	while (!TAILQ_EMPTY(&s->others))
		connection_free(TAILQ_FIRST(&s->others));
	event_free(s->retry);
	free(s);
}

int pep_http_server_listen(struct pep_http_server *s, int fd)
{
	struct evconnlistener *listener;

	if (s->n_listeners == MAX_LISTENERS)
		return -ENOSPC;
	if (evutil_make_socket_nonblocking(fd) < 0)
		return -errno;
	listener = evconnlistener_new(s->base, on_accept, s,
				      LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, fd);
	if (!listener)
		return -ENOMEM;
	evconnlistener_set_error_cb(listener, on_accept_error);
	s->listeners[s->n_listeners++] = listener;
	return 0;
}

void pep_http_server_counts(const struct pep_http_server *server, struct pep_http_counts *ret)
{
	*ret = server->counts;
}
