/* SPDX-License-Identifier: MIT
 *
 * Drafts and records of an earlier mount, found again; drafts made durable at
 * the end; what the verbs of ctl do with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "airloxfs/jobs.h"
#include "airloxfs/out_private.h"
#include "airloxfs/outbox.h"

/* --- loading --- */

static struct node *make_dirs(struct mount *m, char *path, char **last)
{
	struct node *dir = m->dir_out;
	if (path[0] == '/')	/* an input of a job */
		return strncmp(path, "/jobs/", 6) ? NULL :
			jobs_place(m, path + 6, last);
	for (char *slash; (slash = strchr(path, '/')); path = slash + 1) {
		*slash = 0;
		struct node *next = tree_find(dir, path);
		if (!next) {
			next = tree_add(m->tree, dir, path, S_IFDIR | 0755,
					&out_dir_ops, NULL);
			if (next && dir == m->dir_out)
				tree_add(m->tree, next, "ctl", S_IFREG | 0600,
					 &out_ctl_ops, NULL);
		}
		if (!next || !tree_is_dir(next))
			return NULL;
		dir = next;
	}
	*last = path;
	return dir;
}

/* What the outbox's journal says is newer than a header that was not synced:
 * a commit of this generation is a fact. */
static bool apply_outcome(struct mount *m, struct outgoing *f)
{
	struct outbox_outcome o = outbox_outcome(m->outbox,
						 vault_id(f->vault));
	if (!o.known || f->gen > o.gen)
		return false;
	f->dirty = false;
	f->gen = o.gen;
	f->state = !o.done ? OUT_QUEUED : o.sent ? OUT_SENT : OUT_FAILED;
	f->seq = o.seq;
	memcpy(f->id, o.id, sizeof f->id);
	return true;
}

static void place(struct out *o, struct outgoing *f, char *path,
		  const struct stat *st)
{
	struct mount *m = o->m;
	char *name = NULL;
	struct err e;
	struct node *dir = make_dirs(m, path, &name);
	struct node *n = dir && *name ?
		out_add(m, dir, name, st->st_mode & 07777, f) : NULL;
	if (!n) {
		struct node stray = { .data = f };
		o->strange++;
		mount_log(m, "a draft could not be placed in out/ again; it "
			  "stays in the state directory as drafts/%s",
			  vault_id(f->vault));
		out_file_free(&stray);
		return;
	}
	n->size = vault_size(f->vault);
	n->mtime = st->st_mtim;
	f->is_record = f->state == OUT_SENT || f->state == OUT_FAILED;
	bool news = apply_outcome(m, f);
	if (f->state == OUT_FAILED && f->id[0])
		o->doubt = true;
	if (!outbox_adopt(m->outbox, vault_id(f->vault), f) &&
	    f->state == OUT_QUEUED) {
		o->doubt = true;
		f->state = OUT_FAILED;
		f->is_record = true;
		snprintf(f->error, sizeof f->error, "what was queued is not in "
			 "the outbox, which is damaged: unless it was posted "
			 "before, retry sends it");
		mount_log(m, "out/%s: %s", n->name, f->error);
		news = true;
	}
	/* it is durable before the outbox's journal goes: outbox_renew */
	if (news && out_put_header(m, f, &e) < 0)
		mount_failed(m, &e);
}

static void load_draft(void *arg, const char *id)
{
	struct out *o = arg;
	struct mount *m = o->m;
	struct err e;
	struct stat st = { 0 };
	cleanup_buf struct buf path = { 0 };
	struct vault *v = store_draft_open(m->store, id, &e);
	if (!v) {
		/* made, and the machine went down before its first header */
		o->strange++;
		mount_log(m, "a damaged draft was left alone: %s", e.why);
		return;
	}
	struct outgoing *f = out_file_new(v);
	if (!f || out_decode(f, vault_record(v), &path, &st, &e) < 0 ||
	    !buf_cstr(&path) || !path.len) {
		if (vault_size(v) == 0)
			store_draft_remove(m->store, id);
		else
			o->strange++;
		struct node stray = { .data = f };
		if (f)
			out_file_free(&stray);
		else
			vault_close(v);
		return;
	}
	place(o, f, buf_cstr(&path), &st);
}

struct out *out_new(struct mount *m, struct err *e)
{
	struct out *o = calloc(1, sizeof *o);
	if (!o) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	o->m = m;
	/* A daemon that was killed left headers that are not on the disk yet.
	 * One sync for all: a header written now may take the place of one
	 * that was. */
	if (m->dir_out && syncfs(m->store->dir) < 0) {
		err_sys(e, "cannot sync the drafts");
		mount_failed(m, e);
	}
	if (m->dir_out)
		store_drafts(m->store, load_draft, o);
	outbox_compact(m->outbox);
	return o;
}

/* --- walking; every file below out/, held while it is looked at --- */

static void each_file(struct mount *m, struct node *dir,
		      void (*do_it)(struct mount *m, struct outgoing *f,
				    void *arg), void *arg)
{
	uint64_t at = 0;
	for (;;) {
		struct node *n = out_hold_next(m, dir, &at);
		if (!n)
			return;
		if (n->ops == &out_file_ops)
			do_it(m, n->data, arg);
		else if (tree_is_dir(n))
			each_file(m, n, do_it, arg);
		mount_drop(m, n);
	}
}

static void make_durable(struct mount *m, struct outgoing *f, void *arg)
{
	(void)arg;
	struct err e;
	pthread_mutex_lock(&f->lock);
	if (f->dirty && (out_put_header(m, f, &e) < 0 ||
			 vault_sync(f->vault, &e) < 0))
		mount_failed(m, &e);
	pthread_mutex_unlock(&f->lock);
}

void out_free(struct mount *m)
{
	if (m->out && m->dir_out)
		each_file(m, m->dir_out, make_durable, NULL);
	if (m->out && m->dir_jobs)
		each_file(m, m->dir_jobs, make_durable, NULL);
	free(m->out);
	m->out = NULL;
}

struct unsent {
	size_t n;
	struct buf *names;
};

/* Once the session is over what failed is unsent too: its close may have
 * said that it would go. */
static void count_unsent(struct mount *m, struct outgoing *f, void *arg)
{
	struct unsent *u = arg;
	pthread_mutex_lock(&f->lock);
	bool is = vault_size(f->vault) &&
		(f->dirty || (m->closed && f->state == OUT_FAILED));
	pthread_mutex_unlock(&f->lock);
	if (!is)
		return;
	mount_lock(m);
	buf_addf(u->names, "%s", u->n ? ", " : "");
	out_path(m, f->node, u->names);
	mount_unlock(m);
	u->n++;
}

size_t out_unsent(struct mount *m, struct buf *names)
{
	struct unsent u = { 0, names };
	if (m->dir_out)
		each_file(m, m->dir_out, count_unsent, &u);
	/* what may be content is not deleted with the session */
	if (m->closed && m->out->strange) {
		buf_addf(names, "%sdamaged drafts", u.n ? ", " : "");
		u.n += m->out->strange;
	}
	return u.n;
}

struct came_back {
	const char *id;
	uint64_t seq;
};

static void set_sent(struct mount *m, struct outgoing *f, void *arg)
{
	const struct came_back *b = arg;
	pthread_mutex_lock(&f->lock);
	bool is = f->state == OUT_FAILED && !f->dirty &&
		strcmp(f->id, b->id) == 0;
	uint64_t gen = f->gen;
	pthread_mutex_unlock(&f->lock);
	if (!is)
		return;
	mount_log(m, "item %llu, that was called failed, did reach the relay",
		  (unsigned long long)b->seq);
	out_set_state(m, f, gen, OUT_SENT, b->id, b->seq, NULL);
}

void out_came_back(struct mount *m, const char *id, uint64_t seq)
{
	struct came_back b = { id, seq };
	if (m->out && m->dir_out && m->out->doubt)
		each_file(m, m->dir_out, set_sent, &b);
}

/* --- verbs --- */

static struct node *hold_named(struct mount *m, const char *name)
{
	mount_lock(m);
	struct node *n = m->dir_out ? tree_find(m->dir_out, name) : NULL;
	if (n && n->ops != &out_file_ops)
		n = NULL;
	if (n)
		n->opens++;
	mount_unlock(m);
	return n;
}

static int commit_verb(struct mount *m, const char *name, bool retry,
		       struct err *e)
{
	struct node *n = hold_named(m, name);
	if (!n)
		return err_set(e, ERR_VERB, "there is no file out/%s", name);
	struct outgoing *f = n->data;
	int rc = out_name_ok(m, name, e);
	pthread_mutex_lock(&f->lock);
	bool ready = retry ? f->state == OUT_FAILED : f->dirty;
	if (rc == 0 && (!ready || !vault_size(f->vault)))
		rc = err_set(e, ERR_VERB, "out/%s has nothing to %s: it is %s",
			     name, retry ? "retry" : "send",
			     vault_size(f->vault) ? out_state_word(f->state)
						  : "empty");
	if (rc == 0) {
		f->dirty = f->poisoned = f->temporary = false;
		f->write_errno = 0;
	}
	pthread_mutex_unlock(&f->lock);
	if (rc == 0) {
		int err = outbox_commit_wait(m, f, name, OUT_CALL_WAIT_MS);
		if (err) {
			mount_lock(m);
			*e = m->last_error;
			mount_unlock(m);
			e->code = ERR_SYS;
			e->sys = err;
			rc = -1;
		}
	}
	out_drop(m, f);
	return rc;
}

int out_send(struct mount *m, const char *path, struct err *e)
{
	return commit_verb(m, path, false, e);
}

static void retry_one(struct mount *m, struct outgoing *f, void *arg)
{
	(void)arg;
	char name[256];
	mount_lock(m);
	snprintf(name, sizeof name, "%s", f->node->name);
	bool top = f->node->parent == m->dir_out;
	mount_unlock(m);
	pthread_mutex_lock(&f->lock);
	bool failed = top && f->state == OUT_FAILED && !f->dirty;
	pthread_mutex_unlock(&f->lock);
	if (failed)
		outbox_commit(m, f, name, NULL);
}

int out_retry(struct mount *m, const char *path, struct err *e)
{
	if (strcmp(path, "all") != 0)
		return commit_verb(m, path, true, e);
	if (m->dir_out)
		each_file(m, m->dir_out, retry_one, NULL);
	return 0;
}
