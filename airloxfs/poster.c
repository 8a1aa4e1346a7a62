/* SPDX-License-Identifier: MIT
 *
 * The posters: each takes the next thing to seal or to post, and sees it
 * through. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "airloxfs/outbox_private.h"
#include "airloxfs/queue.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"
#include "core/host/draft.h"

#define POSTER_IDLE_MS 60000

void post_free(struct post *p)
{
	if (!p)
		return;
	sealed_free(&p->sealed);
	buf_free(&p->text);
	free(p->name);
	free(p);
}

static bool is_online(struct mount *m)
{
	mount_lock(m);
	bool online = m->online;
	mount_unlock(m);
	return online;
}

static bool is_over(struct mount *m)
{
	mount_lock(m);
	bool over = m->closed;
	mount_unlock(m);
	return over;
}

/* --- picking; with o->lock --- */

/* A result names its files: they come first. */
static bool waits_for_files(const struct outbox *o, const struct post *p)
{
	const struct post *k = o->first;
	if (!post_is_result(p) || p->gen != QUEUE_GEN_RESULT)
		return false;
	while (k != p && strcmp(k->draft, p->draft) != 0)
		k = k->next;
	return k != p;
}

/* Of the backlog one at a time, oldest first; what is newer waits for it. */
static bool may_post(const struct outbox *o, const struct post *p,
		     int64_t now, bool over)
{
	if (p->state != POST_SEALED)
		return false;
	if (p->withdrawn || over)
		return true;
	if (p->retry_at_ms > now || waits_for_files(o, p))
		return false;
	return !o->draining_backlog || p == o->first;
}

static struct post *pick(struct outbox *o, int64_t now, bool over)
{
	for (struct post *p = o->first; p; p = p->next)
		if (p->state == POST_NEW)
			return p;
	for (struct post *p = o->first; p; p = p->next)
		if (may_post(o, p, now, over))
			return p;
	return NULL;
}

static int64_t next_due(const struct outbox *o, int64_t now)
{
	int64_t due = now + POSTER_IDLE_MS;
	for (const struct post *p = o->first; p; p = p->next)
		if (p->state == POST_SEALED && p->retry_at_ms > now &&
		    p->retry_at_ms < due)
			due = p->retry_at_ms;
	return due;
}

static void sleep_until(struct outbox *o, int64_t due)
{
	o->idle++;
	wait_until(&o->work, &o->lock, due);
	o->idle--;
}

static struct post *next_post(struct outbox *o)
{
	while (!o->ending) {
		int64_t now = clock_mono_ms();
		struct post *p = pick(o, now, is_over(o->m));
		if (p)
			return p;
		sleep_until(o, next_due(o, now));
	}
	return NULL;
}

/* --- the end of one --- */

static const char *what_is(const struct post *p)
{
	if (post_is_result(p))
		return p->name ? "a job's out/" : "a job's result";
	return p->name ? "out/" : "a text";
}

void outbox_tell_sent(struct mount *m, const struct post *p, uint64_t seq)
{
	cleanup_buf struct buf line = { 0 };
	if (post_is_result(p) && p->gen == QUEUE_GEN_RESULT)
		queue_posted(m, p->draft, NULL);
	mount_log(m, "sent %s%s as item %s, %llu bytes", what_is(p),
		  p->name ? p->name : "", p->sealed.id, (unsigned long long)p->sealed.blob_n);
	struct tell_json j = tell_json_begin(&line, "sent");
	tell_json_int(&j, "seq", (int64_t)seq);
	tell_json_str(&j, "id", bytes_str(p->sealed.id));
	if (p->name)
		tell_json_str(&j, "name", bytes_str(p->name));
	if (p->pid_ns)
		tell_json_int(&j, "pid_ns", (int64_t)p->pid_ns);
	tell_json_end(m, &j);
}

static void tell_failed(struct mount *m, const struct post *p,
			const struct err *why)
{
	struct err e = *why;
	cleanup_buf struct buf line = { 0 };
	err_prefix(&e, "%s%s was not sent", what_is(p),
		   p->name ? p->name : "");
	e.code = why->code;
	mount_failed(m, &e);
	if (post_is_result(p) && p->gen == QUEUE_GEN_RESULT)
		queue_posted(m, p->draft, why);
	struct tell_json j = tell_json_begin(&line, "failed");
	if (p->name)
		tell_json_str(&j, "name", bytes_str(p->name));
	tell_json_str(&j, "reason", bytes_str(why->why));
	if (p->pid_ns)
		tell_json_int(&j, "pid_ns", (int64_t)p->pid_ns);
	tell_json_end(m, &j);
}

/* Whoever waits in a thread frees it then. */
void outbox_end(struct outbox *o, struct post *p, int answer)
{
	pthread_mutex_lock(&o->lock);
	struct outgoing *file = p->file;
	p->file = NULL;
	outbox_remove(o, p);
	p->ended = true;
	bool theirs = p->waits;
	outbox_answer(p, answer);
	pthread_cond_broadcast(&o->change);
	pthread_mutex_unlock(&o->lock);
	if (file)
		out_drop(o->m, file);
	if (!theirs)
		post_free(p);
}

static void count(struct outbox *o, bool sent)
{
	pthread_mutex_lock(&o->lock);
	if (sent)
		o->counts.sent++;
	else
		o->counts.failed++;
	pthread_mutex_unlock(&o->lock);
}

static void succeed(struct outbox *o, struct post *p, uint64_t seq)
{
	outbox_done(o, p, true, seq);
	if (p->file)
		out_set_state(o->m, p->file, p->gen, OUT_SENT, p->sealed.id,
			      seq, NULL);
	count(o, true);
	outbox_tell_sent(o->m, p, seq);
	outbox_reply(o, p, 0);	/* nobody waits for our copy of it */
	outbox_drop_blob(o, p, true);
	outbox_end(o, p, 0);
	if (o->m->dir_out)
		out_trim(o->m);
}

/* Nobody waits for the answer of a text: its close has returned 0. */
static bool was_taken(struct outbox *o, const struct post *p)
{
	pthread_mutex_lock(&o->lock);
	bool taken = !p->req && !p->draft[0];
	pthread_mutex_unlock(&o->lock);
	return taken;
}

uint64_t outbox_seen_as(struct outbox *o, const struct post *p)
{
	pthread_mutex_lock(&o->lock);
	uint64_t seq = p->seen;
	pthread_mutex_unlock(&o->lock);
	return seq;
}

static void doubt(struct outbox *o, const struct post *p)
{
	pthread_mutex_lock(&o->lock);
	strcpy(o->doubts[o->doubt_n++ % DOUBTS], p->sealed.id);
	pthread_mutex_unlock(&o->lock);
}

static void fail(struct outbox *o, struct post *p, const struct err *why)
{
	if (p->handed_over && !p->draft[0])
		doubt(o, p);
	if (p->at)
		outbox_done(o, p, false, 0);
	if (p->file)
		out_set_state(o->m, p->file, p->gen, OUT_FAILED,
			      p->handed_over ? p->sealed.id : NULL, 0, why);
	else if (was_taken(o, p))
		outbox_rescue(o, p, why);
	count(o, false);
	tell_failed(o->m, p, why);
	outbox_drop_blob(o, p, false);
	outbox_end(o, p, err_errno(why));
}

/* It was removed, or its content was replaced before it was sealed. */
static void forget(struct outbox *o, struct post *p, const char *why)
{
	if (p->at)
		outbox_done(o, p, false, 0);
	mount_log(o->m, "%s%s was not sent: %s", p->name ? "out/" : "a text",
		  p->name ? p->name : "", why);
	outbox_drop_blob(o, p, false);
	outbox_end(o, p, 0);
}

static void take_back(struct outbox *o, struct post *p)
{
	struct err e;
	err_set(&e, ERR_TIMEOUT, "withdrawn before the relay had answered%s",
		p->handed_over ? "; it may have it all the same: if so, the "
		"state becomes sent" : "");
	uint64_t seq = outbox_seen_as(o, p);
	if (seq)
		succeed(o, p, seq);
	else if (p->removed)
		forget(o, p, "it was removed");
	else
		fail(o, p, &e);
}

/* --- sealing --- */

/* What waits holds neither memory nor a descriptor: outbox_reopen. */
static void close_blob(struct post *p)
{
	if (p->sealed.blob_fd >= 0)
		close(p->sealed.blob_fd);
	p->sealed.blob_fd = -1;
}

static void mark_queued(struct outbox *o, struct post *p)
{
	if (p->file)
		out_set_state(o->m, p->file, p->gen, OUT_QUEUED, p->sealed.id,
			      0, NULL);
}

/* From here on it will arrive, whatever happens.  Known offline: nobody
 * waits. */
static void sealed(struct outbox *o, struct post *p, bool online)
{
	mark_queued(o, p);
	if (!online)
		close_blob(p);
	pthread_mutex_lock(&o->lock);
	p->state = POST_SEALED;
	p->deadline_ms = clock_mono_ms() + p->wait_ms;
	if (!online) {
		o->draining_backlog = true;
		p->deadline_ms = 1;
	}
	if (!online || !p->wait_ms)
		pthread_cond_signal(&o->tick);
	pthread_mutex_unlock(&o->lock);	/* this poster goes on with it */
}

static bool is_withdrawn(struct outbox *o, const struct post *p)
{
	pthread_mutex_lock(&o->lock);
	bool is = p->withdrawn;
	pthread_mutex_unlock(&o->lock);
	return is;
}

static void seal_one(struct outbox *o, struct post *p)
{
	struct err e = { 0 };
	bool online = is_online(o->m);
	int rc = -1;
	pthread_mutex_lock(&o->lock);
	p->lazy = online && !o->ending;
	pthread_mutex_unlock(&o->lock);
	if (is_over(o->m))
		err_set(&e, ERR_GONE, "the session is over");
	else if (!is_withdrawn(o, p))
		rc = seal_out(o->m, p, &e);
	if (rc == SEAL_STALE)
		forget(o, p, "it was written anew meanwhile");
	else if (is_withdrawn(o, p))
		take_back(o, p);
	else if (rc == 0 && outbox_keep(o, p, !online, &e) == 0)
		sealed(o, p, online);
	else
		fail(o, p, &e);
}

void outbox_seal_rest(struct outbox *o)
{
	struct post *p;
	do {
		pthread_mutex_lock(&o->lock);
		for (p = o->first; p && p->state != POST_NEW; p = p->next)
			;
		if (p) {
			p->state = POST_BUSY;
			o->fresh--;
		}
		pthread_mutex_unlock(&o->lock);
		if (p)
			seal_one(o, p);
	} while (p);
}

/* --- posting --- */

static void put_back(struct outbox *o, struct post *p, const struct err *e,
		     const struct wire *w)
{
	mount_heard(o->m, e);
	bool online = is_online(o->m);
	struct err disk;
	if (outbox_settle(o, p, &disk) < 0)
		mount_failed(o->m, &disk);
	pthread_mutex_lock(&o->lock);
	close_blob(p);
	p->state = POST_SEALED;
	p->retry_at_ms = clock_mono_ms() +
		peer_delay_ms(p->tries++, wire_retry_after_ms(w));
	o->draining_backlog = true;
	/* Known offline now: nobody waits.  But an errno for what the relay
	 * may have is worth its time: the next try knows. */
	if (!online && !(o->m->opt.strict && p->handed_over))
		p->deadline_ms = 1;
	pthread_cond_signal(&o->tick);
	pthread_mutex_unlock(&o->lock);
}

static bool ends_session(const struct err *e)
{
	return e->code == ERR_AUTH || e->code == ERR_NOT_FOUND ||
	       e->code == ERR_GONE;
}

static void handed(void *arg, uint64_t done)
{
	struct post *p = arg;
	if (done >= 4 + p->sealed.envelope.len + p->sealed.blob_n)
		p->handed_over = true;
}

/* 0; or -1, and *gone where it was withdrawn meanwhile. */
static int try_post(struct outbox *o, struct post *p, struct wire *w,
		    uint64_t *seq, bool *gone, struct err *e)
{
	/* rm takes back what the relay cannot have: be sure, when in doubt */
	wire_set_apart(w, p->tries || !is_online(o->m));
	int rc = peer_post(w, &p->sealed, seq, handed, p, e);
	pthread_mutex_lock(&o->lock);
	p->wire = NULL;
	*gone = p->withdrawn;
	if (p->seen) {
		*seq = p->seen;
		rc = 0;
	}
	pthread_mutex_unlock(&o->lock);
	return rc;
}

static void post_one(struct outbox *o, struct post *p, struct wire *w)
{
	struct err e = { 0 };
	uint64_t seq = 0;
	bool gone = false;
	if (is_over(o->m)) {
		err_set(&e, ERR_GONE, "the session is over");
		fail(o, p, &e);
		return;
	}
	if (is_withdrawn(o, p)) {
		take_back(o, p);
		return;
	}
	if (outbox_reopen(o, p, &e) < 0) {
		fail(o, p, &e);
		return;
	}
	if (try_post(o, p, w, &seq, &gone, &e) == 0) {
		mount_online(o->m);
		succeed(o, p, seq);
	} else if (gone && !o->ending) {
		take_back(o, p);
	} else if (o->ending || peer_may_retry(&e)) {
		put_back(o, p, &e, w);
	} else {
		if (ends_session(&e))
			mount_heard(o->m, &e);
		fail(o, p, &e);
	}
}

static struct wire *own_wire(struct outbox *o, int *mine)
{
	struct err e;
	struct wire *w = peer_wire(o->m->peer, &e);
	pthread_mutex_lock(&o->lock);
	int i = 0;
	while (i < POSTERS && o->wire[i])
		i++;
	*mine = i;
	if (w && i < POSTERS)
		o->wire[i] = w;
	pthread_mutex_unlock(&o->lock);
	if (!w)
		mount_failed(o->m, &e);
	return w;
}

void *poster_thread(void *arg)
{
	struct outbox *o = arg;
	int slot;
	struct wire *w = own_wire(o, &slot);
	if (!w)
		return NULL;
	/* a silent relay: known after the time that a close may wait */
	wire_set_patience(w, OUTBOX_WAIT_MS, OUTBOX_WAIT_MS);
	struct post *p;
	pthread_mutex_lock(&o->lock);
	while ((p = next_post(o))) {
		bool seal = p->state == POST_NEW;
		p->state = POST_BUSY;
		if (seal) {
			o->fresh--;
		} else {
			p->wire = w;
			wire_resume(w);	/* of a withdrawn one before it */
		}
		pthread_mutex_unlock(&o->lock);
		if (seal)
			seal_one(o, p);
		else
			post_one(o, p, w);
		pthread_mutex_lock(&o->lock);
	}
	if (slot < POSTERS)
		o->wire[slot] = NULL;
	pthread_mutex_unlock(&o->lock);
	wire_free(w);
	return NULL;
}
