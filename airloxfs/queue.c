/* SPDX-License-Identifier: MIT
 *
 * Which jobs there are, what is asked of the worker, and what others tell this
 * room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/queue_private.h"
#include "airloxfs/tell_json.h"
#include "airloxfs/wait.h"
#include "core/clear.h"
#include "core/enc.h"
#include "core/host/clock.h"
#include "core/host/file.h"
#include "core/host/wire_job.h"

#define RETRY_MS 500
#define TAKE_TRIES 40		/* a relay gives a job up after 30 s */
#define IDLE_MS 60000

/* --- jobs --- */

struct qjob *queue_job_new(struct queue_room *q, const char *id)
{
	struct qjob *j = calloc(1, sizeof *j);
	if (!j)
		return NULL;
	j->m = q->m;
	j->refs = 1;
	snprintf(j->id, sizeof j->id, "%s", id);
	pthread_mutex_init(&j->io, NULL);
	return j;
}

void queue_hold(struct qjob *j) { j->refs++; }

void queue_drop(struct qjob *j)
{
	if (!j || --j->refs)
		return;
	if (j->work)
		queue_vault_end(j->m->queue, j->work);
	kept_free(&j->std[0]);
	kept_free(&j->std[1]);
	buf_free(&j->exit);
	buf_free(&j->reason);
	buf_free(&j->peak);
	queue_end_free(&j->end);
	pthread_mutex_destroy(&j->io);
	free(j);
}

void queue_list(struct queue_room *q, struct qjob *j)
{
	queue_hold(j);
	j->next = q->jobs;
	q->jobs = j;
}

void queue_unlist(struct queue_room *q, struct qjob *j)
{
	struct qjob **at = &q->jobs;
	while (*at && *at != j)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = j->next;
	j->state = Q_GONE;
	queue_drop(j);		/* the caller has one too */
}

struct qjob *queue_find(struct queue_room *q, const char *id)
{
	struct qjob *j = q->jobs;
	while (j && strcmp(j->id, id) != 0)
		j = j->next;
	return j;
}

static struct qjob *find_held(struct queue_room *q, const char *id)
{
	pthread_mutex_lock(&q->lock);
	struct qjob *j = queue_find(q, id);
	if (j)
		queue_hold(j);
	pthread_mutex_unlock(&q->lock);
	return j;
}

/* --- vaults --- */

struct vault *queue_vault(struct queue_room *q, char kind, struct err *e)
{
	uint8_t raw[10];
	char id[24] = { kind, '-' };
	const struct store *s = q->m->store;
	prim_random(raw, sizeof raw);
	enc_hex(id + 2, raw, sizeof raw);
	return vault_create(q->dir, id, s->session_key, s->session_id, e);
}

void queue_vault_end(struct queue_room *q, struct vault *v)
{
	if (v)
		vault_unlink(q->dir, vault_id(v), NULL);
	vault_close(v);
}

/* --- what the journal knows --- */

enum qknown queue_known(const struct queue_room *q, const char *id)
{
	for (size_t i = q->id_n; i--;)
		if (strcmp(q->ids[i].id, id) == 0)
			return q->ids[i].known;
	return QK_NONE;
}

int queue_remember(struct queue_room *q, const char *id, enum qknown known)
{
	for (size_t i = q->id_n; i--;)
		if (strcmp(q->ids[i].id, id) == 0) {
			if (known > q->ids[i].known)
				q->ids[i].known = known;
			return 0;
		}
	if (q->id_n == q->id_cap) {
		size_t cap = q->id_cap ? q->id_cap * 2 : 64;
		void *v = realloc(q->ids, cap * sizeof *q->ids);
		if (!v)
			return -1;
		q->ids = v;
		q->id_cap = cap;
	}
	struct qid *k = &q->ids[q->id_n++];
	*k = (struct qid){ .known = known };
	snprintf(k->id, sizeof k->id, "%s", id);
	return 0;
}

/* --- what is told --- */

void queue_tell(struct mount *m, const char *id, const char *state,
		const char *detail)
{
	cleanup_buf struct buf line = { 0 }, text = { 0 };
	bool has = detail && *detail;
	if (has)
		clear_escape(&text, bytes_str(detail));
	mount_log(m, "queue: job %s %s%s%s", id, state, has ? ": " : "",
		  has ? buf_cstr(&text) : "");
	struct tell_json j = tell_json_begin(&line, "queue");
	tell_json_str(&j, "id", bytes_str(id));
	tell_json_str(&j, "state", bytes_str(state));
	if (has)
		tell_json_str(&j, "reason", bytes_str(detail));
	tell_json_end(m, &j);
}

/* --- the worker --- */

static void put_task(struct queue_room *q, struct qtask *t)
{
	q->task_n++;
	struct qtask **at = &q->tasks;
	while (*at && (*at)->due_ms <= t->due_ms)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
	pthread_cond_broadcast(&q->work);
}

static struct qtask *find_task(struct queue_room *q, enum qtask_kind kind,
			       const char *id)
{
	struct qtask *t = q->tasks;
	while (t && !(strcmp(t->id, id) == 0 &&
		      (kind == QT_SEAL) == (t->kind == QT_SEAL)))
		t = t->next;
	return t;
}

void queue_ask(struct queue_room *q, enum qtask_kind kind, const char *id,
	       struct qjob *j, int64_t due_ms, unsigned tries)
{
	struct qtask *t = calloc(1, sizeof *t);
	if (!t)
		return;
	*t = (struct qtask){ .kind = kind, .job = j, .due_ms = due_ms,
			     .tries = tries };
	snprintf(t->id, sizeof t->id, "%s", id);
	if (j)
		queue_hold(j);
	pthread_mutex_lock(&q->lock);
	struct qtask *same = find_task(q, kind, id);
	if (same && kind == QT_TAKE)
		same->kind = QT_TAKE;
	bool flood = kind != QT_SEAL && q->task_n >= QUEUE_TASKS_MAX;
	bool put = !same && !flood;
	if (put)
		put_task(q, t);
	pthread_mutex_unlock(&q->lock);
	if (put)
		return;
	queue_drop(j);
	free(t);
}

/* With the lock: out of the list. */
static struct qtask *take_task(struct queue_room *q, struct qtask **at)
{
	struct qtask *t = *at;
	*at = t->next;
	q->task_n--;
	return t;
}

/* With the lock, which is let go meanwhile. */
static struct qtask *next_task(struct queue_room *q)
{
	while (!q->ending) {
		int64_t now = clock_mono_ms(), due = now + IDLE_MS;
		struct qtask *t = q->tasks;
		if (t && t->due_ms <= now)
			return take_task(q, &q->tasks);
		wait_until(&q->work, &q->lock, t ? t->due_ms : due);
	}
	return NULL;
}

/* A relay's word on a job: whether it is for us to look at.  1: later. */
static int look(struct queue_room *q, const char *id, bool *run,
		struct err *e)
{
	struct routed_job r = { 0 };
	if (wire_job_get(q->work_wire, id, &r, e) < 0)
		return -1;
	bool ours = r.has_runner &&
		memcmp(r.runner, q->m->peer->pub, PRIM_PUB) == 0;
	*run = ours && r.state == ROUTED_ASSIGNED;
	bool lost = ours && r.state == ROUTED_RUNNING;
	routed_job_free(&r);
	return *run || lost ? 1 : 0;
}

/* Whether the id is nobody's yet. */
static bool is_fresh(struct queue_room *q, const char *id)
{
	pthread_mutex_lock(&q->lock);
	bool fresh = !queue_find(q, id) && queue_known(q, id) < QK_CLAIMED;
	pthread_mutex_unlock(&q->lock);
	return fresh;
}

static void tell_again(struct queue_room *q, const struct qtask *t)
{
	pthread_mutex_lock(&q->lock);
	bool here = queue_find(q, t->id) != NULL;
	pthread_mutex_unlock(&q->lock);
	if (!here && t->kind == QT_TAKE)
		mount_log(q->m, "queue: job %s was here before: it is not run "
			  "again", t->id);
}

static int try_task(struct queue_room *q, const struct qtask *t, struct err *e)
{
	bool run = true;
	if (!is_fresh(q, t->id)) {
		tell_again(q, t);
		return 0;
	}
	int rc = t->kind == QT_LOOK ? look(q, t->id, &run, e) : 1;
	return rc == 1 ? queue_take(q, t->id, run, t->tries >= TAKE_TRIES, e)
		: rc;
}

static bool is_passing(const struct err *e)
{
	return e->code == ERR_NET || e->code == ERR_RATE ||
	       e->code == ERR_FULL || e->code == ERR_SYS ||
	       e->code == ERR_MEMORY || e->code == ERR_TIMEOUT;
}

/* When to try again: at once where an item came meanwhile. */
static int64_t next_try(struct queue_room *q, unsigned kicks)
{
	pthread_mutex_lock(&q->lock);
	bool came = q->kicks != kicks;
	pthread_mutex_unlock(&q->lock);
	return clock_mono_ms() + (came ? 0 : RETRY_MS);
}

static void do_task(struct queue_room *q, struct qtask *t, unsigned kicks)
{
	struct err e = { 0 };
	if (t->kind == QT_SEAL) {
		queue_seal(q, t->job);
		return;
	}
	if (try_task(q, t, &e) == 0)
		return;
	if (q->ending)
		return;
	if (e.code == ERR_NET && !e.http)
		mount_offline(q->m, &e);
	if (is_passing(&e) && t->tries < TAKE_TRIES) {
		queue_ask(q, t->kind, t->id, NULL, next_try(q, kicks),
			  t->tries + 1);
		return;
	}
	err_prefix(&e, "job %s", t->id);
	mount_failed(q->m, &e);
}

static void *worker_thread(void *arg)
{
	struct queue_room *q = arg;
	struct qtask *t;
	pthread_mutex_lock(&q->lock);
	while ((t = next_task(q))) {
		unsigned kicks = q->kicks;
		pthread_mutex_unlock(&q->lock);
		do_task(q, t, kicks);
		queue_drop(t->job);
		free(t);
		queue_renew(q);
		pthread_mutex_lock(&q->lock);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

bool queue_pause(struct queue_room *q, int64_t ms)
{
	int64_t until = clock_mono_ms() + ms;
	pthread_mutex_lock(&q->lock);
	while (!q->ending && wait_until(&q->work, &q->lock, until))
		;
	bool on = !q->ending;
	pthread_mutex_unlock(&q->lock);
	return on;
}

/* --- what others tell --- */

/* An open job goes, a claimed one is told and ends by whoever runs it. */
void queue_cancel(struct queue_room *q, struct qjob *j, const char *why)
{
	pthread_mutex_lock(&q->lock);
	bool news = !j->cancelled && j->state < Q_ENDING;
	bool runs = j->state == Q_CLAIMED || j->state == Q_CLAIMING;
	bool open = j->state == Q_OPEN;
	j->cancelled = true;
	if (news && open)
		queue_unlist(q, j);
	pthread_mutex_unlock(&q->lock);
	if (!news)
		return;
	queue_tell(q->m, j->id, "cancelled", why);
	if (runs)
		queue_dir_cancelled(j, why);
	else if (open)
		queue_dir_vanish(j);
}

/* It was not fetched yet, and need not be. */
static void drop_task(struct queue_room *q, const char *id)
{
	pthread_mutex_lock(&q->lock);
	for (struct qtask **at = &q->tasks; *at; at = &(*at)->next)
		if ((*at)->kind != QT_SEAL && strcmp((*at)->id, id) == 0) {
			free(take_task(q, at));
			break;
		}
	pthread_mutex_unlock(&q->lock);
}

void queue_cancel_id(struct mount *m, const char *id, const char *why)
{
	drop_task(m->queue, id);
	struct qjob *j = find_held(m->queue, id);
	if (j)
		queue_cancel(m->queue, j, why);
	queue_drop(j);
}

void queue_job_event(struct mount *m, const struct news *n)
{
	struct queue_room *q = m->queue;
	enum routed state;
	if (!q || routed_parse(&state, bytes_str(n->word)) < 0)
		return;
	bool ours = n->has_pub && memcmp(n->pub, m->peer->pub, PRIM_PUB) == 0;
	switch (state) {
	case ROUTED_ASSIGNED: case ROUTED_RUNNING:
		if (ours && is_fresh(q, n->id))
			queue_ask(q, QT_LOOK, n->id, NULL, 0, 0);
		break;
	case ROUTED_FAILED:
		queue_cancel_id(m, n->id, n->reason && *n->reason ? n->reason
			  : "the relay ended it");
		break;
	case ROUTED_DONE:
		queue_cancel_id(m, n->id, "the relay has a result of it");
		break;
	}
}

void queue_item(struct mount *m, const char *id)
{
	struct queue_room *q = m->queue;
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->kicks++;
	for (struct qtask **at = &q->tasks; *at; at = &(*at)->next)
		if (strcmp((*at)->id, id) == 0) {
			struct qtask *t = take_task(q, at);
			t->due_ms = 0;
			put_task(q, t);
			break;
		}
	pthread_mutex_unlock(&q->lock);
}

static int note_approval(struct queue_room *q, const struct payload *p,
			 struct err *e)
{
	bool yes = p->u.event.event == EVENT_RUNNER_APPROVE;
	enum qknown kind = yes ? QK_APPROVED : QK_REJECTED;
	if (memcmp(p->u.event.pub, q->m->peer->pub, PRIM_PUB) != 0)
		return 0;
	if (queue_note(q, kind, NULL, "", true, e) < 0)
		return -1;
	pthread_mutex_lock(&q->lock);
	*(yes ? &q->approved : &q->rejected) = true;
	for (struct qtask *t = q->tasks; t; t = t->next)
		t->due_ms = 0;		/* one may have waited for this */
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	mount_log(q->m, "the owner %s this runner", yes ? "approved"
							: "rejected");
	return 0;
}

int queue_event(struct mount *m, const struct payload *event,
		const struct cert *author, struct err *e)
{
	struct queue_room *q = m->queue;
	if (!q || event->kind != ITEM_EVENT)
		return 0;
	if (event->u.event.event == EVENT_RUNNER_APPROVE ||
	    event->u.event.event == EVENT_RUNNER_REJECT)
		return note_approval(q, event, e);
	if (event->u.event.event != EVENT_JOB_CANCEL)
		return 0;
	const struct item_ref *ref = &event->u.event.job;
	struct qjob *j = find_held(q, ref->id);
	if (j && (author->role == ROLE_OWNER ||
		  memcmp(author->pub, j->author, PRIM_PUB) == 0) &&
	    memcmp(ref->sha256, j->ref.sha256, HASH_SIZE) == 0)
		queue_cancel(q, j, "cancelled by its sender");
	queue_drop(j);
	return 0;
}

/* Calls each for every job, with none of the locks. */
static void each_job(struct queue_room *q,
		     void (*each)(struct queue_room *q, struct qjob *j,
				  const char *why), const char *why)
{
	struct qjob *v[QUEUE_OPEN_MAX];
	size_t n = 0;
	pthread_mutex_lock(&q->lock);
	for (struct qjob *j = q->jobs; j && n < QUEUE_OPEN_MAX; j = j->next) {
		queue_hold(j);
		v[n++] = j;
	}
	pthread_mutex_unlock(&q->lock);
	for (size_t i = 0; i < n; i++) {
		each(q, v[i], why);
		queue_drop(v[i]);
	}
}

void queue_over(struct mount *m, const char *why)
{
	if (m->queue)
		each_job(m->queue, queue_cancel, why);
}

void queue_posted(struct mount *m, const char *key, const struct err *why)
{
	const char *id = key + strlen(QUEUE_KEY);
	struct queue_room *q = m->queue;
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	if (strcmp(q->beat_job, id) == 0)
		q->beat_job[0] = 0;
	pthread_mutex_unlock(&q->lock);
	queue_tell(m, id, why ? "result not taken" : "result sent",
		   why ? why->why : NULL);
}

/* --- life --- */

struct queue_room *queue_new(struct mount *m, struct err *e)
{
	struct queue_room *q = calloc(1, sizeof *q);
	if (!q) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	q->m = m;
	pthread_mutex_init(&q->lock, NULL);
	pthread_mutex_init(&q->journal_lock, NULL);
	pthread_cond_init(&q->work, NULL);
	pthread_cond_init(&q->beat, NULL);
	pthread_cond_init(&q->print, NULL);
	pthread_cond_init(&q->claimed, NULL);
	m->queue = q;
	q->dir = file_make_dir(m->store->dir, "work", e);
	if (q->dir >= 0 && queue_load(q, e) == 0) {
		queue_out_load(q);
		return q;
	}
	m->queue = NULL;
	queue_free(q);
	return NULL;
}

int queue_start(struct mount *m, struct err *e)
{
	struct queue_room *q = m->queue;
	q->work_wire = peer_wire(m->peer, e);
	if (!q->work_wire || queue_net_start(q, e) < 0)
		return -1;
	if (pthread_create(&q->worker, NULL, worker_thread, q))
		return err_sys(e, "cannot start a thread");
	q->has_worker = true;
	return 0;
}

static void end_job(struct queue_room *q, struct qjob *j, const char *why)
{
	struct err e;
	pthread_mutex_lock(&q->lock);
	bool runs = j->state == Q_CLAIMED || j->state == Q_CLAIMING;
	pthread_mutex_unlock(&q->lock);
	if (runs && queue_finish(j, RESULT_FAILED, why, &e) < 0)
		mount_failed(q->m, &e);
}

/* What has ended is sealed before the worker goes. */
static void seal_rest(struct queue_room *q)
{
	while (q->tasks) {
		struct qtask *t = q->tasks;
		q->tasks = t->next;
		if (t->kind == QT_SEAL)
			queue_seal(q, t->job);
		queue_drop(t->job);
		free(t);
	}
}

void queue_stop(struct mount *m, const char *why)
{
	struct queue_room *q = m->queue;
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	bool ended = q->ending;
	pthread_mutex_unlock(&q->lock);
	if (ended)
		return;
	each_job(q, end_job, why);
	pthread_mutex_lock(&q->lock);
	q->ending = true;
	pthread_cond_broadcast(&q->work);
	pthread_cond_broadcast(&q->beat);
	pthread_cond_broadcast(&q->print);
	pthread_cond_broadcast(&q->claimed);
	pthread_mutex_unlock(&q->lock);
	if (q->work_wire)
		wire_abort(q->work_wire);
	if (q->has_worker)
		pthread_join(q->worker, NULL);
	q->has_worker = false;
	queue_net_stop(q);
	seal_rest(q);
}

void queue_free(struct queue_room *q)
{
	if (!q)
		return;
	while (q->tasks) {
		struct qtask *t = q->tasks;
		q->tasks = t->next;
		queue_drop(t->job);
		free(t);
	}
	while (q->jobs) {
		struct qjob *j = q->jobs;
		q->jobs = j->next;
		queue_drop(j);
	}
	wire_free(q->work_wire);
	journal_close(q->journal);
	if (q->dir >= 0)
		close(q->dir);
	free(q->ids);
	pthread_cond_destroy(&q->work);
	pthread_cond_destroy(&q->beat);
	pthread_cond_destroy(&q->print);
	pthread_cond_destroy(&q->claimed);
	pthread_mutex_destroy(&q->journal_lock);
	pthread_mutex_destroy(&q->lock);
	free(q);
}
