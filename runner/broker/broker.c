/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "core/prim.h"
#include "runner/broker/conn.h"

#define EVENTS 128
#define TICK_MS 1000
#define LATE_MS 20	/* an end may wait so long to be written */
#define PACKET_MAX 8192

const char *broker_door_word(enum door_kind k)
{
	static const char *const words[] = { "proxy", "http", "https" };
	return words[k];
}

static int64_t clock_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- doors --- */

/* Level-triggered: while there is no room, the doors are not asked. */
static void shut_doors(struct broker *b, bool shut)
{
	if (b->doors_shut == shut)
		return;
	b->doors_shut = shut;
	for (size_t i = 0; i < b->door_n; i++)
		watch_arm(&b->door[i].watch, shut ? 0 : EPOLLIN);
}

static void door_ready(struct watch *w, uint32_t events)
{
	struct door *d = (struct door *)w;
	(void)events;
	for (int i = 0; i < 32; i++) {
		if (d->b->conn_n >= d->b->conn_max) {
			shut_doors(d->b, true);
			return;
		}
		int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK |
				 SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE ||
			    errno == ENOMEM || errno == ENOBUFS)
				shut_doors(d->b, true);
			return;
		}
		conn_new(d->b, fd, d->kind);
	}
}

static int open_door(struct broker *b, const char *word, int fd)
{
	int kind = 0;
	while (kind < 3 && strcmp(word, broker_door_word((enum door_kind)kind)))
		kind++;
	if (kind == 3 || b->door_n == BROKER_DOORS ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	struct door *d = &b->door[b->door_n];
	*d = (struct door){ .watch = { .fd = -1, .ready = door_ready },
			    .b = b, .kind = (enum door_kind)kind };
	if (watch_add(&d->watch, b->epfd, fd, EPOLLIN) < 0)
		return -1;
	b->door_n++;
	return 0;
}

/* --- the other side of the control socket --- */

static int receive_packet(int control, char *text, size_t size, int *fd)
{
	union { char space[CMSG_SPACE(sizeof(int) * 4)]; struct cmsghdr h; } u;
	struct iovec iov = { text, size - 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = u.space,
			    .msg_controllen = sizeof u.space };
	ssize_t n = recvmsg(control, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*fd = -1;
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	text[n] = 0;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int got;
			memcpy(&got, CMSG_DATA(h) + i * sizeof got, sizeof got);
			if (*fd < 0)
				*fd = got;
			else
				close(got);
		}
	}
	return 1;
}

static void control_ready(struct watch *w, uint32_t events)
{
	struct broker *b = (struct broker *)((char *)w -
					     offsetof(struct broker, control));
	char text[256];
	int fd, rc = -1;
	(void)events;
	int got = receive_packet(w->fd, text, sizeof text, &fd);
	if (got < 0)
		b->stop = true;
	if (got <= 0)
		return;
	if (!strncmp(text, "door ", 5) && fd >= 0) {
		rc = open_door(b, text + 5, fd);
	} else if (!strncmp(text, "token ", 6) &&
		   strlen(text + 6) < sizeof b->token) {
		memcpy(b->token, text + 6, strlen(text + 6) + 1);
		rc = 0;
	}
	prim_wipe(text, sizeof text);
	if (rc < 0 && fd >= 0)
		close(fd);
	if (send(w->fd, rc == 0 ? "ok" : "no", 2, MSG_NOSIGNAL) < 0)
		b->stop = true;
}

static void resolver_ready(struct watch *w, uint32_t events)
{
	struct broker *b = (struct broker *)((char *)w -
					     offsetof(struct broker, resolver));
	struct resolved r;
	uint64_t id;
	(void)events;
	while (resolve_take(&id, &r)) {
		struct conn *c = b->conns;
		while (c && c->id != id)
			c = c->next;
		if (!c || c->state != CONN_LOOKUP)
			continue;
		conn_looked_up(c, &r);
		conn_work(c);
	}
}

/* --- the loop --- */

static void refill(struct broker *b, int64_t ms)
{
	int64_t most = b->policy->limits.requests;
	/* at most one minute's worth waits */
	if (most > INT64_MAX / 120000 || ms > 60000)
		b->tokens_milli = most > INT64_MAX / 1000 ? INT64_MAX :
				  most * 1000;
	else
		b->tokens_milli += most * ms / 60;
	if (most <= INT64_MAX / 1000 && b->tokens_milli > most * 1000)
		b->tokens_milli = most * 1000;
}

static void tick(struct broker *b)
{
	refill(b, b->now_ms - b->ticked_ms);
	b->ticked_ms = b->now_ms;
	egress_flush(&b->egress);
	for (struct conn *c = b->conns, *next; c; c = next) {
		next = c->next;
		conn_tick(c);
	}
	if (b->doors_shut && b->conn_n < b->conn_max)
		shut_doors(b, false);
}

/* What is queued is dead but still asked once more. */
static void bury(struct broker *b)
{
	struct conn *list = b->dead;
	b->dead = NULL;
	while (list) {
		struct conn *c = list;
		list = c->next;
		if (!c->queued) {
			conn_free(c);
			continue;
		}
		c->next = b->dead;
		b->dead = c;
	}
	if (b->doors_shut && b->conn_n < b->conn_max)
		shut_doors(b, false);
}

/* Those that had more to do than one turn. */
static void work_again(struct broker *b)
{
	struct conn *list = b->again;
	b->again = NULL;
	while (list) {
		struct conn *c = list;
		list = c->again;
		c->queued = false;
		conn_work(c);
	}
}

static void turn(struct broker *b)
{
	struct epoll_event ev[EVENTS];
	int wait_ms = b->again ? 0 : b->egress.late.len ? LATE_MS : TICK_MS;
	int n = epoll_wait(b->epfd, ev, EVENTS, wait_ms);
	b->now_ms = clock_ms();
	if (n == 0)
		egress_flush(&b->egress);
	for (int i = 0; i < n; i++) {
		struct watch *w = ev[i].data.ptr;
		if (w->fd >= 0)
			w->ready(w, ev[i].events);
	}
	work_again(b);
	if (b->now_ms - b->ticked_ms >= TICK_MS)
		tick(b);
	bury(b);
}

static void close_all(struct broker *b)
{
	while (b->conns)
		conn_close(b->conns);
	work_again(b);
	bury(b);
	for (size_t i = 0; i < b->door_n; i++)
		close(b->door[i].watch.fd);
	egress_flush(&b->egress);
	buf_free(&b->egress.late);
}

/* --- start and end --- */

static int fill_redact(struct broker *b, struct err *e)
{
	b->redact = redact_new();
	for (size_t i = 0; b->redact && i < b->secrets.n; i++)
		if (redact_add(b->redact, secrets_get(&b->secrets, i)) < 0)
			return err_set(e, ERR_MEMORY, "no locked memory; "
				       "raise ulimit -l");
	return b->redact ? 0 : err_set(e, ERR_MEMORY, "out of memory");
}

static int open_broker(struct broker *b, int control, struct buf *ca,
		       struct err *e)
{
	int64_t limit = b->policy->limits.connections;
	b->conn_max = limit && limit < 4096 ? limit : limit ? 4096 :
		      BROKER_CONNECTIONS;
	if (secrets_load(&b->secrets, b->policy, e) < 0 ||
	    fill_redact(b, e) < 0 || tls_open(ca, e) < 0)
		return -1;
	b->egress.redact = b->redact;
	b->egress.next = 1;
	b->epfd = epoll_create1(EPOLL_CLOEXEC);
	int fd = resolve_open(e);
	if (fd < 0)
		return -1;
	if (b->epfd < 0 || watch_add(&b->control, b->epfd, control,
				     EPOLLIN) < 0 ||
	    watch_add(&b->resolver, b->epfd, fd, EPOLLIN) < 0)
		return err_sys(e, "cannot start the broker");
	return 0;
}

static int say_ready(int control, struct buf *ca, const struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, e ? "fail\n" : "ready\n");
	if (e)
		buf_add_str(&b, e->why);
	else
		buf_add(&b, ca->data, ca->len);
	return !buf_failed(&b) && b.len <= PACKET_MAX &&
	       send(control, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len ?
	       0 : -1;
}

static void free_broker(struct broker *b)
{
	secrets_free(&b->secrets);
	redact_free(b->redact);
	tls_close();
	prim_wipe(b->token, sizeof b->token);
}

int broker_run(int control, int egress, int copy, const struct policy *p)
{
	struct err e = { 0 };
	cleanup_buf struct buf ca = { 0 };
	struct broker b = {
		.policy = p,
		.egress = { .fd = egress, .copy = copy },
		.control = { .fd = -1, .ready = control_ready },
		.resolver = { .fd = -1, .ready = resolver_ready },
		.now_ms = clock_ms(), .epfd = -1,
	};
	b.ticked_ms = b.now_ms;
	refill(&b, INT64_MAX);
	signal(SIGPIPE, SIG_IGN);
	if (open_broker(&b, control, &ca, &e) < 0) {
		say_ready(control, &ca, &e);
		free_broker(&b);
		return err_exit(e.code);
	}
	if (say_ready(control, &ca, NULL) == 0)
		while (!b.stop)
			turn(&b);
	close_all(&b);
	free_broker(&b);
	return 0;
}
