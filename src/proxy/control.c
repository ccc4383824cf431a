/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A client is a bufferevent; while its request is being answered nothing more is read from it. A
 * request outlives its client: the answer then goes nowhere.
 */
#include "proxy/control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct client {
	struct pep_control *control;
	struct bufferevent *bev;
	struct event *deadline;              /* of the next whole request, or of writing the last */
	struct pep_control_request *request; /* being answered, or NULL */
	bool closing;                        /* after the output is written */
	LIST_ENTRY(client) link;
};

struct pep_control_request {
	struct client *client; /* NULL: gone */
	bool running;          /* inside its command: free only afterwards */
	bool answered;
};

struct pep_control {
	struct pep_control_params params;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct evconnlistener *listener;
	struct event *resume; /* accept() failed: the listener rests until then */
	LIST_HEAD(, client) clients;
	unsigned int n_clients;
};

static void serve(struct client *client);

static void client_free(struct client *client)
{
	if (client->request)
		client->request->client = NULL;
	LIST_REMOVE(client, link);
	client->control->n_clients--;
	if (client->deadline)
		event_free(client->deadline);
	bufferevent_free(client->bev);
	free(client);
}

/* A client has so long for each step; bytes that trickle in do not prolong it. */
static void client_set_deadline(struct client *client)
{
	const struct timeval idle = {.tv_sec = PEP_CONTROL_IDLE_SECONDS};

	(void)event_add(client->deadline, &idle);
}

static void client_send(struct client *client, json_t *reply)
{
	static const char no_memory[] = "{\"ok\":false,\"error\":\"out of memory\"}\n";
	char *text = json_dumps(reply, JSON_COMPACT);

	if (!text || bufferevent_write(client->bev, text, strlen(text)) < 0 ||
	    bufferevent_write(client->bev, "\n", 1) < 0)
		(void)send(bufferevent_getfd(client->bev), no_memory, sizeof(no_memory) - 1,
			   MSG_DONTWAIT | MSG_NOSIGNAL);
	free(text);
	json_decref(reply);
	client_set_deadline(client);
}

/* @text may quote a file or a user, and JSON must be UTF-8: other bytes become '?'. */
static json_t *failure(const char *text)
{
	json_t *reply = json_pack("{s:b, s:s}", "ok", 0, "error", text);
	char *ascii;

	if (reply)
		return reply;
	ascii = strdup(text);
	for (char *p = ascii; p && *p; p++)
		if ((unsigned char)*p > '~')
			*p = '?';
	reply = json_pack("{s:b, s:s}", "ok", 0, "error", ascii ? ascii : "out of memory");
	free(ascii);
	return reply;
}

static void client_refuse(struct client *client, const char *text)
{
	client_send(client, failure(text));
	client->closing = true;
	bufferevent_disable(client->bev, EV_READ);
}

/* -- answers --------------------------------------------------------------------------------------
 */

static void answer(struct pep_control_request *request, json_t *reply)
{
	struct client *client = request->client;

	request->answered = true;
	if (client) {
		client->request = NULL;
		client_send(client, reply);
		bufferevent_enable(client->bev, EV_READ);
	} else {
		json_decref(reply);
	}
	if (request->running)
		return;
	free(request);
	if (client)
		serve(client);
}

void pep_control_ok(struct pep_control_request *request, json_t *reply)
{
	json_t *whole = json_pack("{s:b}", "ok", 1);

	if (reply)
		json_object_update(whole, reply);
	json_decref(reply);
	answer(request, whole);
}

void pep_control_fail(struct pep_control_request *request, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	answer(request, failure(text));
}

/* -- requests -------------------------------------------------------------------------------------
 */

int pep_control_split(char *line, char *words[PEP_CONTROL_MAX_WORDS])
{
	int n = 0;

	for (char *p = line; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || (unsigned char)*p > '~')
			return -EINVAL;
	for (char *word = strtok_r(line, " \t", &line); word; word = strtok_r(NULL, " \t", &line)) {
		if (n == PEP_CONTROL_MAX_WORDS)
			return -E2BIG;
		words[n++] = word;
	}
	return n;
}

/* How many words of @name the request begins with, all of them; 0 for no match. */
static int match_name(const char *name, int n_words, char **words)
{
	int used = 0;

	while (*name) {
		size_t length = strcspn(name, " ");

		if (used == n_words || strlen(words[used]) != length ||
		    strncmp(words[used], name, length) != 0)
			return 0;
		used++;
		name += length;
		name += strspn(name, " ");
	}
	return used;
}

const struct pep_control_command *pep_control_find(const struct pep_control_command *commands,
						   int n_words, char **words, int *ret_used)
{
	const struct pep_control_command *best = NULL;
	int best_used = 0;

	for (const struct pep_control_command *c = commands; c->name; c++) {
		int used = match_name(c->name, n_words, words);

		if (used > best_used) {
			best = c;
			best_used = used;
		}
	}
	if (best)
		*ret_used = best_used;
	return best;
}

static void run_command(struct client *client, const struct pep_control_command *command, int argc,
			char **argv)
{
	struct pep_control_request *request = calloc(1, sizeof(*request));

	if (!request) {
		client_send(client, failure("out of memory"));
		return;
	}
	request->client = client;
	request->running = true;
	client->request = request;
	(void)event_del(client->deadline); /* we take the time now */
	bufferevent_disable(client->bev, EV_READ);
	command->run(request, argc, argv, client->control->params.context);
	request->running = false;
	if (request->answered)
		free(request);
}

static void handle_line(struct client *client, char *line)
{
	const struct pep_control_command *commands = client->control->params.commands, *command;
	char *words[PEP_CONTROL_MAX_WORDS], text[256];
	int n = pep_control_split(line, words), used = 0;

	if (n == 0)
		return;
	if (n < 0) {
		client_refuse(client, n == -E2BIG ? "too many words in the request"
						  : "the request is not printable ASCII");
		return;
	}
	command = pep_control_find(commands, n, words, &used);
	if (!command) {
		snprintf(text, sizeof(text), "unknown request '%.64s'", words[0]);
		client_send(client, failure(text));
	} else if (n - used < command->min_args || n - used > command->max_args) {
		snprintf(text, sizeof(text), "usage: %s %s", command->name, command->args);
		client_send(client, failure(text));
	} else {
		run_command(client, command, n - used, words + used);
	}
}

/* Handles complete lines until one waits for its answer. */
static void serve(struct client *client)
{
	struct evbuffer *input = bufferevent_get_input(client->bev);
	size_t length;
	char *line;

	while (!client->closing && !client->request) {
		line = evbuffer_readln(input, &length, EVBUFFER_EOL_CRLF);
		if (!line)
			break;
		if (strlen(line) != length)
			client_refuse(client, "the request is not printable ASCII");
		else if (length >= PEP_CONTROL_LINE_BYTES)
			client_refuse(client, "request too long");
		else
			handle_line(client, line);
		free(line);
	}
	if (!client->closing && !client->request &&
	    evbuffer_get_length(input) >= PEP_CONTROL_LINE_BYTES)
		client_refuse(client, "request too long");
}

/* -- clients --------------------------------------------------------------------------------------
 */

static void on_read(struct bufferevent *bev, void *data)
{
	(void)bev;
	serve(data);
}

static void on_written(struct bufferevent *bev, void *data)
{
	struct client *client = data;

	(void)bev;
	if (client->closing)
		client_free(client);
}

static void on_client_event(struct bufferevent *bev, short what, void *data)
{
	struct client *client = data;

	(void)what;
	/* Half-closed after its last request: the answer still goes out. */
	if ((what & BEV_EVENT_EOF) &&
	    (client->request || evbuffer_get_length(bufferevent_get_output(bev)) > 0)) {
		client->closing = client->request == NULL;
		bufferevent_disable(bev, EV_READ);
		return;
	}
	client_free(client);
}

static void on_deadline(evutil_socket_t fd, short what, void *data)
{
	struct client *client = data;

	(void)fd;
	(void)what;
	if (client->closing)
		client_free(client);
	else
		client_refuse(client, "no whole request in time");
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *sa,
		      int length, void *data)
{
	struct event_base *base = evconnlistener_get_base(listener);
	struct pep_control *control = data;
	struct client *client = calloc(1, sizeof(*client));

	(void)sa;
	(void)length;
	if (client)
		client->deadline = evtimer_new(base, on_deadline, client);
	if (client && client->deadline)
		client->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!client || !client->bev) {
		if (client && client->deadline)
			event_free(client->deadline);
		free(client);
		evutil_closesocket(fd);
		return;
	}
	client->control = control;
	LIST_INSERT_HEAD(&control->clients, client, link);
	control->n_clients++;
	bufferevent_setcb(client->bev, on_read, on_written, on_client_event, client);
	/* No high watermark: libevent 2.1 follows a null pointer when it has no memory for one. */
	(void)bufferevent_set_max_single_read(client->bev, PEP_CONTROL_LINE_BYTES);
	client_set_deadline(client);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
	if (control->n_clients > PEP_CONTROL_MAX_CLIENTS)
		client_refuse(client, "too many control clients");
}

/* No descriptor or memory: the client waits in the backlog, and we do not spin. */
static void on_accept_error(struct evconnlistener *listener, void *data)
{
	const struct timeval rest = {.tv_usec = 200000};
	struct pep_control *control = data;

	if (event_add(control->resume, &rest) == 0)
		evconnlistener_disable(listener);
}

static void on_resume(evutil_socket_t fd, short what, void *data)
{
	struct pep_control *control = data;

	(void)fd;
	(void)what;
	evconnlistener_enable(control->listener);
}

/* -- the socket -----------------------------------------------------------------------------------
 */

/* Whether somebody listens behind an existing socket file. */
static bool is_alive(const struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool alive = fd >= 0 && (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 ||
				 errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return alive;
}

static int open_socket(const struct pep_control_params *params, int *ret_fd)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	mode_t before;
	int fd, err = 0;

	if (strlen(params->path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	strcpy(sa.sun_path, params->path);
	if (is_alive(&sa))
		return -EADDRINUSE;
	if (unlink(params->path) < 0 && errno != ENOENT)
		return -errno;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	before = umask(0117); /* 0660 from the first moment */
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 16) < 0)
		err = -errno;
	umask(before);
	if (!err && params->gid != (gid_t)-1 && chown(params->path, (uid_t)-1, params->gid) < 0)
		err = -errno;
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

int pep_control_new(struct event_base *base, const struct pep_control_params *params,
		    struct pep_control **ret)
{
	struct pep_control *control = calloc(1, sizeof(*control));
	int fd = -1, err;

	if (!control)
		return -ENOMEM;
	LIST_INIT(&control->clients);
	control->params = *params;
	err = open_socket(params, &fd);
	if (err) {
		free(control);
		return err;
	}
	strcpy(control->path, params->path);
	control->params.path = control->path;
	control->listener = evconnlistener_new(
		base, on_accept, control, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!control->listener) {
		close(fd);
		pep_control_free(control);
		return -ENOMEM;
	}
	control->resume = evtimer_new(base, on_resume, control);
	if (!control->resume) {
		pep_control_free(control);
		return -ENOMEM;
	}
	evconnlistener_set_error_cb(control->listener, on_accept_error);
	*ret = control;
	return 0;
}

void pep_control_free(struct pep_control *control)
{
	struct client *client;

	if (!control)
		return;
	while ((client = LIST_FIRST(&control->clients)))
		client_free(client);
	if (control->resume)
		event_free(control->resume);
	if (control->listener)
		evconnlistener_free(control->listener);
	unlink(control->path);
	free(control);
}
