/* SPDX-License-Identifier: MIT
 *
 * out/ of a job: what it leaves, each file an encrypted vault; no links or
 * special files can be made here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/queue_private.h"
#include "core/name.h"

#define READ_MAX (1024 * 1024)

/* With q->lock. */
static bool is_open(const struct qjob *j)
{
	return j->state >= Q_OPEN && j->state < Q_ENDING;
}

/* --- files --- */

static int out_open(struct mount *m, struct handle *h)
{
	const struct node *n = h->node;
	h->direct = true;
	return h->flags & O_TRUNC ? n->ops->truncate(m, h->node, 0) : 0;
}

static void out_read(struct mount *m, struct fuse_req *req, struct handle *h,
		     size_t n, uint64_t off)
{
	(void)m;
	const struct qout *o = h->node->data;
	struct err e;
	if (n > READ_MAX)
		n = READ_MAX;
	char *to = malloc(n + 1);
	pthread_mutex_lock(&o->job->io);
	ssize_t got = to ? vault_read(o->vault, off, to, n, &e) : -1;
	pthread_mutex_unlock(&o->job->io);
	if (got < 0)
		fs_reply_error(req, EIO);
	else
		fs_reply_data(req, to, (size_t)got);
	free(to);
}

/* With io: room for a file that changes its size.  An errno. */
static int account(struct qjob *j, uint64_t old, uint64_t size)
{
	struct queue_room *q = j->m->queue;
	uint64_t max = (uint64_t)j->m->peer->manifest.max_item_bytes;
	int err = 0;
	pthread_mutex_lock(&q->lock);
	if (!is_open(j))
		err = EROFS;
	else if (size > old && (size > max ||
				j->out_bytes + (size - old) > max))
		err = EFBIG;
	else
		j->out_bytes = j->out_bytes - old + size;
	pthread_mutex_unlock(&q->lock);
	return err;
}

static void set_size(struct mount *m, struct node *n, uint64_t size)
{
	mount_lock(m);
	n->size = size;
	clock_gettime(CLOCK_REALTIME, &n->mtime);
	mount_unlock(m);
}

static int told(struct mount *m, const struct err *e)
{
	mount_failed(m, e);
	return err_errno(e);
}

static int out_write(struct mount *m, struct handle *h, pid_t tid,
		     const void *p, size_t n, uint64_t off)
{
	(void)tid;
	struct qout *o = h->node->data;
	struct err e;
	pthread_mutex_lock(&o->job->io);
	uint64_t old = vault_size(o->vault);
	uint64_t size = off + n > old ? off + n : old;
	int err = account(o->job, old, size);
	if (!err && vault_write(o->vault, off, p, n, &e) < 0) {
		err = told(m, &e);
		account(o->job, size, vault_size(o->vault));
	}
	size = vault_size(o->vault);
	pthread_mutex_unlock(&o->job->io);
	set_size(m, h->node, size);
	return err;
}

static int out_truncate(struct mount *m, struct node *n, uint64_t size)
{
	struct qout *o = n->data;
	struct err e;
	pthread_mutex_lock(&o->job->io);
	uint64_t old = vault_size(o->vault);
	int err = account(o->job, old, size);
	if (!err && vault_truncate(o->vault, size, &e) < 0) {
		err = told(m, &e);
		account(o->job, size, vault_size(o->vault));
	}
	size = vault_size(o->vault);
	pthread_mutex_unlock(&o->job->io);
	set_size(m, n, size);
	return err;
}

static void out_free(struct node *n)
{
	struct qout *o = n->data;
	struct qjob *j = o->job;
	if (j->keep)
		vault_close(o->vault);	/* the next mount goes on with it */
	else
		queue_vault_end(j->m->queue, o->vault);
	free(o);
	queue_drop(j);
}

static void no_change(struct mount *m, struct node *n) { (void)m, (void)n; }

const struct node_ops queue_out_file_ops = {
	.open = out_open, .read = out_read, .write = out_write,
	.truncate = out_truncate, .changed = no_change, .free = out_free,
};

/* --- directories --- */

static int check_path(struct qjob *j, const struct node *dir,
		      const char *name)
{
	cleanup_buf struct buf path = { 0 };
	struct err e;
	mount_lock(j->m);
	queue_out_path(&path, dir, j->out_dir);
	mount_unlock(j->m);
	if (path.len)
		buf_add_byte(&path, '/');
	buf_add_str(&path, name);
	if (buf_failed(&path))
		return ENOMEM;
	return name_check_entry(buf_bytes(&path), &e) < 0
		? told(j->m, &e) : 0;
}

/* One entry more, or one less.  An errno. */
static int count(struct qjob *j, int more)
{
	struct queue_room *q = j->m->queue;
	pthread_mutex_lock(&q->lock);
	int err = !is_open(j) ? EROFS :
		more > 0 && j->out_files >= QUEUE_OUT_FILES ? ENOSPC : 0;
	if (!err)
		j->out_files += (size_t)more;
	pthread_mutex_unlock(&q->lock);
	return err;
}

struct node *queue_out_add(struct qjob *j, struct node *dir, const char *name,
			   mode_t mode, struct vault *v)
{
	struct qout *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	*o = (struct qout){ j, v };
	struct node *n = tree_add(j->m->tree, dir, name, S_IFREG | mode,
				  &queue_out_file_ops, o);
	if (!n) {
		free(o);
		return NULL;
	}
	queue_hold(j);
	n->size = vault_size(v);
	return n;
}

static int new_file(struct qjob *j, struct node *dir, const char *name,
		    mode_t mode, struct node **out)
{
	struct err e;
	struct vault *v = queue_vault(j->m->queue, 'o', &e);
	if (!v)
		return told(j->m, &e);
	mount_lock(j->m);
	*out = queue_out_add(j, dir, name, mode & 0777, v);
	mount_unlock(j->m);
	if (*out)
		return 0;
	queue_vault_end(j->m->queue, v);
	return EEXIST;
}

static int out_create(struct mount *m, struct node *dir, const char *name,
		      mode_t mode, int flags, struct node **out)
{
	(void)m, (void)flags;
	struct qjob *j = dir->data;
	int err = check_path(j, dir, name);
	if (!err)
		err = count(j, 1);
	if (err)
		return err;
	err = new_file(j, dir, name, mode, out);
	if (err)
		count(j, -1);
	return err;
}

static int out_mkdir(struct mount *m, struct node *dir, const char *name,
		     mode_t mode, struct node **out)
{
	struct qjob *j = dir->data;
	int err = check_path(j, dir, name);
	if (!err)
		err = count(j, 1);
	if (err)
		return err;
	mount_lock(m);
	*out = tree_add(m->tree, dir, name, S_IFDIR | (mode & 0777),
			&queue_out_ops, j);
	if (*out)
		queue_hold(j);
	mount_unlock(m);
	if (!*out)
		count(j, -1);
	return *out ? 0 : EEXIST;
}

static int out_unlink(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	struct qout *o = n->data;
	struct qjob *j = o->job;
	int err = count(j, -1);
	if (err)
		return err;
	pthread_mutex_lock(&j->io);
	account(j, vault_size(o->vault), 0);
	pthread_mutex_unlock(&j->io);
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
	return 0;
}

static int out_rmdir(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	mount_lock(m);
	bool empty = tree_count(n) == 0;
	mount_unlock(m);
	int err = empty ? count(n->data, -1) : ENOTEMPTY;
	if (err)
		return err;
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
	return 0;
}

/* What is at the target of a rename goes; its number into *old, held. */
static int make_way(struct mount *m, const struct node *n, struct node *dir,
		    const char *name, unsigned flags)
{
	mount_lock(m);
	struct node *old = tree_find(dir, name);
	if (old == n)
		old = NULL;
	if (old)
		old->opens++;
	mount_unlock(m);
	if (!old)
		return 0;
	int err = flags & RENAME_NOREPLACE ? EEXIST :
		  tree_is_dir(old) != tree_is_dir(n) ?
		  (tree_is_dir(old) ? EISDIR : ENOTDIR) :
		  tree_is_dir(old) ? out_rmdir(m, dir, old)
				   : out_unlink(m, dir, old);
	mount_lock(m);
	old->opens--;
	tree_settle(m->tree, old);
	mount_unlock(m);
	return err;
}

static int out_rename(struct mount *m, struct node *n, struct node *dir,
		      const char *name, unsigned flags, pid_t tid)
{
	(void)tid;
	struct qjob *j = dir->data;
	const struct qjob *from = tree_is_dir(n) ? n->data
		: ((const struct qout *)n->data)->job;
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return EINVAL;
	if (from != j)
		return EXDEV;
	int err = check_path(j, dir, name);
	if (!err)
		err = count(j, 0);
	if (!err)
		err = make_way(m, n, dir, name, flags);
	if (err)
		return err;
	mount_lock(m);
	err = tree_rename(m->tree, n, dir, name) < 0 ? ENOMEM : 0;
	mount_unlock(m);
	return err;
}

const struct node_ops queue_out_ops = {
	.create = out_create, .mkdir = out_mkdir, .unlink = out_unlink,
	.rmdir = out_rmdir, .rename = out_rename, .changed = no_change,
	.free = queue_node_free, .timeout_s = 86400,
};
