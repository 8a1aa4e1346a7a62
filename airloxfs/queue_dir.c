/* SPDX-License-Identifier: MIT
 *
 * The directory of a job: built hidden, then made to appear as a whole; what
 * in it is only read. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/notify.h"
#include "airloxfs/queue_private.h"
#include "airloxfs/text.h"
#include "core/clear.h"

#define READ_MAX (1024 * 1024)

void queue_node_free(struct node *n)
{
	queue_drop(n->data);
}

/* --- work/ --- */

struct qwork {
	struct qjob *job;	/* held */
	uint64_t off;		/* in its vault; the size is the node's */
};

static int work_open(struct mount *m, struct handle *h)
{
	(void)m;
	h->keep = true;
	return (h->flags & O_ACCMODE) == O_RDONLY ? 0 : EACCES;
}

static void work_read(struct mount *m, struct fuse_req *req, struct handle *h,
		      size_t n, uint64_t off)
{
	const struct qwork *w = h->node->data;
	struct err e;
	uint64_t size = h->node->size;
	(void)m;
	if (n > READ_MAX)
		n = READ_MAX;
	n = off >= size ? 0 : n < size - off ? n : (size_t)(size - off);
	char *to = malloc(n + 1);
	pthread_mutex_lock(&w->job->io);
	ssize_t got = to ? vault_read(w->job->work, w->off + off, to, n, &e)
			 : -1;
	pthread_mutex_unlock(&w->job->io);
	if (got < 0)
		fs_reply_error(req, EIO);
	else
		fs_reply_data(req, to, (size_t)got);
	free(to);
}

static void work_free(struct node *n)
{
	struct qwork *w = n->data;
	queue_drop(w->job);
	free(w);
}

static const struct node_ops work_ops = {
	.open = work_open, .read = work_read, .free = work_free,
	.timeout_s = 86400,
};
static const struct node_ops plain_ops = { .timeout_s = 86400 };
static const struct node_ops job_ops = { .free = queue_node_free,
					 .timeout_s = 86400 };
const struct node_ops queue_dir_ops = { .timeout_s = 86400 };

/* --- building; with the mount's lock --- */

static int taken(struct err *e)
{
	return err_set(e, ERR_CONTENT, "two of its files have one path");
}

/* The directory that this path's last part is in; *last is that part. */
static struct node *make_parents(struct mount *m, struct node *dir, char *path,
				 char **last)
{
	for (char *slash; (slash = strchr(path, '/')); path = slash + 1) {
		*slash = 0;
		struct node *next = tree_find(dir, path);
		if (!next)
			next = tree_add(m->tree, dir, path, S_IFDIR | 0755,
					&plain_ops, NULL);
		if (!next || !tree_is_dir(next))
			return NULL;
		dir = next;
	}
	*last = path;
	return dir;
}

static int add_file(struct qjob *j, struct node *dir, const char *name,
		    const struct queue_entry *w, struct err *e)
{
	struct qwork *k = calloc(1, sizeof *k);
	if (!k)
		return err_set(e, ERR_MEMORY, "out of memory");
	*k = (struct qwork){ j, w->off };
	struct node *n = tree_add(j->m->tree, dir, name, S_IFREG |
				  (w->is_exec ? 0755 : 0644), &work_ops, k);
	if (!n) {
		free(k);
		return taken(e);
	}
	queue_hold(j);
	n->size = w->n;
	return 0;
}

static int add_entry(struct qjob *j, char *path, const struct queue_entry *w,
		     struct err *e)
{
	struct node *work = tree_find(j->dir, "work");
	char *name = NULL;
	struct node *dir = work ? make_parents(j->m, work, path, &name) : NULL;
	if (!dir)
		return taken(e);
	if (!w->is_dir)
		return add_file(j, dir, name, w, e);
	struct node *old = tree_find(dir, name);
	if (old)
		return tree_is_dir(old) ? 0 : taken(e);
	return tree_add(j->m->tree, dir, name, S_IFDIR | 0755, &plain_ops,
			NULL) ? 0 : err_set(e, ERR_MEMORY, "out of memory");
}

int queue_dir_work(struct qjob *j, const struct queue_entry *w, struct err *e)
{
	cleanup_free char *path = strdup(w->path);
	if (!path)
		return err_set(e, ERR_MEMORY, "out of memory");
	mount_lock(j->m);
	int rc = add_entry(j, path, w, e);
	mount_unlock(j->m);
	return rc;
}

/* A node whose data is the job. */
static struct node *add_own(struct qjob *j, const char *name, mode_t mode,
			    const struct node_ops *ops)
{
	struct node *n = tree_add(j->m->tree, j->dir, name, mode, ops, j);
	if (n)
		queue_hold(j);
	return n;
}

int queue_dir_begin(struct qjob *j, struct err *e)
{
	struct mount *m = j->m;
	mount_lock(m);
	j->dir = tree_add(m->tree, m->dir_queue, j->id, S_IFDIR | 0700,
			  &job_ops, j);
	if (j->dir) {
		queue_hold(j);
		j->dir->hidden = true;
		j->dir->opens++;	/* it is ours until it vanishes */
	}
	bool ok = j->dir && tree_add(m->tree, j->dir, "work", S_IFDIR | 0755,
				     &plain_ops, NULL) &&
		(j->out_dir = add_own(j, "out", S_IFDIR | 0700,
				      &queue_out_ops));
	mount_unlock(m);
	return ok ? 0 : err_set(e, ERR_EXISTS, "queue/ has a job of this id");
}

int queue_dir_finish(struct qjob *j, struct bytes spec, struct bytes from,
		     struct err *e)
{
	static const struct { const char *name; const struct node_ops *ops; }
	own[] = {
		{ "stdout", &queue_stdout_ops }, { "stderr", &queue_stderr_ops },
		{ "exit", &queue_exit_ops }, { "reason", &queue_reason_ops },
		{ "peak_mem_mb", &queue_peak_ops }, { "ctl", &queue_ctl_ops },
	};
	struct mount *m = j->m;
	mount_lock(m);
	bool ok = text_fixed(m, j->dir, "spec.json", spec) &&
		text_fixed(m, j->dir, "from", from);
	for (size_t i = 0; ok && i < sizeof own / sizeof *own; i++)
		ok = add_own(j, own[i].name, S_IFREG | 0600, own[i].ops);
	mount_unlock(m);
	return ok ? 0 : err_set(e, ERR_MEMORY, "out of memory");
}

/* --- appearing and going --- */

static void post(struct qjob *j, enum notify_op op, const char *tail)
{
	cleanup_buf struct buf path = { 0 };
	buf_addf(&path, "queue/%s%s", j->id, tail);
	const char *s = buf_cstr(&path);
	if (s && j->m->notify)
		notify_post(j->m->notify, op, s);
}

void queue_dir_reveal(struct qjob *j)
{
	post(j, NOTIFY_MKDIR, "");
}

void queue_dir_cancelled(struct qjob *j, const char *why)
{
	cleanup_buf struct buf text = { 0 };
	struct mount *m = j->m;
	clear_escape(&text, bytes_str(why));
	buf_add_byte(&text, '\n');
	mount_lock(m);
	struct node *n = j->dir && !buf_failed(&text)
		? text_fixed(m, j->dir, "cancelled", buf_bytes(&text)) : NULL;
	if (n)
		n->hidden = true;
	mount_unlock(m);
	if (n)
		post(j, NOTIFY_CREATE, "/cancelled");
}

/* With the mount's lock. */
static void unlink_below(struct tree *t, struct node *dir)
{
	for (struct node *n; (n = tree_last(dir));) {
		if (tree_is_dir(n))
			unlink_below(t, n);
		tree_unlink(t, n);
	}
}

void queue_dir_vanish(struct qjob *j)
{
	struct mount *m = j->m;
	mount_lock(m);
	struct node *dir = j->dir;
	bool seen = dir && !dir->hidden;
	j->dir = j->out_dir = NULL;
	if (dir) {
		unlink_below(m->tree, dir);
		dir->opens--;
		if (!seen)	/* one that waits for the helper comes to nothing */
			tree_unlink(m->tree, dir);
	}
	mount_unlock(m);
	if (seen)
		post(j, NOTIFY_RMDIR, "");
}
