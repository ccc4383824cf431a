/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One GET over HTTP/1.0: the answer ends with the connection. */
#include "ctl/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/listen_address.h"

#define PATIENCE_S 5
#define ANSWER_MAX (4u << 20)

/* Who listens everywhere is asked here. */
static void point_home(struct pep_listen_address *address)
{
	if (address->any.sa_family == AF_INET && address->v4.sin_addr.s_addr == htonl(INADDR_ANY))
		address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr))
		address->v6.sin6_addr = in6addr_loopback;
}

/* A connected socket or a negative errno. */
static int connect_to(const char *listen)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct pep_listen_address address;
	int fd, err = pep_listen_address_parse(listen, &address);

	if (err)
		return err;
	point_home(&address);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, &address.any, address.size) < 0) {
		err = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Reads until the end; *ret is allocated and ended by a zero byte. */
static int read_all(int fd, char **ret)
{
	size_t size = 0, room = 0;
	char *text = NULL, *grown;
	ssize_t n;

	for (;;) {
		if (room - size < 4096) {
			room += 65536;
			grown = room > ANSWER_MAX ? NULL : realloc(text, room);
			if (!grown) {
				free(text);
				return room > ANSWER_MAX ? -EPROTO : -ENOMEM;
			}
			text = grown;
		}
		n = recv(fd, text + size, room - size - 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			n = errno == EAGAIN ? -ETIMEDOUT : -errno;
			free(text);
			return (int)n;
		}
		if (n == 0)
			break;
		size += (size_t)n;
	}
	text[size] = '\0';
	*ret = text;
	return 0;
}

static int get(const char *listen, const char *path, char **ret)
{
	char request[256];
	int fd = connect_to(listen), err = 0, n;

	if (fd < 0)
		return fd;
	n = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
	if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (!err)
		err = read_all(fd, ret);
	close(fd);
	return err;
}

static int explain(const struct ctl *ctl, const char *listen, int err)
{
	if (err == -ECONNREFUSED || err == -ENOENT)
		return ctl_fail(ctl,
				"edgepep-mon, which keeps the histories, does not answer on '%s': "
				"start it with 'systemctl start edgepep-mon'",
				listen);
	if (err == -ETIMEDOUT)
		return ctl_fail(ctl, "edgepep-mon did not answer on '%s' within %d s", listen,
				PATIENCE_S);
	if (err == -EPROTO)
		return ctl_fail(ctl, "what answers on '%s' is no edgepep-mon of this version",
				listen);
	return ctl_fail(ctl, "'%s': %s", listen, strerror(-err));
}

/* Takes the answer apart. Returns the exit code. */
static int take_answer(const struct ctl *ctl, const char *listen, const char *answer, json_t **ret)
{
	const char *body = strstr(answer, "\r\n\r\n"), *error;
	json_t *object = body ? json_loads(body + 4, 0, NULL) : NULL;
	bool found = strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 200 ", 5) == 0;
	int code;

	if (!json_is_object(object)) {
		json_decref(object);
		return explain(ctl, listen, -EPROTO);
	}
	if (found) {
		*ret = object;
		return CTL_EXIT_OK;
	}
	error = json_string_value(json_object_get(object, "error"));
	code = ctl_fail(ctl, "%s", error ? error : "edgepep-mon refused without a reason");
	json_decref(object);
	return code;
}

int ctl_ask_monitor(const struct ctl *ctl, const char *path, json_t **ret)
{
	struct pep_conf *conf;
	char *answer;
	int code, err;

	code = ctl_load_conf(ctl, &conf);
	if (code)
		return code;
	err = get(conf->monitor.listen, path, &answer);
	if (err) {
		code = explain(ctl, conf->monitor.listen, err);
	} else {
		code = take_answer(ctl, conf->monitor.listen, answer, ret);
		free(answer);
	}
	pep_conf_free(conf);
	return code;
}
