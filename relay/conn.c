/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "relay/reply.h"
#include "relay/route.h"
#include "relay/stream.h"

#define HEAD_MS 10000
#define IDLE_MS 60000
#define CROWDED_MS 1000
#define BODY_WINDOW_MS 30000
#define BODY_WINDOW_BYTES (30u * 1000)
#define DRAIN_MS 1000
#define DRAIN_BYTES (256u * 1024)
#define SLICE (128u * 1024)
#define SLICE_ALONE (2048u * 1024)	/* where nobody else waits */

struct conn *conn_new(struct loop *l, int fd, const struct addr *peer,
		      bool tls)
{
	if ((size_t)fd >= l->by_fd_n) {
		size_t n = (size_t)fd * 2 + 64;
		struct conn **p = realloc(l->by_fd, n * sizeof *p);
		if (!p)
			return NULL;
		memset(p + l->by_fd_n, 0, (n - l->by_fd_n) * sizeof *p);
		l->by_fd = p;
		l->by_fd_n = n;
	}
	struct conn *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	if (tls && !(c->tls = tls_new(fd))) {
		free(c);
		return NULL;
	}
	if (++l->generation == 0)
		l->generation = 1;
	c->loop = l;
	c->fd = fd;
	c->file = -1;
	c->peer = *peer;
	c->generation = l->generation;
	c->deadline_ms = l->now_ms + HEAD_MS;
	c->armed = EPOLLIN | EPOLLRDHUP;
	struct epoll_event ev = {
		.events = c->armed,
		.data.u64 = (uint64_t)c->generation << 32 | (uint32_t)fd };
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		tls_free(c->tls);
		free(c);
		return NULL;
	}
	c->next = l->conns;
	if (c->next)
		c->next->prev = c;
	l->conns = c;
	l->by_fd[fd] = c;
	return c;
}

void conn_arm(struct conn *c, uint32_t events)
{
	struct epoll_event ev = {
		.events = events,
		.data.u64 = (uint64_t)c->generation << 32 | (uint32_t)c->fd };
	if (c->armed == events || c->state == CONN_DEAD)
		return;
	c->armed = events;
	epoll_ctl(c->loop->epfd, EPOLL_CTL_MOD, c->fd, &ev);
}

static void end_request(struct conn *c)
{
	struct req *r = c->req;
	if (!r)
		return;
	upload_free(c);
	state_unref(r->session);
	buf_free(&r->body);
	free(r);
	c->req = NULL;
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
}

void conn_close(struct conn *c)
{
	struct loop *l = c->loop;
	if (c->state == CONN_DEAD)
		return;
	stream_end(c);
	end_request(c);
	c->state = CONN_DEAD;
	l->by_fd[c->fd] = NULL;
	tls_free(c->tls);
	close(c->fd);
	if (c->prev)
		c->prev->next = c->next;
	else
		l->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->next = l->dead;
	l->dead = c;
}

void conn_free(struct conn *c)
{
	buf_free(&c->in);
	buf_free(&c->out);
	free(c);
}

/* ---- output ---- */

ssize_t conn_send(struct conn *c, const void *p, size_t n, int flags)
{
	if (c->tls)
		return tls_send(c->tls, p, n);
	return send(c->fd, p, n, MSG_NOSIGNAL | flags);
}

/* 1: sent, 0: would block, -1: broken */
static int send_out(struct conn *c)
{
	int more = c->file_left || (c->req && c->req->listing) ? MSG_MORE : 0;
	while (c->out_at < c->out.len) {
		ssize_t n = conn_send(c, c->out.data + c->out_at,
				      c->out.len - c->out_at, more);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		c->out_at += (size_t)n;
		c->deadline_ms = c->loop->now_ms + STALL_MS;
	}
	buf_reset(&c->out);
	c->out_at = 0;
	return 1;
}

/* One slice a turn, so that a large file holds up nobody. */
static int send_file(struct conn *c)
{
	off_t at = c->file_at;
	size_t most = c->loop->ready == 1 && !c->loop->active && !c->tls ?
		      SLICE_ALONE : SLICE;
	size_t want = c->file_left < most ? (size_t)c->file_left : most;
	ssize_t n;
	if (c->tls) {
		n = pread(c->file, c->loop->scratch, want, at);
		if (n > 0)
			n = tls_send(c->tls, c->loop->scratch, (size_t)n);
	} else {
		n = sendfile(c->fd, c->file, &at, want);
	}
	if (n == 0)
		return -1;
	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	c->file_at += n;
	c->file_left -= (uint64_t)n;
	c->deadline_ms = c->loop->now_ms + STALL_MS;
	return c->file_left ? 0 : 1;
}

/* A proxy passes an answer on only after what it was sending; it is our own
 * operator's, and may go on for a while. */
static bool is_proxy(const struct conn *c)
{
	return addr_set_has(&c->loop->st->limits.proxies, &c->peer);
}

static void drain(struct conn *c)
{
	if (c->tls)
		tls_shutdown(c->tls);
	shutdown(c->fd, SHUT_WR);
	end_request(c);
	c->state = CONN_DRAIN;
	c->moved = 0;
	c->deadline_ms = c->loop->now_ms + DRAIN_MS * (is_proxy(c) ? 10 : 1);
	conn_arm(c, EPOLLIN | EPOLLRDHUP);
}

/* The answer is out. */
static void sent(struct conn *c)
{
	if (c->close) {
		drain(c);
		return;
	}
	end_request(c);
	c->state = CONN_HEAD;
	c->seen = 0;
	c->deadline_ms = c->loop->now_ms + IDLE_MS;
	conn_arm(c, EPOLLIN | EPOLLRDHUP);
}

static void send_answer(struct conn *c)
{
	int rc = send_out(c);
	if (rc > 0 && c->file_left)
		rc = send_file(c);
	if (rc > 0 && c->req && c->req->listing) {
		rc = reply_listing_more(c);
		if (rc == 0)
			rc = send_out(c);
		if (rc > 0 && c->req->listing)
			rc = 0;		/* the rest in later turns */
	}
	if (rc < 0)
		conn_close(c);
	else if (rc == 0)
		conn_arm(c, EPOLLOUT);
	else
		sent(c);
}

/* ---- input ---- */

static void eat(struct conn *c, size_t n)
{
	c->src.p += n;
	c->src.n -= n;
}

static void read_head(struct conn *c)
{
	struct http_fault f;
	struct http_head h;
	if (c->seen == 0)
		c->deadline_ms = c->loop->now_ms + HEAD_MS;
	long size = http_head_end(c->src.p, c->src.n, HTTP_HEAD_MAX, &c->seen,
				  &f);
	if (size == 0)
		return;
	if (size < 0 || http_head_parse(&h, c->src.p, (size_t)size, &f) < 0) {
		reply_error(c, f.status, "bad_request", f.why);
		eat(c, c->src.n);
		return;
	}
	c->req = calloc(1, sizeof *c->req);
	if (!c->req) {
		conn_close(c);
		return;
	}
	c->close = !h.keep_alive;
	c->req->method = h.method;
	c->req->began_ms = c->loop->now_ms;
	c->req->client = c->peer;
	c->req->http10 = h.http10;
	c->req->chunked = h.chunked;
	c->req->has_length = !h.chunked;
	c->req->left = h.length;
	c->req->expect = h.expect && (h.chunked || h.length);
	c->state = CONN_BODY;
	c->moved = 0;
	c->deadline_ms = c->loop->now_ms + BODY_WINDOW_MS;
	route_begin(c, &h);
	eat(c, h.size);
	c->seen = 0;
	if (c->state == CONN_BODY && c->src.n == 0)
		reply_continue(c);
}

static void take_data(struct conn *c, struct bytes run)
{
	struct req *r = c->req;
	c->moved += run.n;
	if (run.n == 0)
		return;
	if (r->route->data) {
		r->route->data(c, run);
	} else if (r->body.len + run.n > r->route->cap) {
		reply_error(c, 413, "too_large", "the body is too large");
	} else {
		buf_add(&r->body, run.p, run.n);
	}
}

static void end_body(struct conn *c)
{
	c->state = CONN_WAIT;
	if (buf_failed(&c->req->body))
		reply_error(c, 503, "unavailable", "out of memory");
	else
		c->req->route->end(c);
}

static void read_body(struct conn *c)
{
	struct req *r = c->req;
	struct bytes run = c->src;
	bool ended;
	if (r->chunked) {
		size_t used;
		int rc = http_chunks_read(&r->chunks, c->src.p, c->src.n,
					  &used, &run);
		if (rc < 0) {
			reply_error(c, 400, "bad_request", "malformed chunk");
			return;
		}
		eat(c, used);
		ended = rc == 1;
	} else {
		if (run.n > r->left)
			run.n = (size_t)r->left;
		eat(c, run.n);
		r->left -= run.n;
		ended = r->left == 0;
	}
	take_data(c, run);
	if (ended && c->state == CONN_BODY)
		end_body(c);
}

static void read_skip(struct conn *c)
{
	size_t n = c->src.n < c->skip ? c->src.n : (size_t)c->skip;
	c->skip -= n;
	eat(c, n);
}

/* As far as the input goes.  Requests that are here already are served one
 * after the other. */
static void advance(struct conn *c)
{
	for (;;) {
		size_t had = c->src.n;
		enum conn_state was = c->state;
		if (c->state == CONN_SEND)
			send_answer(c);
		else if (c->state == CONN_HEAD && c->skip && had)
			read_skip(c);
		else if (c->state == CONN_HEAD && had)
			read_head(c);
		else if (c->state == CONN_BODY &&
			 (had || (c->req->has_length && !c->req->left)))
			read_body(c);
		if (c->state == was && c->src.n == had)
			return;
	}
}

/* Feeds p[0..n) behind what was kept of earlier input. */
static void feed(struct conn *c, const uint8_t *p, size_t n)
{
	bool kept = c->in.len > 0;
	if (kept)
		buf_add(&c->in, p, n);
	c->src = kept ? buf_bytes(&c->in) : (struct bytes){ p, n };
	if (buf_failed(&c->in)) {
		conn_close(c);
		return;
	}
	advance(c);
	if (c->state == CONN_DEAD)
		return;
	if (c->state == CONN_DRAIN)
		c->src.n = 0;
	if (kept)
		buf_consume(&c->in, c->in.len - c->src.n);
	else
		buf_add(&c->in, c->src.p, c->src.n);
	if (!c->in.len && c->in.data)
		buf_free(&c->in);
	if (c->state == CONN_BODY && c->out.len && send_out(c) < 0)
		conn_close(c);		/* "100 Continue" */
}

static void readable(struct conn *c)
{
	struct loop *l = c->loop;
	if (c->state == CONN_WAIT || c->state == CONN_SEND) {
		/* not before the answer is out */
		conn_arm(c, c->state == CONN_SEND ? EPOLLOUT : 0);
		return;
	}
	ssize_t n = c->tls ? tls_recv(c->tls, l->scratch, LOOP_SCRATCH) :
			     recv(c->fd, l->scratch, LOOP_SCRATCH, 0);
	if (n < 0 && errno == EAGAIN) {
		/* a handshake may wait for either */
		if (c->tls && c->state == CONN_HEAD)
			conn_arm(c, EPOLLIN | EPOLLRDHUP |
				 (tls_wants_write(c->tls) ? EPOLLOUT : 0u));
		return;
	}
	if (n <= 0) {
		conn_close(c);
		return;
	}
	if (c->state == CONN_DRAIN || c->state == CONN_STREAM) {
		/* who only listens has nothing to say */
		c->moved += (uint64_t)n;
		if (c->moved > DRAIN_BYTES * (is_proxy(c) ? 128u : 1u))
			conn_close(c);
		return;
	}
	feed(c, l->scratch, (size_t)n);
}

void conn_ready(struct conn *c, uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP)) {
		conn_close(c);
		return;
	}
	if (events & EPOLLOUT) {
		if (c->state == CONN_STREAM)
			stream_pump(c);
		else
			feed(c, NULL, 0);
		if (c->state == CONN_DEAD)
			return;
		if (c->tls && c->state == CONN_HEAD)
			events |= EPOLLIN;
	}
	if (events & (EPOLLIN | EPOLLRDHUP))
		readable(c);
}

void conn_done(struct conn *c, struct intent *it)
{
	if (c->state != CONN_WAIT)
		return;
	if (c->req->route->done)
		c->req->route->done(c, it);
	else
		route_done(c, it);
	feed(c, NULL, 0);
}

void conn_hashed(struct conn *c, const struct digest *d)
{
	if (c->state != CONN_WAIT)
		return;
	upload_hashed(c, d);
	feed(c, NULL, 0);
}

/* Who has had a second and asks nothing gives way: ten thousand that dawdle
 * keep nobody out for long. */
void conn_crowded(struct conn *c)
{
	int64_t most = c->loop->now_ms + HEAD_MS - CROWDED_MS;
	if (c->state == CONN_HEAD && c->deadline_ms < most)
		c->deadline_ms = c->loop->now_ms;
}

void conn_tick(struct conn *c)
{
	if (c->loop->now_ms < c->deadline_ms || c->state == CONN_WAIT)
		return;
	if (c->state == CONN_STREAM && !c->blocked) {
		stream_keepalive(c);
	} else if (c->state == CONN_BODY && c->moved >= BODY_WINDOW_BYTES) {
		c->moved = 0;
		c->deadline_ms = c->loop->now_ms + BODY_WINDOW_MS;
	} else if (c->state == CONN_BODY) {
		c->close = true;
		reply_error(c, 408, "bad_request", "the body came too slowly");
		feed(c, NULL, 0);
	} else {
		conn_close(c);
	}
}
