/* SPDX-License-Identifier: MIT
 *
 * What is never forgotten: which jobs this runner claimed, and how they ended.
 * A record is canonical JSON with all fields, empty where its kind has no use
 * for them; the journal seals it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/queue_private.h"
#include "core/host/file.h"
#include "core/json.h"

#define JOURNAL "queue"
#define JOURNAL_OLD "queue.old"
#define JOURNAL_MAX ((uint64_t)16 << 20)	/* bytes, then it is begun anew */

static void put_record(struct buf *b, enum qknown kind, const char *id,
		       const struct qjob *j)
{
	static const struct qjob none;
	const struct qend *end = kind == QK_FINISHED ? &j->end : &none.end;
	const struct qjob *o = j ? j : &none;
	buf_add_byte(b, '{');
	json_put_key_string(b, "code", bytes_str(o->code_sha256));
	json_put_key_string(b, "err", buf_bytes(&end->err));
	json_put_key_int(b, "err_cut", end->err_cut);
	json_put_key_int(b, "exit", end->exit);
	json_put_key_int(b, "has_exit", end->has_exit);
	json_put_key_string(b, "id", bytes_str(id));
	json_put_key_string(b, "input", bytes_str(o->input_sha256));
	json_put_key_int(b, "kind", (int64_t)kind);
	json_put_key_string(b, "out", buf_bytes(&end->out));
	json_put_key_int(b, "out_cut", end->out_cut);
	json_put_key_int(b, "peak", end->peak_mem_mb);
	json_put_key_string(b, "reason", buf_bytes(&end->reason));
	json_put_key(b, "sha");
	json_put_b64(b, o->ref.sha256, HASH_SIZE);
	json_put_key_int(b, "status", (int64_t)end->status);
	json_put_key_int(b, "wall", end->wall_ms);
	buf_add_byte(b, '}');
}

/* With journal_lock. */
static int append(struct queue_room *q, enum qknown kind, const struct qjob *j,
		  const char *id, struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	uint64_t at;
	put_record(&b, kind, id, j);
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	q->written += b.len;
	return journal_append(q->journal, buf_bytes(&b), &at, e);
}

int queue_note(struct queue_room *q, enum qknown kind, const struct qjob *j,
	       const char *id, bool sync, struct err *e)
{
	pthread_mutex_lock(&q->journal_lock);
	int rc = append(q, kind, j, id, e);
	if (rc == 0 && sync)
		rc = journal_sync(q->journal, e);
	pthread_mutex_unlock(&q->journal_lock);
	return rc;
}

/* --- reading --- */

/* A word of exactly n characters, or none. */
static void take_word(struct json_reader *r, const char *key, char *to,
		      size_t n)
{
	struct bytes s = json_take_string(r, key);
	bool good = s.n == n || s.n == 0;
	for (size_t i = 0; good && i < s.n; i++)
		good = s.p[i] > ' ' && s.p[i] < 0x7f;
	if (!good) {
		json_fail(r, key, "is no such word");
		return;
	}
	if (s.n)
		memcpy(to, s.p, s.n);
	to[s.n] = 0;
}

static void keep_text(struct buf *to, struct bytes s)
{
	buf_add(to, s.p, s.n);
}

/* Fills j (its end too, where the record has one).  The kind, or -1. */
static int parse(struct bytes record, struct qjob *j, struct err *e)
{
	struct json *doc = json_parse(record, e);
	struct qend *end = &j->end;
	struct json_reader r;
	if (!doc)
		return -1;
	json_open(&r, doc, "queue record");
	take_word(&r, "code", j->code_sha256, 2 * HASH_SIZE);
	keep_text(&end->err, json_take_string(&r, "err"));
	end->err_cut = json_take_int(&r, "err_cut", 0, 1);
	end->exit = json_take_int(&r, "exit", INT32_MIN, INT32_MAX);
	end->has_exit = json_take_int(&r, "has_exit", 0, 1);
	take_word(&r, "id", j->id, ITEM_ID);
	take_word(&r, "input", j->input_sha256, 2 * HASH_SIZE);
	int kind = (int)json_take_int(&r, "kind", QK_ASSIGNED, QK_KINDS - 1);
	keep_text(&end->out, json_take_string(&r, "out"));
	end->out_cut = json_take_int(&r, "out_cut", 0, 1);
	end->peak_mem_mb = json_take_int(&r, "peak", 0, UINT32_MAX);
	keep_text(&end->reason, json_take_string(&r, "reason"));
	json_take_fixed(&r, "sha", j->ref.sha256, HASH_SIZE);
	end->status = (enum result_status)json_take_int(&r, "status", 0,
							RESULT_FAILED);
	end->wall_ms = json_take_int(&r, "wall", 0, JSON_INT_MAX);
	int rc = json_close(&r, e);
	json_free(doc);
	memcpy(j->ref.id, j->id, sizeof j->ref.id);
	return rc < 0 ? -1 : kind;
}

static int load_record(void *arg, uint64_t at, struct bytes record,
		       struct err *e)
{
	struct queue_room *q = arg;
	struct qjob j = { 0 };
	int kind = parse(record, &j, e);
	queue_end_free(&j.end);
	q->written += record.n;
	if (kind < 0) {
		mount_log(q->m, "a record of the queue was left out: %s",
			  e->why);
		return 0;
	}
	if (kind == QK_APPROVED)
		q->approved = true;
	else if (kind == QK_REJECTED)
		q->rejected = true;
	else if (queue_remember(q, j.id, (enum qknown)kind) < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (size_t i = 0; i < q->id_n; i++)
		if (strcmp(q->ids[i].id, j.id) == 0)
			q->ids[i].at = at;
	return 0;
}

/* A claimed job of an earlier life: it ends now, if it had not ended then. */
static void take_up(struct queue_room *q, const struct qid *known)
{
	struct err e;
	cleanup_buf struct buf record = { 0 };
	struct qjob *j = queue_job_new(q, known->id);
	bool finished = known->known == QK_FINISHED;
	if (!j || journal_read(q->journal, known->at, &record, &e) < 0 ||
	    parse(buf_bytes(&record), j, &e) < 0) {
		queue_drop(j);
		return;
	}
	if (!finished) {
		j->end.status = RESULT_FAILED;
		buf_add_str(&j->end.reason, QUEUE_RESTARTED);
	}
	j->state = Q_ENDING;
	if (!finished && queue_note(q, QK_FINISHED, j, j->id, true, &e) < 0)
		mount_failed(q->m, &e);
	if (!finished)
		queue_tell(q->m, j->id, "failed", QUEUE_RESTARTED);
	pthread_mutex_lock(&q->lock);
	queue_list(q, j);
	pthread_mutex_unlock(&q->lock);
	queue_ask(q, QT_SEAL, j->id, j, 0, 0);
	queue_drop(j);
}

/* Where the outbox has the result, it goes by itself. */
static bool in_outbox(struct queue_room *q, const char *id)
{
	char key[sizeof QUEUE_KEY + ITEM_ID];
	snprintf(key, sizeof key, QUEUE_KEY "%s", id);
	struct outbox_outcome o = outbox_outcome(q->m->outbox, key);
	if (o.known && o.gen >= QUEUE_GEN_RESULT)
		return true;
	if (o.known)		/* killed between its files and itself */
		outbox_forget(q->m->outbox, key);
	return false;
}

static void settle_one(struct queue_room *q, const struct qid *known)
{
	struct err e;
	switch (known->known) {
	case QK_ASSIGNED:
		queue_ask(q, QT_LOOK, known->id, NULL, 0, 0);
		break;
	case QK_CLAIMED: case QK_FINISHED:
		if (!in_outbox(q, known->id))
			take_up(q, known);
		else if (queue_note(q, QK_ENDED, NULL, known->id, false,
				    &e) < 0)
			mount_failed(q->m, &e);
		break;
	case QK_NONE: case QK_ENDED: case QK_APPROVED: case QK_REJECTED:
	case QK_KINDS:
		break;
	}
}

int queue_load(struct queue_room *q, struct err *e)
{
	uint64_t cut = 0;
	int dir = q->m->store->dir;
	if (renameat(dir, JOURNAL_OLD, dir, JOURNAL) < 0 && errno != ENOENT)
		return err_sys(e, "the queue's journal cannot be found again");
	q->journal = store_journal(q->m->store, JOURNAL, load_record, q, &cut,
				   e);
	if (!q->journal)
		return -1;
	if (cut)
		mount_log(q->m, "the queue's journal had a damaged end of %llu "
			  "bytes", (unsigned long long)cut);
	for (size_t i = 0; i < q->id_n; i++)
		settle_one(q, &q->ids[i]);
	/* the outbox may forget what it knows after this */
	return journal_sync(q->journal, e);
}

/* --- beginning anew --- */

/* With both locks. */
static int write_ids(struct queue_room *q, struct err *e)
{
	int rc = 0;
	q->written = 0;
	if (q->approved)
		rc = append(q, QK_APPROVED, NULL, "", e);
	if (rc == 0 && q->rejected)
		rc = append(q, QK_REJECTED, NULL, "", e);
	for (size_t i = 0; rc == 0 && i < q->id_n; i++)
		rc = append(q, q->ids[i].known, NULL, q->ids[i].id, e);
	return rc < 0 ? -1 : journal_sync(q->journal, e);
}

/* With both locks.  The old one is complete until it is gone: found beside a
 * new one, it is the journal. */
static int replace(struct queue_room *q, struct err *e)
{
	uint64_t cut;
	int dir = q->m->store->dir;
	struct journal *old = q->journal;
	if (renameat(dir, JOURNAL, dir, JOURNAL_OLD) < 0)
		return err_sys(e, "the queue's journal cannot be begun anew");
	q->journal = store_journal(q->m->store, JOURNAL, NULL, NULL, &cut, e);
	if (!q->journal || write_ids(q, e) < 0) {
		journal_close(q->journal);
		q->journal = old;
		renameat(dir, JOURNAL_OLD, dir, JOURNAL);
		return -1;
	}
	journal_close(old);
	if (unlinkat(dir, JOURNAL_OLD, 0) < 0)
		return err_sys(e, "the queue's old journal cannot be removed");
	return file_fsync_dir(dir, e);
}

void queue_renew(struct queue_room *q)
{
	struct err e;
	pthread_mutex_lock(&q->lock);
	pthread_mutex_lock(&q->journal_lock);
	if (q->written > JOURNAL_MAX && !q->jobs && replace(q, &e) < 0) {
		q->written = 0;		/* tried again after as much more */
		mount_failed(q->m, &e);
	}
	pthread_mutex_unlock(&q->journal_lock);
	pthread_mutex_unlock(&q->lock);
}
