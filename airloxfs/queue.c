/* SPDX-License-Identifier: MIT
 *
 * Which jobs there are, what the journal knows of them, and how the room begins
 * and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/queue_private.h"
#include "airloxfs/tell_json.h"
#include "core/clear.h"
#include "core/enc.h"
#include "core/host/file.h"

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

struct qjob *queue_find_held(struct queue_room *q, const char *id)
{
	pthread_mutex_lock(&q->lock);
	struct qjob *j = queue_find(q, id);
	if (j)
		queue_hold(j);
	pthread_mutex_unlock(&q->lock);
	return j;
}

/* Calls each for every job, with none of the locks. */
void queue_each(struct queue_room *q,
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
	return queue_work_start(q, e);
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

void queue_give_up(struct mount *m, const char *why)
{
	if (m->queue)
		queue_each(m->queue, end_job, why);
}

size_t queue_unsealed(struct mount *m)
{
	struct queue_room *q = m->queue;
	size_t n = 0;
	if (!q)
		return 0;
	pthread_mutex_lock(&q->lock);
	for (const struct qjob *j = q->jobs; j; j = j->next)
		n += j->state == Q_ENDING;
	pthread_mutex_unlock(&q->lock);
	return n;
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
	queue_give_up(m, why);
	pthread_mutex_lock(&q->lock);
	q->ending = true;
	pthread_cond_broadcast(&q->work);
	pthread_cond_broadcast(&q->beat);
	pthread_cond_broadcast(&q->print);
	pthread_cond_broadcast(&q->claimed);
	pthread_mutex_unlock(&q->lock);
	queue_work_stop(q);
	queue_net_stop(q);
	queue_seal_rest(q);
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
