/* SPDX-License-Identifier: MIT
 *
 * Who committed what, and who waits for which answer. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "airloxfs/outbox_private.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/wait.h"
#include "core/enc.h"
#include "core/hash.h"
#include "core/host/clock.h"
#include "core/host/file.h"

#define JOURNAL_MAX (64 << 20)	/* bytes, then a new one is begun */
#define TIMER_MS 200		/* how late a "queued" may be said */
#define WITHDRAW_WAIT_MS 1000

/* --- answers; with o->lock --- */

void outbox_answer(struct post *p, int err)
{
	if (p->req)
		fs_reply_error(p->req, err);
	p->req = NULL;
	if (p->waits && !p->answered) {
		p->answer = err;
		p->answered = true;
	}
}

void outbox_reply(struct outbox *o, struct post *p, int answer)
{
	pthread_mutex_lock(&o->lock);
	outbox_remove(o, p);
	outbox_answer(p, answer);
	if (p->waits)
		pthread_cond_broadcast(&o->change);
	pthread_mutex_unlock(&o->lock);
}

void outbox_remove(struct outbox *o, struct post *p)
{
	struct post **at = &o->first;
	while (*at && *at != p)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = p->next;
	if (o->last == &p->next)
		o->last = at;
	o->counts.queued--;
	if (!o->first)
		o->draining_backlog = false;
}

void outbox_add(struct outbox *o, struct post *p)
{
	bool is_new = p->state == POST_NEW;
	*o->last = p;
	o->last = &p->next;
	o->counts.queued++;
	o->fresh += is_new;
	/* a poster more where all are at work; each new item wakes one */
	if (o->fresh + !is_new > o->idle && o->posters < POSTERS &&
	    pthread_create(&o->poster[o->posters], NULL, poster_thread,
			   o) == 0)
		o->posters++;
	if (o->resting)
		pthread_cond_signal(&o->tick);
}

/* With the lock.  Whoever waits for p waits no longer than until it is sealed
 * and durable: the timer answers. */
static void hurry(struct outbox *o, struct post *p)
{
	p->wait_ms = 0;
	if (p->deadline_ms)
		p->deadline_ms = 1;
	pthread_cond_signal(&o->tick);
}

/* The writer gave up waiting (a signal): the item goes on. */
static void give_up(struct fuse_req *req, void *arg)
{
	struct outbox *o = arg;
	pthread_mutex_lock(&o->lock);
	for (struct post *p = o->first; p; p = p->next)
		if (p->req == req)
			hurry(o, p);
	pthread_mutex_unlock(&o->lock);
}

static struct post *post_new(struct mount *m, struct outgoing *f,
			     const char *name)
{
	struct post *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->sealed.blob_fd = -1;
	p->wait_ms = OUTBOX_WAIT_MS;
	p->name = name ? strdup(name) : NULL;
	if (name && !p->name) {
		free(p);
		return NULL;
	}
	if (f) {
		p->file = f;
		out_hold(m, f);
		pthread_mutex_lock(&f->lock);
		p->gen = f->gen;
		p->pid_ns = f->pid_ns;
		snprintf(p->draft, sizeof p->draft, "%s", vault_id(f->vault));
		pthread_mutex_unlock(&f->lock);
	}
	return p;
}

/* Of a text the hash, too: it is in no file. */
static void tell_written(struct mount *m, const struct post *p)
{
	cleanup_buf struct buf line = { 0 };
	struct tell_json j = tell_json_begin(&line, "written");
	if (p->name) {
		tell_json_str(&j, "name", bytes_str(p->name));
	} else {
		uint8_t hash[HASH_SIZE];
		char hex[2 * HASH_SIZE + 1];
		hash_sha256(hash, p->text.data, p->text.len);
		enc_hex(hex, hash, sizeof hash);
		tell_json_int(&j, "bytes", (int64_t)p->text.len);
		tell_json_str(&j, "sha256", bytes_str(hex));
	}
	if (p->pid_ns)
		tell_json_int(&j, "pid_ns", (int64_t)p->pid_ns);
	tell_json_end(m, &j);
}

static void submit(struct outbox *o, struct post *p, struct fuse_req *req)
{
	if (req)
		fs_on_interrupt(req, give_up, o);
	pthread_mutex_lock(&o->lock);
	p->req = req;
	if (req && fs_interrupted(req))
		hurry(o, p);
	outbox_add(o, p);
	pthread_mutex_unlock(&o->lock);
	pthread_cond_signal(&o->work);	/* who wakes finds the lock free */
}

void outbox_commit(struct mount *m, struct outgoing *f, const char *name,
		   struct fuse_req *req)
{
	struct post *p = post_new(m, f, name);
	if (p) {
		tell_written(m, p);
		submit(m->outbox, p, req);
	} else if (req) {
		fs_reply_error(req, ENOMEM);
	}
}

void outbox_say(struct mount *m, struct bytes text, uint64_t pid_ns,
		struct fuse_req *req)
{
	struct post *p = post_new(m, NULL, NULL);
	if (p)
		buf_add(&p->text, text.p, text.n);
	if (p && !buf_failed(&p->text)) {
		p->pid_ns = pid_ns;
		tell_written(m, p);
		submit(m->outbox, p, req);
		return;
	}
	post_free(p);
	if (req)
		fs_reply_error(req, ENOMEM);
}

int outbox_commit_wait(struct mount *m, struct outgoing *f, const char *name,
		       int64_t wait_ms)
{
	struct outbox *o = m->outbox;
	struct post *p = post_new(m, f, name);
	if (!p)
		return ENOMEM;
	p->waits = true;
	p->wait_ms = wait_ms;
	tell_written(m, p);
	submit(o, p, NULL);
	pthread_mutex_lock(&o->lock);
	while (!p->answered)
		pthread_cond_wait(&o->change, &o->lock);
	int err = p->answer;
	p->waits = false;	/* whoever ends it frees it, from now on */
	bool mine = p->ended;
	pthread_mutex_unlock(&o->lock);
	if (mine)
		post_free(p);
	return err;
}

/* --- the clock --- */

static bool is_late(const struct post *p, int64_t now)
{
	return (p->req || (p->waits && !p->answered)) && p->deadline_ms &&
	       now >= p->deadline_ms && !p->withdrawn;
}

/* With the lock. */
static void withdraw(struct post *p)
{
	p->withdrawn = true;
	if (p->wire)
		wire_abort(p->wire);
}

static bool any_late(const struct outbox *o, int64_t now)
{
	const struct post *p = o->first;
	while (p && !is_late(p, now))
		p = p->next;
	return p != NULL;
}

/* With the lock, which is let go while the disk is waited for: what is late by
 * now is durable then.  A poster closes a lazy one's file with the lock held. */
static bool settle_late(struct outbox *o, int64_t now)
{
	size_t n = 0, room = 0;
	struct err e;
	for (struct post *p = o->first; p; p = p->next)
		room += p->lazy;
	int *fds = calloc(room + 1, sizeof *fds);
	bool ok = fds != NULL;
	for (struct post *p = o->first; p; p = p->next) {
		p->settling = is_late(p, now);
		if (!p->settling || !p->lazy || !p->blob[0] || !fds)
			continue;
		fds[n] = p->sealed.blob_fd < 0 ? -1 :
			fcntl(p->sealed.blob_fd, F_DUPFD_CLOEXEC, 0);
		ok &= fds[n++] >= 0;
	}
	pthread_mutex_unlock(&o->lock);
	for (size_t i = 0; i < n; i++) {
		ok &= fds[i] < 0 || fdatasync(fds[i]) == 0;
		if (fds[i] >= 0)
			close(fds[i]);
	}
	free(fds);
	ok = (!n || file_fsync_dir(o->blobs, &e) == 0) && ok &&
		outbox_sync(o, &e) == 0;
	pthread_mutex_lock(&o->lock);
	return ok;
}

/* With the lock, which is let go while the disk is waited for: answers those
 * whose time of network is up.  Strict ones get their errno by their poster,
 * once it is durable that they are not sent. */
static void answer_late(struct outbox *o, int64_t now)
{
	bool strict = o->m->opt.strict;
	if (!any_late(o, now))
		return;
	bool kept = settle_late(o, now);
	for (struct post *p = o->first; p; p = p->next) {
		if (!p->settling || !is_late(p, now))
			continue;
		if (strict || !kept)
			withdraw(p);
		if (!strict || !kept)
			outbox_answer(p, kept ? 0 : EIO);
	}
	pthread_cond_broadcast(&o->change);
	pthread_cond_broadcast(&o->work);
}

static void *timer_thread(void *arg)
{
	struct outbox *o = arg;
	pthread_mutex_lock(&o->lock);
	while (!o->ending) {
		if (!o->first && o->written > JOURNAL_MAX)
			outbox_renew(o);
		while (!o->ending && !o->first) {
			o->resting = true;
			pthread_cond_wait(&o->tick, &o->lock);
		}
		o->resting = false;
		int64_t now = clock_mono_ms();
		if (!o->ending && !any_late(o, now))
			wait_until(&o->tick, &o->lock, now + TIMER_MS);
		answer_late(o, clock_mono_ms());
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* --- for others --- */

void outbox_kick(struct mount *m)
{
	struct outbox *o = m->outbox;
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	for (struct post *p = o->first; p; p = p->next)
		p->retry_at_ms = 0;
	pthread_cond_broadcast(&o->work);
	pthread_mutex_unlock(&o->lock);
}

/* With the lock: whether a withdrawn one of f is still in the outbox. */
static bool is_leaving(const struct outbox *o, const struct outgoing *f)
{
	for (const struct post *p = o->first; p; p = p->next)
		if (p->file == f && p->removed)
			return true;
	return false;
}

void outbox_withdraw(struct mount *m, struct outgoing *f)
{
	struct outbox *o = m->outbox;
	int64_t until = clock_mono_ms() + WITHDRAW_WAIT_MS;
	pthread_mutex_lock(&o->lock);
	for (struct post *p = o->first; p; p = p->next)
		if (p->file == f && !p->handed_over) {
			p->removed = true;
			withdraw(p);
		}
	pthread_cond_broadcast(&o->work);
	while (!o->ending && is_leaving(o, f) &&
	       wait_until(&o->change, &o->lock, until))
		;
	pthread_mutex_unlock(&o->lock);
}

/* Posted by an earlier mount, or by a poster whose answer was lost; one that
 * is under way is told. */
static struct post *take_sealed(struct outbox *o, const char *id, uint64_t seq)
{
	pthread_mutex_lock(&o->lock);
	struct post *p = o->first;
	while (p && !((p->wire || p->handed_over ||
		       p->state == POST_SEALED) &&
		      strcmp(p->sealed.id, id) == 0))
		p = p->next;
	if (p)
		p->seen = seq;
	if (p && p->state != POST_SEALED)
		p = NULL;
	if (p) {
		p->state = POST_BUSY;
		o->counts.sent++;
	}
	pthread_mutex_unlock(&o->lock);
	return p;
}

static bool was_doubted(struct outbox *o, const char *id)
{
	bool was = false;
	pthread_mutex_lock(&o->lock);
	for (size_t i = 0; i < DOUBTS; i++)
		was |= strcmp(o->doubts[i], id) == 0;
	pthread_mutex_unlock(&o->lock);
	return was;
}

void outbox_seen(struct mount *m, const char *id, uint64_t seq)
{
	struct outbox *o = m->outbox;
	struct post *p = take_sealed(o, id, seq);
	if (!p) {
		out_came_back(m, id, seq);
		if (was_doubted(o, id))
			mount_log(m, "a text, that was called failed, did "
				  "reach the relay as item %llu",
				  (unsigned long long)seq);
		return;
	}
	outbox_done(o, p, true, seq);
	if (p->file)
		out_set_state(m, p->file, p->gen, OUT_SENT, id, seq, NULL);
	outbox_tell_sent(m, p, seq);
	outbox_drop_blob(o, p, true);
	outbox_end(o, p, 0);
	/* what waited behind it: a backlog's next, a result with its files */
	pthread_mutex_lock(&o->lock);
	pthread_cond_broadcast(&o->work);
	pthread_mutex_unlock(&o->lock);
}

struct outbox_counts outbox_counts(struct outbox *o)
{
	pthread_mutex_lock(&o->lock);
	struct outbox_counts c = o->counts;
	pthread_mutex_unlock(&o->lock);
	return c;
}

size_t outbox_drain(struct mount *m, int64_t wait_ms)
{
	struct outbox *o = m->outbox;
	int64_t until = clock_mono_ms() + wait_ms;
	for (;;) {
		size_t left = outbox_counts(o).queued;
		mount_lock(m);
		bool can = m->online && !m->closed;
		mount_unlock(m);
		if (!left || !can || !o->has_timer ||
		    clock_mono_ms() >= until)
			return left;
		struct timespec t = { .tv_nsec = 20000000 };
		nanosleep(&t, NULL);
	}
}

/* --- life --- */

struct outbox *outbox_new(struct mount *m, struct err *e)
{
	struct outbox *o = calloc(1, sizeof *o);
	if (!o) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	o->m = m;
	o->last = &o->first;
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->work, NULL);
	pthread_cond_init(&o->change, NULL);
	pthread_cond_init(&o->tick, NULL);
	o->blobs = file_make_dir(m->store->dir, "outbox", e);
	if (o->blobs >= 0 && outbox_load(o, e) == 0)
		return o;
	outbox_free(o);
	return NULL;
}

int outbox_start(struct outbox *o, struct err *e)
{
	if (pthread_create(&o->timer, NULL, timer_thread, o))
		return err_sys(e, "cannot start a thread");
	o->has_timer = true;
	pthread_mutex_lock(&o->lock);
	if (o->first && pthread_create(&o->poster[0], NULL, poster_thread,
				       o) == 0)
		o->posters = 1;
	pthread_mutex_unlock(&o->lock);
	return 0;
}

void outbox_stop(struct outbox *o)
{
	if (!o)
		return;
	struct err e;
	pthread_mutex_lock(&o->lock);
	o->ending = true;	/* the timer begins no new journal now */
	pthread_cond_broadcast(&o->work);
	pthread_cond_broadcast(&o->tick);
	for (int i = 0; i < POSTERS; i++)
		if (o->wire[i])
			wire_abort(o->wire[i]);
	pthread_mutex_unlock(&o->lock);
	for (int i = 0; i < o->posters; i++)
		pthread_join(o->poster[i], NULL);
	if (o->has_timer)
		pthread_join(o->timer, NULL);
	o->posters = 0;
	o->has_timer = false;
	/* Who still waits hears 0 once it is sealed and on the disk. */
	outbox_seal_rest(o);
	for (struct post *p = o->first; p; p = p->next)
		if (p->lazy && p->sealed.blob_fd >= 0 &&
		    outbox_settle(o, p, &e) < 0)
			mount_failed(o->m, &e);
	if (o->journal && outbox_sync(o, &e) < 0)
		mount_failed(o->m, &e);
	pthread_mutex_lock(&o->lock);
	for (struct post *p = o->first; p; p = p->next)
		outbox_answer(p, 0);
	pthread_cond_broadcast(&o->change);
	pthread_mutex_unlock(&o->lock);
}

void outbox_free(struct outbox *o)
{
	if (!o)
		return;
	outbox_stop(o);
	while (o->first) {
		struct post *p = o->first;
		outbox_remove(o, p);
		if (p->file)
			out_drop(o->m, p->file);
		p->file = NULL;
		post_free(p);
	}
	outbox_drop_outcomes(o);
	journal_close(o->journal);
	if (o->blobs >= 0)
		close(o->blobs);
	free(o);
}
