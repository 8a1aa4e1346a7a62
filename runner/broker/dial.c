/* SPDX-License-Identifier: MIT
 *
 * dial: from a decision to a connection with the upstream: one look-up, and
 * the address that was checked is the address that is dialled. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "runner/broker/conn.h"

static void ready(struct watch *w, uint32_t events);

static void go_on(struct conn *c)
{
	if (c->req->rule->tls == POLICY_PASSTHROUGH)
		conn_enter(c, CONN_TUNNEL);
	else
		exchange_begin(c);
}

/* The connection of the last request, if it is to the same and was not closed
 * since; bytes that nobody asked for spoil it. */
static bool is_warm(struct conn *c)
{
	const struct request *r = c->req;
	uint8_t byte;
	if (!side_is_open(&c->up) || c->up.eof || c->up.broken ||
	    c->up.in.len || c->up_tls != r->ask.tls ||
	    c->up_port != r->ask.port || !host_same(&c->up_host, &r->host))
		return false;
	/* where it cannot be sent twice, one is asked once more */
	if (!c->up.ready && (r->holds || r->from.framing == HTTP_NONE))
		return true;
	ssize_t n = recv(c->up.watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n < 0 && errno == EAGAIN;
}

static void connect_next(struct conn *c);

void dial_begin(struct conn *c)
{
	struct request *r = c->req;
	if (is_warm(c)) {
		r->warm = true;
		go_on(c);
		return;
	}
	side_close(&c->up);
	c->up_text[0] = 0;
	c->up_seen = 0;
	c->up_host = r->host;
	c->up_port = r->ask.port;
	c->up_tls = r->ask.tls;
	r->warm = false;
	if (r->host.kind == HOST_NAME) {
		conn_enter(c, CONN_LOOKUP);
		if (resolve_start(c->id, &r->host, r->rule->place.local) < 0)
			answer_fail(c, 503, "out of memory");
		return;
	}
	struct resolved found;
	resolve_literal(&found, &r->host, r->rule->place.local);
	conn_looked_up(c, &found);
}

void conn_looked_up(struct conn *c, const struct resolved *found)
{
	c->addrs = *found;
	c->addr_at = 0;
	if (found->n)
		connect_next(c);
	else if (found->refused != ADDR_PUBLIC)
		answer_deny(c, 403, "its name leads to %s, which is refused",
			    addr_class_word(found->refused));
	else
		answer_fail(c, 502, "cannot find it: %s",
			    found->why ? found->why : "it has no address");
}

/* Begins one connection.  -1: this address is none. */
static int try_address(struct conn *c, const struct addr *a)
{
	struct sockaddr_storage ss;
	int one = 1;
	socklen_t size = addr_to(&ss, a, c->up_port);
	int fd = socket(a->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);
	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	addr_text(c->up_text, a);
	c->up = (struct side){ .watch = { .fd = -1, .ready = ready },
			       .ready = true };
	if ((connect(fd, (struct sockaddr *)&ss, size) < 0 &&
	     errno != EINPROGRESS) ||
	    watch_add(&c->up.watch, c->b->epfd, fd, EPOLLOUT) < 0) {
		int sys = errno;
		close(fd);
		errno = sys;
		return -1;
	}
	return 0;
}

static void connect_next(struct conn *c)
{
	errno = 0;
	while (c->addr_at < c->addrs.n) {
		if (try_address(c, &c->addrs.addr[c->addr_at++]) == 0) {
			conn_enter(c, CONN_DIAL);
			return;
		}
	}
	answer_fail(c, 502, "cannot connect to it: %s",
		    errno ? strerror(errno) : "no answer");
}

static void start_tls(struct conn *c)
{
	c->up.tls = tls_connect(c->up.watch.fd, c->up_host.name,
				c->up_host.kind != HOST_NAME);
	if (c->up.tls)
		conn_enter(c, CONN_UPSHAKE);
	else
		answer_fail(c, 503, "out of memory");
}

/* The socket is writable, or failed, or neither so far. */
bool dial_step(struct conn *c)
{
	int sys = 0;
	socklen_t size = sizeof sys;
	struct sockaddr_storage peer;
	socklen_t peer_size = sizeof peer;
	getsockopt(c->up.watch.fd, SOL_SOCKET, SO_ERROR, &sys, &size);
	if (sys == 0 && getpeername(c->up.watch.fd, (struct sockaddr *)&peer,
				    &peer_size) < 0)
		return false;
	if (sys) {
		side_close(&c->up);
		if (c->addr_at < c->addrs.n)
			connect_next(c);
		else
			answer_fail(c, 502, "cannot connect to it: %s",
				    strerror(sys));
		return true;
	}
	if (c->req->ask.tls && c->req->rule->tls != POLICY_PASSTHROUGH)
		start_tls(c);
	else
		go_on(c);
	return true;
}

bool dial_shake(struct conn *c)
{
	int rc = tls_handshake(c->up.tls);
	if (rc == 0)
		return false;
	if (rc > 0)
		go_on(c);
	else if (tls_only_h2(c->up.tls))
		answer_deny(c, 502, "this host speaks HTTP/2 only, which is "
			    "not looked into; passthrough would carry it");
	else
		answer_fail(c, 502, "%s", tls_why(c->up.tls));
	return true;
}

static void ready(struct watch *w, uint32_t events)
{
	struct side *s = (struct side *)w;
	struct conn *c = (struct conn *)((char *)s -
					 offsetof(struct conn, up));
	side_seen(s, events);
	if (events & EPOLLERR && c->state != CONN_DIAL)
		s->broken = true;
	/* its end, or what nobody asked for */
	if (c->state == CONN_HEAD || c->state == CONN_HOLD)
		side_close(s);
	conn_work(c);
}
