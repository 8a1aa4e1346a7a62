/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <time.h>

#include "relay/access.h"
#include "relay/crowd.h"
#include "relay/digest.h"
#include "relay/door.h"
#include "relay/stream.h"
#include "relay/tell.h"

#define EVENTS 256
#define TICK_MS 1000

/* A fresh connection on its way to its reactor. */
struct newcomer {
	struct mail mail;	/* must be first */
	int fd;
	bool tls;
	struct addr peer;
};

static struct loop loops[LOOPS_MAX];
static int loop_n;
static atomic_bool stopping, reloading;
static atomic_uint conn_count;
static struct {
	const struct doors *doors;	/* the first reactor's */
	atomic_bool paused;	/* no room for more connections */
	unsigned turn;
} door;

void loop_post(int index, struct mail *m) { mail_post(&loops[index].mail, m); }

void loop_stop(void)
{
	stopping = true;
	for (int i = 0; i < loop_n; i++)
		mailbox_ring(&loops[i].mail);
}

void loop_reload(void)
{
	reloading = true;
	if (loop_n)	/* else it is heard when the first turn ends */
		mailbox_ring(&loops[0].mail);
}

static void reload(void)
{
	struct err e;
	reloading = false;
	access_reopen();
	if (tls_reload(&e) < 0)
		tell("the old certificate stays: %s", e.why);
}

static int64_t clock_ms(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t loop_wall_ms(void) { return clock_ms(CLOCK_REALTIME); }
int64_t loop_mono_ms(void) { return clock_ms(CLOCK_MONOTONIC) + 1; }

/* A connection that is not, or is no more. */
static void gone(struct loop *l, const struct addr *peer)
{
	crowd_leave(&l->st->limits, peer);
	conn_count--;
}

static void adopt(struct loop *l, int fd, const struct addr *peer, bool tls)
{
	if (!conn_new(l, fd, peer, tls)) {
		close(fd);
		gone(l, peer);
	}
}

/* Small answers at once; a peer that vanished is given up in time. */
static void tune(int fd)
{
	int one = 1, timeout_ms = STALL_MS;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
		   sizeof timeout_ms);
}

static void deal(struct loop *l, int fd, const struct addr *peer, bool tls)
{
	int to = (int)(door.turn++ % (unsigned)loop_n);
	tune(fd);
	if (to == l->index) {
		adopt(l, fd, peer, tls);
		return;
	}
	struct newcomer *n = malloc(sizeof *n);
	if (!n) {
		close(fd);
		gone(l, peer);
		return;
	}
	*n = (struct newcomer){ { NULL, MAIL_CONN }, fd, tls, *peer };
	loop_post(to, &n->mail);
}

static void pause_door(struct loop *l, bool pause)
{
	if (pause == door.paused)
		return;
	door.paused = pause;
	for (int i = 0; i < door.doors->n; i++) {
		int fd = door.doors->door[i].fd;
		struct epoll_event ev = { .events = EPOLLIN,
					  .data.u64 = (uint64_t)fd };
		epoll_ctl(l->epfd, pause ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, fd,
			  &ev);
	}
	if (pause)
		tell("no room for more connections; they wait");
}

/* Said without reading what was asked: it costs nothing to keep. */
static void turn_away(struct loop *l, int fd, bool tls)
{
	static const char answer[] =
		"HTTP/1.1 429 Too Many Requests\r\n"
		"Content-Type: application/json\r\nContent-Length: 75\r\n"
		"Retry-After: 10\r\nConnection: close\r\n\r\n"
		"{\"error\":\"rate_limited\",\"message\":"
		"\"too many connections from your address\"}";
	METRIC_ADD(l->st->metrics.limited, 1);
	if (!tls)
		send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
	close(fd);
}

static void accept_some(struct loop *l, const struct door *d)
{
	for (int i = 0; i < 64; i++) {
		if (conn_count >= l->st->limits.connections) {
			pause_door(l, true);
			return;
		}
		struct sockaddr_storage ss = { .ss_family = AF_UNSPEC };
		socklen_t size = sizeof ss;
		int fd = accept4(d->fd, (struct sockaddr *)&ss, &size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE ||
			    errno == ENOBUFS || errno == ENOMEM)
				pause_door(l, true);
			return;
		}
		struct addr peer;
		addr_of(&peer, &ss);
		if (!crowd_enter(&l->st->limits, &peer)) {
			turn_away(l, fd, d->tls);
			continue;
		}
		conn_count++;
		deal(l, fd, &peer, d->tls);
	}
}

/* Who asked, or NULL: it may be gone. */
static struct conn *who(const struct loop *l, int fd, uint32_t generation)
{
	struct conn *c = fd >= 0 && (size_t)fd < l->by_fd_n ? l->by_fd[fd] :
							      NULL;
	return c && c->generation == generation ? c : NULL;
}

static void read_mail(struct loop *l)
{
	for (struct mail *m = mail_take(&l->mail), *next; m; m = next) {
		next = m->next;
		if (m->kind == MAIL_CONN) {
			struct newcomer *n = (struct newcomer *)m;
			adopt(l, n->fd, &n->peer, n->tls);
			free(n);
		} else if (m->kind == MAIL_NEWS) {
			stream_news(l, (struct channel *)m);
		} else if (m->kind == MAIL_HASHED) {
			struct digest *d = (struct digest *)m;
			struct conn *c = who(l, d->conn_fd, d->conn_gen);
			if (c)
				conn_hashed(c, d);
			digest_drop(d);
		} else {
			struct intent *it = (struct intent *)m;
			struct conn *c = who(l, it->fd, it->gen);
			if (c)
				conn_done(c, it);
			intent_free(it);
		}
	}
}

static void bury(struct loop *l)
{
	while (l->dead) {
		struct conn *c = l->dead;
		l->dead = c->next;
		gone(l, &c->peer);
		conn_free(c);
	}
}

static void set_date(struct loop *l)
{
	struct tm tm;
	time_t now = time(NULL);
	gmtime_r(&now, &tm);
	strftime(l->date, sizeof l->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

/* Sessions whose time is over are closed as their owner would. */
static void expire(struct loop *l)
{
	int64_t now = loop_wall_ms();
	static const char reason[] = "{\"reason\":\"expired\"}";
	pthread_mutex_lock(&l->st->lock);
	state_forget_closed(l->st, now);
	for (size_t i = 0; i < l->st->bucket_n; i++)
		for (struct session *s = l->st->bucket[i]; s; s = s->next) {
			if (s->closed || now < s->m.expires_at_ms ||
			    s->closing)
				continue;
			struct intent *it = intent_closed(s, now, reason);
			if (!it)
				continue;
			s->closing = true;
			commit_queue(l->commit, it);
		}
	pthread_mutex_unlock(&l->st->lock);
}

static void tick(struct loop *l)
{
	l->ticked_ms = l->now_ms;
	set_date(l);
	access_flush(l);
	for (struct conn *c = l->conns, *next; c; c = next) {
		next = c->next;
		if (door.paused)
			conn_crowded(c);
		conn_tick(c);
	}
	if (l->index == 0) {
		l->st->metrics.connections = conn_count;
		state_look(l->st);
		if (l->st->failing || store_sparse(l->st->store))
			commit_probe(l->commit);
		if (door.paused && conn_count < l->st->limits.connections)
			pause_door(l, false);
		expire(l);
		commit_tick(l->commit);
	}
}

static void dispatch(struct loop *l, const struct epoll_event *ev)
{
	int fd = (int)(uint32_t)ev->data.u64;
	uint32_t gen = (uint32_t)(ev->data.u64 >> 32);
	if (gen == 0) {
		if (fd == l->mail.fd)
			read_mail(l);
		else
			for (int i = 0; i < door.doors->n; i++)
				if (door.doors->door[i].fd == fd)
					accept_some(l, &door.doors->door[i]);
		return;
	}
	struct conn *c = l->by_fd[fd];
	if (c && c->generation == gen)
		conn_ready(c, ev->events);
}

static void *run(void *arg)
{
	struct loop *l = arg;
	struct epoll_event ev[EVENTS];
	while (!stopping) {
		int64_t wait = l->ticked_ms + TICK_MS - l->now_ms;
		if (l->active || wait < 0)
			wait = 0;
		int n = epoll_wait(l->epfd, ev, EVENTS, (int)wait);
		l->now_ms = clock_ms(CLOCK_MONOTONIC);
		l->ready = n;
		for (int i = 0; i < n; i++)
			dispatch(l, &ev[i]);
		stream_turn(l);
		if (l->index == 0 && reloading)
			reload();
		if (l->now_ms - l->ticked_ms >= TICK_MS)
			tick(l);
		bury(l);
	}
	return NULL;
}

static int loop_init(struct loop *l, int index, struct state *st,
		     struct commit *commit, struct err *e)
{
	*l = (struct loop){ .index = index, .st = st, .commit = commit };
	l->active_last = &l->active;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	l->scratch = malloc(LOOP_SCRATCH);
	if (l->epfd < 0 || !l->scratch || mailbox_init(&l->mail) < 0)
		return err_sys(e, "cannot start a reactor");
	struct epoll_event ev = { .events = EPOLLIN,
				  .data.u64 = (uint64_t)l->mail.fd };
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, l->mail.fd, &ev) < 0)
		return err_sys(e, "cannot start a reactor");
	l->now_ms = clock_ms(CLOCK_MONOTONIC);
	l->ticked_ms = l->now_ms;
	set_date(l);
	return 0;
}

static void loop_free(struct loop *l)
{
	l->commit = NULL;	/* a request that waits behind an answer */
	read_mail(l);
	while (l->conns) {
		if (l->conns->state == CONN_STREAM)
			stream_farewell(l->conns);
		conn_close(l->conns);
	}
	bury(l);
	stream_turn(l);
	access_flush(l);
	buf_free(&l->access);
	mailbox_free(&l->mail);
	close(l->epfd);
	free(l->scratch);
	free(l->by_fd);
}

int loop_run(const struct doors *ds, int n, struct state *st, struct commit *commit,
	     struct err *e)
{
	door.doors = ds;
	door.paused = true;
	for (int i = 0; i < n; i++)
		if (loop_init(&loops[i], i, st, commit, e) < 0)
			return -1;
	loop_n = n;
	pause_door(&loops[0], false);
	int started = 1;
	while (started < n && pthread_create(&loops[started].thread, NULL, run,
					     &loops[started]) == 0)
		started++;
	if (started == n)
		run(&loops[0]);
	loop_stop();
	for (int i = 1; i < started; i++)
		pthread_join(loops[i].thread, NULL);
	return started == n ? 0 :
	       err_set(e, ERR_MEMORY, "cannot start a thread");
}

void loop_finish(void)
{
	for (int i = 0; i < loop_n; i++)
		loop_free(&loops[i]);
}
