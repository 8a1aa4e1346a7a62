/* SPDX-License-Identifier: MIT
 *
 * jobs/new: what one open writes is the program of a new job, named by a
 * number, run when it is closed.  The answer to that close is kept until the
 * job's directory is there and jobs/last leads to it.  Opened for reading too,
 * a read runs what was written so far, and gives the job's name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/jobs_private.h"
#include "airloxfs/notify.h"
#include "airloxfs/proc.h"
#include "airloxfs/say.h"
#include "airloxfs/text.h"

/* h->bytes collects; after the commit it is the name.  h->data: committed.
 * WRITE, FLUSH and READ of one open file may come from several processes. */
static pthread_mutex_t new_lock = PTHREAD_MUTEX_INITIALIZER;

static int new_open(struct mount *m, struct handle *h)
{
	struct err e;
	h->direct = true;
	if ((h->flags & O_ACCMODE) == O_RDONLY)
		return EACCES;
	if (peer_may_post(m->peer, ITEM_JOB, TYPE_PY, &e) == 0)
		return 0;
	mount_failed(m, &e);
	return err_errno(&e);
}

static int new_write(struct mount *m, struct handle *h, pid_t tid,
		     const void *p, size_t n, uint64_t off)
{
	(void)tid, (void)off;
	struct err e;
	int err = 0;
	pthread_mutex_lock(&new_lock);
	if (h->data) {		/* the name was there: another job begins */
		buf_reset(&h->bytes);
		h->data = NULL;
	}
	if (n > JOBS_CODE_MAX - h->bytes.len) {
		err_set(&e, ERR_SIZE, "a program may have 1 MiB: put what it "
			"reads into a file of jobs/NAME/");
		h->failed = true;
		err = EFBIG;
	} else {
		buf_add(&h->bytes, p, n);
		err = buf_failed(&h->bytes) ? ENOMEM : 0;
	}
	pthread_mutex_unlock(&new_lock);
	if (err == EFBIG)
		mount_failed(m, &e);
	return err;
}

/* --- the commit --- */

static struct submitted *add_job(struct mount *m, struct err *e)
{
	struct jobs *j = m->jobs;
	char name[24];
	pthread_mutex_lock(&j->lock);
	snprintf(name, sizeof name, "%llu", (unsigned long long)j->newest + 1);
	struct submitted *s = jobs_add(j, name);
	jobs_trim(j);
	mount_lock(m);
	bool shown = s && jobs_show(s, true) == 0;
	mount_unlock(m);
	if (s && !shown)
		s->removed = true;
	pthread_mutex_unlock(&j->lock);
	if (!shown)
		err_set(e, ERR_MEMORY, "out of memory");
	return shown ? s : NULL;
}

static int put_program(struct submitted *s, const struct buf *code,
		       struct err *e)
{
	struct mount *m = s->m;
	struct node *n;
	int err = out_new_file(m, s->dir, "main.py", 0644, O_WRONLY, &n);
	if (err) {
		err_set(e, ERR_SYS, "the program cannot be staged");
		e->sys = err;
		return -1;
	}
	struct outgoing *f = n->data;
	pthread_mutex_lock(&f->lock);
	int rc = vault_write(f->vault, 0, code->data, code->len, e);
	pthread_mutex_unlock(&f->lock);
	mount_lock(m);
	n->size = code->len;
	mount_unlock(m);
	return rc;
}

/* Nobody has seen it: it never was. */
static void take_back(struct submitted *s)
{
	struct mount *m = s->m;
	struct jobs *j = m->jobs;
	pthread_mutex_lock(&j->lock);
	mount_lock(m);
	struct node *n = tree_find(s->dir, "main.py");
	mount_unlock(m);
	if (n)
		out_forget(m, n);
	mount_lock(m);
	uint64_t at = 0;
	while ((n = tree_next(s->dir, at))) {
		at = n->cookie;
		tree_unlink(m->tree, n);
	}
	tree_unlink(m->tree, s->dir);
	s->dir = s->dir_out = NULL;
	mount_unlock(m);
	s->removed = true;
	jobs_put(s);
	pthread_mutex_unlock(&j->lock);
}

static void reveal(struct submitted *s)
{
	cleanup_buf struct buf path = { 0 };
	buf_addf(&path, "jobs/%s", s->name);
	if (buf_cstr(&path))
		notify_post(s->m->notify, NOTIFY_MKDIR, buf_cstr(&path));
}

static void gave_up(struct fuse_req *req, void *arg)
{
	struct jobs *j = arg;
	pthread_mutex_lock(&j->lock);
	for (struct submitted *s = j->first; s; s = s->next)
		if (s->creator == req)
			jobs_answer(s, 0);
	pthread_mutex_unlock(&j->lock);
}

/* Its answer waits for the helper; who is interrupted has a job all the
 * same. */
static void keep_answer(struct submitted *s, struct fuse_req *req)
{
	struct jobs *j = s->m->jobs;
	fs_on_interrupt(req, gave_up, j);
	pthread_mutex_lock(&j->lock);
	s->creator = req;
	s->created_until_ms = jobs_now() + JOBS_SHOW_MS;
	mount_lock(s->m);
	bool shown = !s->dir || !s->dir->hidden;
	mount_unlock(s->m);
	if (shown || fs_interrupted(req))
		jobs_answer(s, 0);
	pthread_cond_signal(&j->work);
	pthread_mutex_unlock(&j->lock);
}

static int commit(struct mount *m, struct buf *code, uint64_t pid_ns,
		  char name[24], struct err *e)
{
	if (m->closed)
		return err_set(e, ERR_GONE, "the session is over: %s",
			       m->closed_why);
	struct submitted *s = add_job(m, e);
	if (!s)
		return -1;
	s->pid_ns = pid_ns;
	if (put_program(s, code, e) < 0 || jobs_run(s, e) < 0) {
		take_back(s);
		return -1;
	}
	snprintf(name, 24, "%s", s->name);
	reveal(s);
	return 0;
}

/* Whether this flush is the end of what the open collected; then it is
 * *code. */
static bool take(struct handle *h, pid_t tid, struct buf *code, int *err)
{
	pthread_mutex_lock(&new_lock);
	*err = h->failed ? EFBIG : buf_failed(&h->bytes) ? ENOMEM : 0;
	bool is = !*err && !h->data && h->bytes.len &&
		say_is_complete(h, tid);
	if (is) {
		*code = h->bytes;
		h->bytes = (struct buf){ 0 };
	}
	pthread_mutex_unlock(&new_lock);
	return is;
}

static void set_name(struct handle *h, const char *name)
{
	pthread_mutex_lock(&new_lock);
	buf_addf(&h->bytes, "%s\n", name);
	h->data = h;
	pthread_mutex_unlock(&new_lock);
}

static void new_flush(struct mount *m, struct fuse_req *req,
		      struct handle *h, pid_t tid)
{
	struct buf code = { 0 };
	struct err e;
	char name[24];
	int err;
	if (!take(h, tid, &code, &err)) {
		fs_reply_error(req, err);
		return;
	}
	if (commit(m, &code, proc_pid_ns(tid), name, &e) == 0) {
		set_name(h, name);
		pthread_mutex_lock(&m->jobs->lock);
		struct submitted *s = jobs_named(m->jobs, name);
		pthread_mutex_unlock(&m->jobs->lock);
		if (s)
			keep_answer(s, req);
		else
			fs_reply_error(req, 0);
	} else {
		mount_failed(m, &e);
		fs_reply_error(req, err_errno(&e));
	}
	buf_free(&code);
}

/* Who asked in another way than by a close does not wait for the helper. */
static void show_now(struct mount *m, const char *name)
{
	pthread_mutex_lock(&m->jobs->lock);
	struct submitted *s = jobs_named(m->jobs, name);
	mount_lock(m);
	if (s && s->dir)
		s->dir->hidden = false;
	mount_unlock(m);
	pthread_mutex_unlock(&m->jobs->lock);
}

static int new_fsync(struct mount *m, struct handle *h)
{
	struct buf code = { 0 };
	struct err e;
	char name[24];
	pthread_mutex_lock(&new_lock);
	if (!h->data && !h->failed) {
		code = h->bytes;
		h->bytes = (struct buf){ 0 };
	}
	pthread_mutex_unlock(&new_lock);
	int err = 0;
	uint64_t pid_ns = proc_pid_ns(h->opener);
	if (code.len && commit(m, &code, pid_ns, name, &e) == 0) {
		set_name(h, name);
		show_now(m, name);
	} else if (code.len) {
		mount_failed(m, &e);
		err = err_errno(&e);
	}
	buf_free(&code);
	return err;
}

/* What was written so far is the program; the name is read once. */
static void new_read(struct mount *m, struct fuse_req *req, struct handle *h,
		     size_t n, uint64_t off)
{
	(void)off;
	int err = new_fsync(m, h);
	if (err) {
		fs_reply_error(req, err);
		return;
	}
	pthread_mutex_lock(&new_lock);
	if (!h->data)
		n = 0;
	else if (n > h->bytes.len)
		n = h->bytes.len;
	fs_reply_data(req, h->bytes.data, n);
	if (n)
		buf_consume(&h->bytes, n);
	pthread_mutex_unlock(&new_lock);
}

static void new_release(struct mount *m, struct handle *h)
{
	struct err e;
	char name[24];
	if (!h->data && h->bytes.len && !h->failed &&
	    commit(m, &h->bytes, 0, name, &e) < 0)
		mount_failed(m, &e);
}

const struct node_ops jobs_new_ops = {
	.open = new_open, .read = new_read, .write = new_write,
	.flush = new_flush, .fsync = new_fsync, .release = new_release,
	.truncate = fs_truncate_nothing, .timeout_s = 86400,
};
