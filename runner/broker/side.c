/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/prim.h"
#include "runner/broker/side.h"

int watch_add(struct watch *w, int epfd, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -1;
	w->fd = fd;
	w->epfd = epfd;
	w->armed = events;
	return 0;
}

void watch_arm(struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events ? events : EPOLLET,
				  .data.ptr = w };
	if (w->fd >= 0 && events != w->armed &&
	    epoll_ctl(w->epfd, EPOLL_CTL_MOD, w->fd, &ev) == 0)
		w->armed = events;
}

static ssize_t receive(struct side *s, void *p, size_t n)
{
	return s->tls ? tls_recv(s->tls, p, n) : recv(s->watch.fd, p, n, 0);
}

static bool is_pending(const struct side *s)
{
	return s->tls && tls_pending(s->tls);
}

bool side_fill(struct side *s, size_t max)
{
	bool any = false;
	while (!s->eof && !s->broken && s->in.len < max &&
	       (s->ready || is_pending(s))) {
		uint8_t *to = buf_room(&s->in, SIDE_READ);
		ssize_t n = to ? receive(s, to, SIDE_READ) : -1;
		if (n < 0 && to && (errno == EAGAIN || errno == EINTR)) {
			s->ready = errno == EINTR;
			break;
		}
		any = true;
		/* less than was asked for is all there is */
		if (n > 0 && n < (ssize_t)SIDE_READ && !is_pending(s))
			s->ready = false;
		if (n > 0)
			s->in.len += (size_t)n;
		else if (n == 0)
			s->eof = true;
		else
			s->broken = true;
	}
	return any;
}

bool side_flush(struct side *s)
{
	bool any = false;
	while (side_pending(s) && !s->broken) {
		const uint8_t *p = s->out.data + s->out_at;
		size_t left = side_pending(s);
		ssize_t n = s->tls ? tls_send(s->tls, p, left) :
			    send(s->watch.fd, p, left, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		any = true;
		if (n <= 0)
			s->broken = true;
		else
			s->out_at += (size_t)n;
	}
	if (s->out.len && side_pending(s) == 0) {
		/* a credential may have been in it */
		prim_wipe(s->out.data, s->out.len);
		s->out.len = s->out_at = 0;
	}
	return any;
}

void side_seen(struct side *s, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		s->ready = true;
}

/* Where nothing is wanted now, it stays armed until something comes: most
 * often something is wanted again before. */
void side_arm(struct side *s, bool reads)
{
	uint32_t events = 0;
	if (!s->ready && s->watch.armed & EPOLLIN)
		reads = true;
	if (reads && !s->eof && !s->broken)
		events |= EPOLLIN;
	if (side_pending(s) || (s->tls && tls_wants_write(s->tls)))
		events |= EPOLLOUT;
	watch_arm(&s->watch, events);
}

void side_shut(struct side *s)
{
	if (s->tls)
		tls_shutdown(s->tls);
	if (s->watch.fd >= 0)
		shutdown(s->watch.fd, SHUT_WR);
}

void side_close(struct side *s)
{
	tls_free(s->tls);
	s->tls = NULL;
	if (s->watch.fd >= 0)
		close(s->watch.fd);
	s->watch.fd = -1;
	buf_free(&s->in);
	buf_free(&s->out);
	s->out_at = 0;
	s->eof = s->broken = false;
}

void side_rest(struct side *s)
{
	if (s->in.len == 0)
		buf_free(&s->in);
	if (s->out.len == 0)
		buf_free(&s->out);
	if (s->tls)
		tls_rest(s->tls);
}
