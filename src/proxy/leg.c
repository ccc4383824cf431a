/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every socket keeps SO_LINGER {1, 0} until its orderly close: whatever ends the daemon, its flows
 * end with RST, and a cut transfer never looks complete.
 */
#include "proxy/leg.h"

#include "proxy/leg_internal.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

static int set_cca(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) < 0
		       ? -errno
		       : 0;
}

static int keep_first(int first, int err)
{
	return first ? first : err;
}

int pep_leg_setup_resolve(const struct pep_leg_conf *conf, struct pep_leg_setup *ret)
{
	static const char *const nearest[] = {"bbr", "cubic"};
	bool radio = strncmp(conf->congestion_control, "pep_", 4) == 0;
	int fd, err;

	*ret = (struct pep_leg_setup){.conf = *conf};
	if (!conf->congestion_control[0])
		return 0;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = set_cca(fd, conf->congestion_control);
	if (err) {
		ret->cca_fallback = true;
		ret->conf.congestion_control[0] = '\0';
		for (size_t i = radio ? 0 : 1; i < 2; i++) {
			if (set_cca(fd, nearest[i]) == 0) {
				strcpy(ret->conf.congestion_control, nearest[i]);
				break;
			}
		}
	}
	close(fd);
	return err;
}

static int set_keepalive(int fd, const struct pep_leg_conf *conf)
{
	int err;

	if (!conf->keepalive_idle_s)
		return leg_set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 0);
	err = leg_set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	err = keep_first(err,
			 leg_set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)conf->keepalive_idle_s));
	err = keep_first(
		err, leg_set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)conf->keepalive_interval_s));
	return keep_first(err,
			  leg_set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)conf->keepalive_count));
}

/* Everything of a leg's settings on a fresh socket. */
static int apply(int fd, const struct pep_leg_setup *setup)
{
	const struct pep_leg_conf *conf = &setup->conf;
	int err = 0;

	if (conf->congestion_control[0])
		err = set_cca(fd, conf->congestion_control);
	if (conf->keepalive_idle_s)
		err = keep_first(err, set_keepalive(fd, conf));
	if (conf->notsent_lowat_bytes)
		err = keep_first(err, leg_set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT,
						  (int)conf->notsent_lowat_bytes));
	if (conf->user_timeout_ms)
		err = keep_first(err, leg_set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
						  (int)conf->user_timeout_ms));
	if (conf->mss_bytes)
		err = keep_first(err,
				 leg_set_int(fd, IPPROTO_TCP, TCP_MAXSEG, (int)conf->mss_bytes));
	return err;
}

int pep_leg_reconfigure(int fd, const struct pep_leg_setup *from, const struct pep_leg_setup *to)
{
	const struct pep_leg_conf *a = &from->conf, *b = &to->conf;
	int err = 0;

	if (strcmp(a->congestion_control, b->congestion_control) != 0 && b->congestion_control[0])
		err = set_cca(fd, b->congestion_control);
	if (a->keepalive_idle_s != b->keepalive_idle_s ||
	    a->keepalive_interval_s != b->keepalive_interval_s ||
	    a->keepalive_count != b->keepalive_count)
		err = keep_first(err, set_keepalive(fd, b));
	if (a->notsent_lowat_bytes != b->notsent_lowat_bytes)
		err = keep_first(err, leg_set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT,
						  (int)b->notsent_lowat_bytes));
	if (a->user_timeout_ms != b->user_timeout_ms)
		err = keep_first(err, leg_set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
						  (int)b->user_timeout_ms));
	return err;
}

/* What the sockets of both legs have in common. */
static int set_common(int fd, uint32_t mark)
{
	struct linger abortive = {.l_onoff = 1, .l_linger = 0};
	int err;

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &abortive, sizeof(abortive)) < 0)
		return -errno;
	err = leg_set_int(fd, SOL_SOCKET, SO_MARK, (int)mark);
	/* Pieces are passed on as they come; the ends decided on their own about Nagle. */
	err = keep_first(err, leg_set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1));
	/* An urgent byte is one byte of the stream for us. */
	return keep_first(err, leg_set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1));
}

static int set_transparent(int fd, int family)
{
	if (family == AF_INET)
		return leg_set_int(fd, SOL_IP, IP_TRANSPARENT, 1);
	return leg_set_int(fd, SOL_IPV6, IPV6_TRANSPARENT, 1);
}

int pep_leg_listen(int family, uint16_t port, const struct pep_leg_setup *setup, uint32_t mark,
		   int backlog, int *ret_fd, const char **ret_step)
{
	struct in6_addr host = IN6ADDR_LOOPBACK_INIT;
	struct sockaddr_storage sa;
	socklen_t size;
	int fd, err;

	if (family == AF_INET) {
		static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

		memcpy(&host, mapped, sizeof(host));
	}
	*ret_step = "socket";
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;

	*ret_step = "SO_REUSEADDR";
	err = leg_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!err && family == AF_INET6)
		err = leg_set_int(fd, SOL_IPV6, IPV6_V6ONLY, 1);
	if (err)
		goto fail;
	*ret_step = "IP_TRANSPARENT (needs CAP_NET_ADMIN or CAP_NET_RAW)";
	err = set_transparent(fd, family);
	if (err)
		goto fail;
	*ret_step = "SO_MARK (needs CAP_NET_ADMIN)";
	err = set_common(fd, mark);
	if (err)
		goto fail;
	*ret_step = "socket options of 'leg wireless'";
	err = apply(fd, setup);
	if (err)
		goto fail;
	*ret_step = "bind";
	size = pep_endpoint_to_sockaddr(&host, port, &sa);
	if (bind(fd, (struct sockaddr *)&sa, size) < 0 || listen(fd, backlog) < 0) {
		err = -errno;
		goto fail;
	}
	*ret_fd = fd;
	return 0;

fail:
	close(fd);
	return err;
}

/* A socket for the wired leg, bound as @source wants it; @keep_port false takes any port. */
static int open_wired(const struct pep_leg_connect *request, bool keep_port, int *ret_fd,
		      int *ret_option_error)
{
	bool v4 = pep_tuple_is_v4(request->tuple);
	int family = v4 ? AF_INET : AF_INET6;
	struct sockaddr_storage sa;
	socklen_t size;
	int fd, err, option_error;

	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = set_common(fd, request->mark);
	if (err)
		goto fail;
	option_error = apply(fd, request->setup); /* tuning: the leg works without */
	if (request->dscp)
		option_error = keep_first(option_error, pep_leg_set_dscp(fd, v4, request->dscp));

	if (request->source == PEP_SOURCE_CLIENT) {
		err = leg_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
		err = keep_first(err, set_transparent(fd, family));
		if (!err && !keep_port)
			err = leg_set_int(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		if (err)
			goto fail;
		size = pep_endpoint_to_sockaddr(&request->tuple->client,
						keep_port ? request->tuple->client_port : 0, &sa);
		if (bind(fd, (struct sockaddr *)&sa, size) < 0) {
			err = -errno;
			goto fail;
		}
	}
	size = pep_endpoint_to_sockaddr(&request->tuple->server, request->tuple->server_port, &sa);
	if (connect(fd, (struct sockaddr *)&sa, size) < 0 && errno != EINPROGRESS) {
		err = -errno;
		goto fail;
	}
	*ret_fd = fd;
	*ret_option_error = option_error;
	return 0;

fail:
	close(fd);
	return err;
}

/* Errors that say "this address and port are taken", which another port cures. */
static bool is_port_conflict(int err)
{
	return err == -EADDRINUSE || err == -EADDRNOTAVAIL || err == -EACCES;
}

int pep_leg_connect(const struct pep_leg_connect *request, struct pep_leg_connected *ret)
{
	struct pep_leg_connected got = {.fd = -1};
	int err = open_wired(request, true, &got.fd, &got.option_error);

	if (request->source == PEP_SOURCE_CLIENT && is_port_conflict(err)) {
		err = open_wired(request, false, &got.fd, &got.option_error);
		got.port_fallback = true;
	}
	if (!err)
		*ret = got;
	return err;
}

int pep_leg_set_dscp(int fd, bool v4, uint8_t dscp)
{
	return v4 ? leg_set_int(fd, SOL_IP, IP_TOS, dscp << 2)
		  : leg_set_int(fd, SOL_IPV6, IPV6_TCLASS, dscp << 2);
}

int pep_leg_close_orderly(int fd)
{
	struct linger graceful = {0};
	int err = 0;

	if (fd < 0)
		return 0;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &graceful, sizeof(graceful)) < 0)
		err = -errno;
	close(fd);
	return err;
}

void pep_leg_close_abort(int fd)
{
	if (fd >= 0)
		close(fd);
}

int pep_leg_take_error(int fd)
{
	int err = 0;
	socklen_t size = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0)
		return errno;
	return err;
}

bool pep_leg_is_dead(int fd)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
	       info.tcpi_state == TCP_CLOSE;
}

uint32_t pep_leg_unacked_bytes(int fd)
{
	int bytes = 0;

	if (ioctl(fd, SIOCOUTQ, &bytes) < 0 || bytes < 0)
		return 0;
	return (uint32_t)bytes;
}

void pep_leg_cca_name(int fd, char name[PEP_CONF_NAME_SIZE])
{
	char text[PEP_CONF_NAME_SIZE + 1] = "";
	socklen_t size = PEP_CONF_NAME_SIZE;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &size) < 0)
		strcpy(text, "?");
	text[PEP_CONF_NAME_SIZE - 1] = '\0';
	memcpy(name, text, PEP_CONF_NAME_SIZE);
}
