/* SPDX-License-Identifier: MIT
 *
 * What comes back: live output, the verified result, the files it wrote.
 *
 * A result ends its job once the files that it names are here too (they are
 * items of in/, posted before it), so that who waited finds them in out/. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/in.h"
#include "airloxfs/jobs_private.h"
#include "core/clear.h"
#include "core/host/check.h"
#include "core/name.h"

#define COPY_CHUNK ((size_t)256 * 1024)
#define SYNC_EACH 32		/* more files than this are synced at once */

/* --- live output --- */

void jobs_live(struct mount *m, const struct event *ev)
{
	struct jobs *j = m->jobs;
	struct progress p;
	struct err e;
	enum progress_stream stream;
	cleanup_buf struct buf out = { 0 };
	if (!j || strcmp(ev->kind, PROGRESS_EVENT) != 0 ||
	    progress_parse(&p, ev->data, &e) < 0)
		return;
	pthread_mutex_lock(&j->lock);
	struct submitted *s = jobs_of_item(j, p.job);
	if (s && !jobs_state_is_final(s->state)) {
		if (s->has_runner && !s->live.has_runner)
			live_runner(&s->live, &s->job, &m->peer->manifest,
				    runners_list(j->runners), s->runner);
		if (live_hear(&s->live, m->peer, &s->job, ev, &stream, &out,
			      &e) == 1)
			jobs_text_grow(s, stream == PROGRESS_STDOUT
				       ? JOBS_STDOUT : JOBS_STDERR,
				       buf_bytes(&out));
	}
	pthread_mutex_unlock(&j->lock);
	progress_free(&p);
}

/* --- may it be? --- */

/* Of somebody else's job, which in/ does not show but the index knows. */
static int check_other(struct mount *m, const struct incoming *inc,
		       const struct opened *o, struct err *e)
{
	struct jobs *j = m->jobs;
	const struct item_ref *ref = &o->payload.u.result.job;
	struct in_again a;
	struct job job;
	int rc = 0;
	if (in_again(m, ref->id, &a, NULL) < 0)
		return approval_stands(runners_list(j->runners),
				       &m->peer->manifest, inc->author.pub) ?
			0 : err_set(e, ERR_POLICY, "result: from a runner "
				    "that the owner has not approved");
	if (job_read(&job, &a.opened->ref, buf_bytes(&a.opened->meta),
		     e) < 0) {
		rc = err_set(e, ERR_POLICY, "result: of an item that is no "
			     "job");
	} else {
		rc = job_accepts(&job, &o->payload, &inc->author,
				 &m->peer->manifest, runners_list(j->runners),
				 e);
		job_free(&job);
	}
	in_again_free(&a);
	return rc;
}

static int check_result(struct mount *m, const struct incoming *inc,
			const struct opened *o, struct err *e)
{
	struct jobs *j = m->jobs;
	struct submitted *s = jobs_of_item(j, o->payload.u.result.job.id);
	if (!s)
		return check_other(m, inc, o, e);
	if (s->verified || s->awaited.len || s->finishing)
		return err_set(e, ERR_POLICY, "result: jobs/%s has one already",
			       s->name);
	return job_accepts(&s->job, &o->payload, &inc->author,
			   &m->peer->manifest, runners_list(j->runners), e);
}

/* The header's refs are what the relay took it for. */
static void note_refused(struct jobs *j, const struct incoming *inc)
{
	const struct item_header *h = &inc->env.header;
	for (size_t i = 0; i < h->ref_n; i++) {
		struct submitted *s = jobs_of_item(j, h->refs[i].id);
		if (s)
			jobs_refused(s);
	}
}

int jobs_check(struct mount *m, const struct incoming *inc,
	       const struct opened *o, struct err *e)
{
	struct jobs *j = m->jobs;
	int rc = 0;
	if (!j)
		return 0;
	pthread_mutex_lock(&j->lock);
	if (o->payload.kind == ITEM_EVENT)
		rc = runners_event(j->runners, &o->payload, inc->author.role,
				   e);
	else if (o->payload.kind == ITEM_RESULT)
		rc = check_result(m, inc, o, e);
	if (rc < 0 && o->payload.kind == ITEM_RESULT)
		note_refused(j, inc);
	pthread_mutex_unlock(&j->lock);
	return rc;
}

/* --- the files it wrote --- */

struct collecting {
	struct submitted *s;
	struct jobs_out *v;
	size_t n;
	struct vault *to;	/* of the last one; open while it is written */
};

static bool has_path(const struct collecting *c, const char *path)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->v[i].path, path))
			return true;
	return false;
}

static int end_file(struct collecting *c, struct err *e)
{
	if (!c->to)
		return 0;
	int rc = c->n > SYNC_EACH ? vault_flush_header(c->to, e)
				  : vault_sync(c->to, e);
	c->v[c->n - 1].size = vault_size(c->to);
	vault_close(c->to);
	c->to = NULL;
	return rc;
}

static int begin_file(struct collecting *c, const char *path, struct err *e)
{
	const struct jobs *j = c->s->m->jobs;
	const struct store *st = c->s->m->store;
	char what[12];
	if (end_file(c, e) < 0)
		return -1;
	void *v = realloc(c->v, (c->n + 1) * sizeof *c->v);
	if (!v)
		return err_set(e, ERR_MEMORY, "out of memory");
	c->v = v;
	struct jobs_out *o = &c->v[c->n];
	*o = (struct jobs_out){ .path = strdup(path) };
	if (!o->path)
		return err_set(e, ERR_MEMORY, "out of memory");
	snprintf(what, sizeof what, "o%zu", c->n++);
	jobs_vault_id(c->s, what, o->vault);
	vault_unlink(j->dir, o->vault, NULL);
	c->to = vault_create(j->dir, o->vault, st->session_key,
			     st->session_id, e);
	return c->to ? 0 : -1;
}

static int on_entry(void *arg, const char *path, uint64_t size, bool is_dir,
		    bool is_exec, struct err *e)
{
	(void)size, (void)is_exec;
	struct collecting *c = arg;
	if (is_dir || has_path(c, path))
		return end_file(c, e);
	return begin_file(c, path, e);
}

static int on_data(void *arg, const void *p, size_t n, struct err *e)
{
	struct collecting *c = arg;
	return c->to ? vault_write(c->to, vault_size(c->to), p, n, e) : 0;
}

static int copy_body(struct collecting *c, struct opened *o, struct err *e)
{
	uint8_t *chunk = malloc(COPY_CHUNK);
	int rc = chunk ? 0 : err_set(e, ERR_MEMORY, "out of memory");
	for (uint64_t at = 0; rc == 0 && at < o->body_n; at += COPY_CHUNK) {
		size_t n = o->body_n - at < COPY_CHUNK ?
			(size_t)(o->body_n - at) : COPY_CHUNK;
		rc = opened_read(o, at, chunk, n, e);
		if (rc == 0)
			rc = vault_write(c->to, at, chunk, n, e);
	}
	free(chunk);
	return rc;
}

/* out.zip is what the runner made of all that is no image. */
static int collect_one(struct collecting *c, const struct out_file *f,
		       struct opened *o, struct err *e)
{
	struct check_unpack to = { on_entry, on_data, c };
	char name[NAME_MAX_BYTES + 1];
	if (o->payload.kind != ITEM_FILE)
		return err_set(e, ERR_POLICY, "it is no file");
	if (bytes_eq(f->name, bytes_str("out.zip")))
		return check_unzip(&o->body, &to, e);
	if (f->name.n >= sizeof name)
		return err_set(e, ERR_NAME, "its name is too long");
	memcpy(name, f->name.p, f->name.n);
	name[f->name.n] = 0;
	if (has_path(c, name))
		return 0;
	return begin_file(c, name, e) < 0 ? -1 : copy_body(c, o, e);
}

static void collect(struct collecting *c, const struct payload *result)
{
	struct mount *m = c->s->m;
	for (size_t i = 0; i < result->u.result.out_n; i++) {
		const struct out_file *f = &result->u.result.out[i];
		struct in_again a;
		struct err e;
		int rc = in_again(m, f->item.id, &a, &e);
		if (rc == 0 && memcmp(a.opened->ref.sha256, f->item.sha256,
				      HASH_SIZE) != 0)
			rc = err_set(&e, ERR_POLICY, "it is another one");
		else if (rc == 0)
			rc = collect_one(c, f, a.opened, &e);
		in_again_free(&a);
		if (end_file(c, &e) < 0)
			rc = -1;
		if (rc == 0)
			continue;
		cleanup_buf struct buf name = { 0 };
		clear_escape(&name, f->name);
		mount_log(m, "jobs/%s: the file %s that it wrote is not here: "
			  "%s", c->s->name, buf_cstr(&name), e.why);
	}
	if (c->n > SYNC_EACH)
		syncfs(m->jobs->dir);
}

/* --- the end --- */

/* Hidden characters only stand in strings, where \u is as good. */
static void put_clear_json(struct buf *out, struct bytes json)
{
	for (size_t at = 0; at < json.n;) {
		size_t from = at;
		uint32_t c = clear_next(json, &at);
		if (c < 0x20 || !clear_hidden(c))
			buf_add(out, json.p + from, at - from);
		else if (c < 0x10000)
			buf_addf(out, "\\u%04x", c);
		else
			buf_addf(out, "\\u%04x\\u%04x",
				 0xd800 + ((c - 0x10000) >> 10),
				 0xdc00 + ((c - 0x10000) & 0x3ff));
	}
	buf_add_byte(out, '\n');
}

static void apply(struct submitted *s, const struct payload *p,
		  struct bytes meta, struct collecting *c)
{
	struct err e;
	cleanup_buf struct buf json = { 0 };
	put_clear_json(&json, meta);
	if (jobs_text_replace(s, JOBS_STDOUT, p->u.result.out_text, &e) < 0 ||
	    jobs_text_replace(s, JOBS_STDERR, p->u.result.err_text, &e) < 0 ||
	    jobs_text_replace(s, JOBS_JSON, buf_bytes(&json), &e) < 0)
		mount_failed(s->m, &e);
	memcpy(s->runner, s->awaited_from, PRIM_PUB);
	s->has_runner = true;
	s->has_exit = p->u.result.has_exit;
	s->exit_code = s->has_exit ? p->u.result.exit_code : 0;
	s->wall_ms = p->u.result.wall_ms;
	s->peak_mem_mb = p->u.result.peak_mem_mb;
	jobs_set_reason(s, p->u.result.has_reason ? p->u.result.reason
						  : (struct bytes){ 0 });
	s->out = c->v;
	s->out_n = c->n;
	mount_lock(s->m);
	for (size_t i = 0; s->dir_out && i < s->out_n; i++)
		jobs_show_out(s, &s->out[i], true);
	mount_unlock(s->m);
	s->live.over = true;
	jobs_plan_free(s);
	jobs_settle(s, jobs_state_of(p->u.result.status));
}

/* With the lock: whether all the files are here. */
static bool is_whole(struct submitted *s)
{
	struct payload p;
	struct err e;
	bool whole = true;
	if (payload_parse(&p, buf_bytes(&s->awaited), 0, &e) < 0)
		return true;
	for (size_t i = 0; i < p.u.result.out_n && whole; i++)
		whole = in_has(s->m, p.u.result.out[i].item.id);
	payload_free(&p);
	return whole;
}

void jobs_finish(struct submitted *s, bool late)
{
	struct jobs *j = s->m->jobs;
	struct collecting c = { .s = s };
	struct payload p;
	struct err e;
	pthread_mutex_lock(&j->lock);
	bool go = s->awaited.len && !s->finishing && !s->verified &&
		(late || is_whole(s));
	s->finishing |= go;
	cleanup_buf struct buf meta = { 0 };
	if (go) {
		meta = s->awaited;
		s->awaited = (struct buf){ 0 };
	}
	pthread_mutex_unlock(&j->lock);
	if (!go)
		return;
	if (payload_parse(&p, buf_bytes(&meta), 0, &e) == 0) {
		collect(&c, &p);
		pthread_mutex_lock(&j->lock);
		apply(s, &p, buf_bytes(&meta), &c);
		s->finishing = false;
		pthread_mutex_unlock(&j->lock);
		payload_free(&p);
	}
	if (jobs_sync(j, &e) < 0)
		mount_failed(s->m, &e);
}

void jobs_heard(struct mount *m, const struct opened *o,
		const uint8_t author[PRIM_PUB])
{
	struct jobs *j = m->jobs;
	if (!j || o->payload.kind != ITEM_RESULT)
		return;
	pthread_mutex_lock(&j->lock);
	struct submitted *s = jobs_of_item(j, o->payload.u.result.job.id);
	bool is = s && !s->verified && !s->awaited.len && !s->finishing;
	if (is) {
		buf_add(&s->awaited, o->meta.data, o->meta.len);
		memcpy(s->awaited_from, author, PRIM_PUB);
		s->awaited_until_ms = jobs_now() + JOBS_OUT_WAIT_MS;
		pthread_cond_signal(&j->work);
	}
	pthread_mutex_unlock(&j->lock);
	if (is)
		jobs_finish(s, false);
}

void jobs_item(struct mount *m, const char *id)
{
	(void)id;
	struct jobs *j = m->jobs;
	if (!j)
		return;
	for (;;) {
		struct submitted *s;
		pthread_mutex_lock(&j->lock);
		for (s = j->first; s; s = s->next)
			if (s->awaited.len && !s->finishing && is_whole(s))
				break;
		pthread_mutex_unlock(&j->lock);
		if (!s)
			return;
		jobs_finish(s, false);
	}
}

/* --- after a mount began --- */

static bool is_wanted(void *arg, const struct item_header *h)
{
	struct jobs *j = arg;
	if (h->kind == ITEM_EVENT)
		return true;
	if (h->kind != ITEM_RESULT)
		return false;
	for (size_t i = 0; i < h->ref_n; i++) {
		const struct submitted *s = jobs_of_item(j, h->refs[i].id);
		if (s && !s->verified)
			return true;
	}
	return !h->ref_n;
}

static void hear_again(void *arg, const struct incoming *inc,
		       const struct opened *o)
{
	struct jobs *j = arg;
	struct err e;
	if (jobs_check(j->m, inc, o, &e) == 0)
		jobs_heard(j->m, o, inc->author.pub);
}

void jobs_loaded(struct mount *m)
{
	struct jobs *j = m->jobs;
	if (!j)
		return;
	in_each_signed(m, is_wanted, hear_again, j);
	pthread_mutex_lock(&j->lock);
	for (struct submitted *s = j->first; s; s = s->next) {
		if (s->removed || jobs_state_is_final(s->state))
			continue;
		if (s->cancelling)
			s->silent_at_ms = jobs_now() + JOBS_SILENT_MS;
		s->to_ask = s->has_job && s->state != JOBS_WAITING;
		if (s->has_job && s->has_runner)
			live_runner(&s->live, &s->job, &m->peer->manifest,
				    runners_list(j->runners), s->runner);
	}
	pthread_mutex_unlock(&j->lock);
}
