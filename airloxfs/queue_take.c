/* SPDX-License-Identifier: MIT
 *
 * From an id to a job that can be run: job and inputs are fetched and verified
 * to the end, what the session does not allow is refused, archives are
 * unpacked (in the child of core/host/check.h) into one encrypted vault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/in.h"
#include "airloxfs/queue_private.h"
#include "core/enc.h"
#include "core/host/check.h"
#include "core/host/job.h"
#include "core/host/opened.h"

#define SECTOR 4096		/* of a vault: each file begins with one */
#define CHUNK (256 * 1024)

struct taking {
	struct queue_room *q;
	struct qjob *j;
	struct hash *inputs;	/* over their blobs, in order */
	struct err *e;
	bool last;		/* nothing is waited for any longer */
};

/* What is to be a result, and not tried again: the job's own fault. */
static bool is_fault(const struct err *e)
{
	return e->code >= ERR_INVALID && e->code <= ERR_CONTENT;
}

/* --- the work directory --- */

static int add_entry(struct taking *t, struct queue_entry *w)
{
	struct qjob *j = t->j;
	w->off = (vault_size(j->work) + SECTOR - 1) / SECTOR * SECTOR;
	j->work_bytes += w->n;
	if (++j->work_files > QUEUE_WORK_FILES ||
	    j->work_bytes > QUEUE_WORK_BYTES)
		return err_set(t->e, ERR_CONTENT, "its inputs are more than "
			       "%d files or %llu MiB", QUEUE_WORK_FILES,
			       (unsigned long long)QUEUE_WORK_BYTES >> 20);
	if (queue_dir_work(j, w, t->e) < 0)
		return -1;
	return w->n ? vault_truncate(j->work, w->off, t->e) : 0;
}

static int add_data(struct taking *t, const void *p, size_t n)
{
	struct vault *v = t->j->work;
	return vault_write(v, vault_size(v), p, n, t->e);
}

static int unpack_entry(void *arg, const char *path, uint64_t size,
			bool is_dir, bool is_exec, struct err *e)
{
	struct taking *t = arg;
	struct queue_entry w = { path, 0, size, is_dir, is_exec };
	(void)e;		/* t->e is the same */
	return add_entry(t, &w);
}

static int unpack_data(void *arg, const void *p, size_t n, struct err *e)
{
	(void)e;
	return add_data(arg, p, n);
}

static int add_file(struct taking *t, const struct opened *o)
{
	cleanup_buf struct buf name = { 0 };
	cleanup_free uint8_t *chunk = malloc(CHUNK);
	buf_add(&name, o->payload.u.file.name.p, o->payload.u.file.name.n);
	struct queue_entry w = { buf_cstr(&name), 0, o->body_n, false, false };
	if (!w.path || !chunk)
		return err_set(t->e, ERR_MEMORY, "out of memory");
	int rc = add_entry(t, &w);
	for (uint64_t at = 0; rc == 0 && at < w.n;) {
		size_t n = w.n - at < CHUNK ? (size_t)(w.n - at) : CHUNK;
		rc = o->body.read(o->body.arg, at, chunk, n) < 0
			? err_set(t->e, ERR_SYS, "an input cannot be read")
			: add_data(t, chunk, n);
		at += n;
	}
	prim_wipe(chunk, CHUNK);
	return rc;
}

/* --- inputs --- */

static int hash_blob(void *arg, const void *p, size_t n)
{
	hash_add(arg, p, n);
	return 0;
}

/* An archive is looked at while it is unpacked. */
static int look_at(enum item_type type, const char *mime,
		   const struct zip_source *body, struct err *e)
{
	return type == TYPE_ZIP ? 0 : content_check(type, mime, body, e);
}

static int open_input(struct taking *t, const struct incoming *inc, int fd)
{
	const struct zip_sink sink = { hash_blob, t->inputs };
	const struct check_unpack to = { unpack_entry, unpack_data, t };
	struct opened *o = opened_new(t->q->m->peer, inc, fd, look_at, &sink,
				      t->e);
	if (!o)
		return -1;
	bool is_zip = inc->env.header.type == TYPE_ZIP;
	int rc = is_zip ? check_unzip(&o->body, &to, t->e) : add_file(t, o);
	opened_free(o);
	if (rc < 0 && is_zip && t->e->code == ERR_TIMEOUT)
		t->e->code = ERR_CONTENT;	/* once is enough */
	return rc;
}

static int fetch_input(struct taking *t, struct incoming *inc,
		       const struct item_ref *ref)
{
	struct mount *m = t->q->m;
	if (inc->env.header.kind != ITEM_FILE)
		return err_set(t->e, ERR_POLICY, "an input of it is no file");
	cleanup_fd int fd = peer_fetch(m->peer, t->q->work_wire, inc, NULL,
				       NULL, t->e);
	if (fd < 0 && t->e->code == ERR_NOT_FOUND)
		return err_set(t->e, t->last ? ERR_POLICY : ERR_TIMEOUT,
			       "an input of it is not at the relay");
	if (fd < 0 && t->e->code == ERR_FORBIDDEN)
		return err_set(t->e, ERR_POLICY, "the relay gives an input of "
			       "it to no runner");
	if (fd < 0)
		return -1;
	if (memcmp(inc->ref.sha256, ref->sha256, HASH_SIZE) != 0)
		return err_set(t->e, ERR_POLICY, "an input of it is not the "
			       "one that it names");
	return open_input(t, inc, fd);
}

static int take_input(struct taking *t, const struct item_ref *ref)
{
	cleanup_buf struct buf raw = { 0 };
	struct mount *m = t->q->m;
	uint64_t seq;
	struct incoming *inc = in_envelope(m, ref->id, &seq, &raw) == 0
		? in_incoming(m, seq, buf_bytes(&raw)) : NULL;
	if (!inc)
		return err_set(t->e, t->last ? ERR_POLICY : ERR_TIMEOUT,
			       "an input of it is not in this session");
	int rc = fetch_input(t, inc, ref);
	incoming_free(inc);
	return rc;
}

static int take_files(struct taking *t, const struct payload *p)
{
	cleanup_buf struct buf name = { 0 };
	buf_add(&name, p->u.job.filename.p, p->u.job.filename.n);
	struct queue_entry w = { buf_cstr(&name), 0, p->u.job.code.n, false,
				 false };
	t->j->work = queue_vault(t->q, 'w', t->e);
	if (!t->j->work)
		return -1;
	if (!w.path)
		return err_set(t->e, ERR_MEMORY, "out of memory");
	int rc = add_entry(t, &w);
	if (rc == 0)
		rc = add_data(t, p->u.job.code.p, p->u.job.code.n);
	for (size_t i = 0; rc == 0 && i < p->u.job.file_n; i++)
		rc = take_input(t, &p->u.job.files[i]);
	return rc;
}

/* --- what the session allows, beyond payload_check --- */

static bool has_label(const struct runner_info *me, struct bytes label)
{
	for (size_t i = 0; i < me->label_n; i++)
		if (bytes_eq(label, bytes_str(me->labels[i])))
			return true;
	return false;
}

static int check_target(struct mount *m, const struct target *t, struct err *e)
{
	int rc = 0;
	mount_lock(m);
	const struct participant *me = people_find(&m->peer->people,
						   m->peer->pub);
	if (!me || !me->join.has_runner)
		rc = err_set(e, ERR_TIMEOUT, "this runner is not known to the "
			     "session yet");
	else if (t->kind == TARGET_RUNNER &&
		 !bytes_eq(t->name, bytes_str(me->join.runner.name)))
		rc = err_set(e, ERR_POLICY, "it is for a runner of another "
			     "name");
	for (size_t i = 0; rc == 0 && t->kind == TARGET_LABELS &&
	     i < t->label_n; i++)
		if (!has_label(&me->join.runner, t->labels[i]))
			rc = err_set(e, ERR_POLICY, "it is for a runner with "
				     "other labels");
	mount_unlock(m);
	return rc;
}

static int check_policy(struct taking *t, const struct payload *p)
{
	struct mount *m = t->q->m;
	const struct job job = { .ref = t->j->ref, .payload = *p };
	pthread_mutex_lock(&t->q->lock);
	struct approval_list l = {
		.approved = &m->peer->pub, .approved_n = t->q->approved,
		.rejected = &m->peer->pub, .rejected_n = t->q->rejected };
	pthread_mutex_unlock(&t->q->lock);
	if (check_target(m, &p->u.job.target, t->e) < 0)
		return -1;
	if (job_may_run(&job, &m->peer->manifest, &l, m->peer->pub))
		return 0;
	bool waits = !t->last && !l.rejected_n &&
		m->peer->manifest.job.approve_runners && !l.approved_n;
	return err_set(t->e, waits ? ERR_TIMEOUT : ERR_POLICY, waits ||
		       !l.approved_n ? "the owner has not approved this runner"
		       : "it is for another runner");
}

/* --- one job --- */

static int open_job(struct taking *t, const struct incoming *inc,
		    const struct payload *p)
{
	cleanup_buf struct buf spec = { 0 }, from = { 0 };
	uint8_t sum[HASH_SIZE];
	if (queue_dir_begin(t->j, t->e) < 0 || take_files(t, p) < 0)
		return -1;
	hash_final(t->inputs, sum);
	enc_hex(t->j->input_sha256, sum, sizeof sum);
	queue_put_spec(&spec, t->q->m, inc, p);
	queue_put_from(&from, t->q->m, inc);
	if (buf_failed(&spec) || buf_failed(&from))
		return err_set(t->e, ERR_MEMORY, "out of memory");
	return queue_dir_finish(t->j, buf_bytes(&spec), buf_bytes(&from),
				t->e);
}

static int appear(struct taking *t)
{
	struct queue_room *q = t->q;
	struct qjob *j = t->j;
	size_t n = 0;
	pthread_mutex_lock(&q->lock);
	for (const struct qjob *k = q->jobs; k; k = k->next)
		n++;
	if (n < QUEUE_OPEN_MAX) {
		j->state = Q_OPEN;
		queue_list(q, j);
	}
	pthread_mutex_unlock(&q->lock);
	if (n >= QUEUE_OPEN_MAX)
		return err_set(t->e, ERR_FULL, "too many jobs at a time");
	queue_dir_reveal(j);
	queue_tell(q->m, j->id, "assigned", NULL);
	return 0;
}

/* The payload is verified, or what is wrong with it is in t->e. */
static int decide(struct taking *t, const struct incoming *inc,
		  const struct opened *o, bool run)
{
	struct qjob *j = t->j;
	const struct payload *p = o ? &o->payload : NULL;
	job_code_hash(j->code_sha256, p ? p->u.job.code : (struct bytes){ 0 });
	if (p && !run)
		return queue_refuse(j, RESULT_FAILED, QUEUE_RESTARTED, t->e);
	if (p && check_policy(t, p) == 0 && open_job(t, inc, p) == 0)
		return appear(t);
	queue_dir_vanish(j);
	if (!is_fault(t->e))
		return -1;
	struct err why = *t->e;
	cleanup_buf struct buf text = { 0 };
	buf_addf(&text, "%s: %s", err_class(why.code), why.why);
	return queue_refuse(j, RESULT_REFUSED, buf_cstr(&text), t->e);
}

static int take_blob(struct queue_room *q, struct incoming *inc, int fd,
		     bool run, bool last, struct err *e)
{
	struct taking t = { .q = q, .e = e, .last = last,
			    .inputs = hash_new(),
			    .j = queue_job_new(q, inc->env.header.id) };
	int rc = t.j && t.inputs ? 0 : err_set(e, ERR_MEMORY, "out of memory");
	struct opened *o = NULL;
	if (rc == 0) {
		uint8_t none[HASH_SIZE];
		hash_sha256(none, "", 0);
		enc_hex(t.j->input_sha256, none, sizeof none);
		t.j->ref = inc->ref;
		memcpy(t.j->author, inc->author.pub, PRIM_PUB);
		o = opened_new(q->m->peer, inc, fd, NULL, NULL, e);
		rc = o || is_fault(e) ? decide(&t, inc, o, run) : -1;
	}
	opened_free(o);
	hash_free(t.inputs);
	queue_drop(t.j);
	return rc;
}

/* Heard of once, it is looked for again after a crash. */
static int note_assigned(struct queue_room *q, const char *id, struct err *e)
{
	pthread_mutex_lock(&q->lock);
	bool news = queue_known(q, id) == QK_NONE;
	int rc = news ? queue_remember(q, id, QK_ASSIGNED) : 0;
	pthread_mutex_unlock(&q->lock);
	if (rc < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	return news ? queue_note(q, QK_ASSIGNED, NULL, id, false, e) : 0;
}

int queue_take(struct queue_room *q, const char *id, bool run, bool last,
	       struct err *e)
{
	struct mount *m = q->m;
	cleanup_buf struct buf raw = { 0 };
	uint64_t seq;
	if (in_envelope(m, id, &seq, &raw) < 0)
		return err_set(e, ERR_TIMEOUT, "its item has not come");
	struct incoming *inc = in_incoming(m, seq, buf_bytes(&raw));
	if (!inc || inc->env.header.kind != ITEM_JOB) {
		incoming_free(inc);
		return err_set(e, ERR_POLICY, "it is no job, or nobody's");
	}
	int rc = note_assigned(q, id, e);
	int fd = rc < 0 ? -1 : peer_fetch(m->peer, q->work_wire, inc, NULL,
					  NULL, e);
	rc = -1;
	if (fd >= 0)
		rc = take_blob(q, inc, fd, run, last, e);
	else if (is_fault(e))	/* not signed: nobody's job */
		in_refuse(m, seq, id, inc->author_shown, e), rc = 0;
	if (fd >= 0)
		close(fd);
	incoming_free(inc);
	return rc;
}
