/* SPDX-License-Identifier: MIT
 *
 * Making, moving and removing what is in out/; and finding it again at the
 * next mount. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/notify.h"
#include "airloxfs/out_private.h"
#include "airloxfs/outbox.h"
#include "core/clear.h"
#include "core/name.h"

#define OUT_DEPTH 16		/* directories below out/ */
#define TRIM_EVERY 32		/* new entries that are trimmed for at once */

/* --- where a node is; with the mount's lock --- */

static unsigned depth_of(const struct mount *m, const struct node *n)
{
	unsigned d = 0;
	for (; n && n != m->dir_out; n = n->parent)
		d++;
	return d;
}

void out_path(const struct mount *m, const struct node *n, struct buf *out)
{
	if (!n || n == m->dir_out)
		return;
	out_path(m, n->parent, out);
	if (n->parent && n->parent != m->dir_out)
		buf_add_byte(out, '/');
	buf_add_str(out, n->name);
}

static bool is_top(struct mount *m, const struct node *dir)
{
	return dir == m->dir_out;
}

struct node *out_add(struct mount *m, struct node *dir, const char *name,
		     mode_t mode, struct outgoing *f)
{
	struct node *n = tree_add(m->tree, dir, name, S_IFREG | mode,
				  &out_file_ops, f);
	if (n)
		f->node = n;
	return n;
}

/* --- create --- */

/* Nothing that could steer a terminal or hide; the rules on names that are
 * sent come with the commit. */
int out_plain_name(const char *name, struct err *e)
{
	struct bytes s = bytes_str(name), rest = s;
	while (rest.n && rest.p[0] == '.')
		rest.p++, rest.n--;
	if (clear_utf8(s) && s.n <= NAME_MAX_BYTES &&
	    clear_check(rest, NAME_MAX_BYTES, "the name", e) == 0)
		return 0;
	return err_set(e, ERR_NAME, "this name cannot be sent: it must be "
		       "UTF-8 without control characters");
}

static int check_create(struct mount *m, struct node *dir, const char *name,
			struct err *e)
{
	if (m->closed)
		return err_set(e, ERR_GONE, "the session is over: %s",
			       m->closed_why);
	if (peer_may_post(m->peer, ITEM_FILE, TYPE_NONE, e) < 0 &&
	    e->code != ERR_TYPE && e->code != ERR_INVALID)
		return -1;
	if (is_top(m, dir) && !out_is_draft_name(name))
		return out_name_ok(m, name, e);
	return out_plain_name(name, e);
}

static struct node *add_ctl(struct mount *m, struct node *dir)
{
	return tree_add(m->tree, dir, "ctl", S_IFREG | 0600, &out_ctl_ops,
			NULL);
}

int out_new_file(struct mount *m, struct node *dir, const char *name,
		 mode_t mode, int flags, struct node **out)
{
	struct err e;
	struct vault *v = store_draft_new(m->store, &e);
	struct outgoing *f = v ? out_file_new(v) : NULL;
	if (!f) {
		if (v)
			vault_close(v);
		mount_failed(m, &e);
		return v ? ENOMEM : err_errno(&e);
	}
	f->temporary = (flags & O_ACCMODE) == O_RDWR && flags & O_EXCL &&
		       (mode & 0777) == 0600;
	mount_lock(m);
	*out = out_add(m, dir, name, mode & 07777, f);
	mount_unlock(m);
	if (*out)
		return 0;
	store_draft_remove(m->store, vault_id(v));
	struct node stray = { .data = f };
	out_file_free(&stray);
	return EEXIST;
}

static int dir_create(struct mount *m, struct node *dir, const char *name,
		      mode_t mode, int flags, struct node **out)
{
	struct err e;
	mount_lock(m);
	bool ctl = !strcmp(name, "ctl") && depth_of(m, dir) == 1;
	if (ctl)
		*out = add_ctl(m, dir);
	mount_unlock(m);
	if (ctl)
		return *out ? 0 : EEXIST;
	if (check_create(m, dir, name, &e) < 0) {
		mount_failed(m, &e);
		return err_errno(&e);
	}
	return out_new_file(m, dir, name, mode, flags, out);
}

static int dir_mkdir(struct mount *m, struct node *dir, const char *name,
		     mode_t mode, struct node **out)
{
	struct err e;
	if (out_plain_name(name, &e) < 0) {
		mount_failed(m, &e);
		return err_errno(&e);
	}
	mount_lock(m);
	unsigned depth = depth_of(m, dir);
	*out = depth >= OUT_DEPTH ? NULL :
		tree_add(m->tree, dir, name, S_IFDIR | (mode & 07777),
			 &out_dir_ops, NULL);
	if (*out && depth == 0)
		add_ctl(m, *out);
	mount_unlock(m);
	return *out ? 0 : depth >= OUT_DEPTH ? ENAMETOOLONG : EEXIST;
}

/* --- remove --- */

void out_forget(struct mount *m, struct node *n)
{
	const struct outgoing *f = n->data;
	store_draft_remove(m->store, vault_id(f->vault));
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
}

static int dir_unlink(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	if (n->ops == &out_file_ops) {
		outbox_withdraw(m, n->data);
		out_forget(m, n);
		return 0;
	}
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
	return 0;
}

static int dir_rmdir(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	mount_lock(m);
	struct node *ctl = tree_find(n, "ctl");
	bool only = ctl && ctl->ops == &out_ctl_ops;
	int err = tree_count(n) > (only ? 1 : 0) ? ENOTEMPTY : 0;
	if (!err && only)
		tree_unlink(m->tree, ctl);
	if (!err)
		tree_unlink(m->tree, n);
	mount_unlock(m);
	return err;
}

/* --- rename --- */

/* A draft that gets a plain name in out/ is committed under it first: where
 * that fails, nothing was moved. */
static int commit_renamed(struct mount *m, struct node *n, struct node *dir,
			  const char *name)
{
	struct outgoing *f = n->data;
	struct err e;
	if (n->ops != &out_file_ops || !is_top(m, dir) ||
	    out_is_draft_name(name))
		return 0;
	if (out_name_ok(m, name, &e) < 0) {
		mount_failed(m, &e);
		return err_errno(&e);
	}
	pthread_mutex_lock(&f->lock);
	bool send = (f->dirty || f->state == OUT_FAILED) && !f->poisoned &&
		    vault_size(f->vault);
	if (send)
		f->dirty = false;
	f->temporary = false;
	pthread_mutex_unlock(&f->lock);
	return send ? outbox_commit_wait(m, f, name, OUT_CALL_WAIT_MS) : 0;
}

static int replace_target(struct mount *m, const struct node *n,
			  struct node *dir, const char *name, unsigned flags)
{
	mount_lock(m);
	struct node *old = tree_find(dir, name);
	if (old)
		old->opens++;
	mount_unlock(m);
	if (!old)
		return 0;
	if (old == n) {
		mount_drop(m, old);
		return 0;
	}
	int err = flags & RENAME_NOREPLACE ? EEXIST :
		  old->ops == &out_ctl_ops ? EPERM :
		  tree_is_dir(old) ? (tree_is_dir(n) ? dir_rmdir(m, dir, old)
				      : EISDIR) :
		  tree_is_dir(n) ? ENOTDIR : 0;
	/* what it had committed goes on: only the record is replaced */
	if (!err && !tree_is_dir(old))
		out_forget(m, old);
	mount_drop(m, old);
	return err;
}

struct node *out_hold_next(struct mount *m, const struct node *dir,
			   uint64_t *at)
{
	mount_lock(m);
	struct node *n = tree_next(dir, *at);
	if (n) {
		n->opens++;
		*at = n->cookie;	/* a rename gives it another */
	}
	mount_unlock(m);
	return n;
}

/* Headers hold paths: those below a moved directory are written anew. */
void out_put_headers(struct mount *m, struct node *n)
{
	struct err e;
	if (n->ops == &out_file_ops) {
		struct outgoing *f = n->data;
		pthread_mutex_lock(&f->lock);
		if (out_put_header(m, f, &e) < 0)
			mount_failed(m, &e);
		pthread_mutex_unlock(&f->lock);
		return;
	}
	uint64_t at = 0;
	while (tree_is_dir(n)) {
		struct node *k = out_hold_next(m, n, &at);
		if (!k)
			return;
		out_put_headers(m, k);
		mount_drop(m, k);
	}
}

static int dir_rename(struct mount *m, struct node *n, struct node *dir,
		      const char *name, unsigned flags, pid_t tid)
{
	(void)tid;
	struct err e;
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return EINVAL;
	if (n->ops == &out_ctl_ops)
		return EPERM;
	if (out_plain_name(name, &e) < 0) {
		mount_failed(m, &e);
		return err_errno(&e);
	}
	int err = commit_renamed(m, n, dir, name);
	if (!err)
		err = replace_target(m, n, dir, name, flags);
	if (err)
		return err;
	mount_lock(m);
	if (n->ops == &out_file_ops)
		((struct outgoing *)n->data)->leaving = false;
	err = tree_rename(m->tree, n, dir, name) < 0 ? ENOMEM : 0;
	mount_unlock(m);
	out_put_headers(m, n);
	return err;
}

static void dir_changed(struct mount *m, struct node *n)
{
	(void)m, (void)n;
}

const struct node_ops out_dir_ops = {
	.create = dir_create, .mkdir = dir_mkdir, .unlink = dir_unlink,
	.rmdir = dir_rmdir, .rename = dir_rename, .changed = dir_changed,
	.timeout_s = 86400,
};

/* --- records --- */

static bool is_record(const struct node *n)
{
	return n->ops == &out_file_ops &&
	       ((const struct outgoing *)n->data)->is_record;
}

/* With the mount's lock: the oldest that are too many are to go.  The helper
 * takes them away, so that watchers see it; until then they can become drafts
 * again (out_expire). */
static size_t pick_records(struct mount *m)
{
	const struct node *dir = m->dir_out;
	size_t records = 0, gone = 0;
	struct node *n;
	for (n = tree_next(dir, 0); n; n = tree_next(dir, n->cookie))
		records += is_record(n);
	for (n = tree_next(dir, 0); n && records > OUT_RECORDS;
	     n = tree_next(dir, n->cookie)) {
		struct outgoing *f = n->data;
		cleanup_buf struct buf path = { 0 };
		if (!is_record(n) || n->opens)
			continue;
		records--;
		gone++;
		buf_addf(&path, "out/%s", n->name);
		if (f->leaving || !buf_cstr(&path))
			continue;
		f->leaving = true;
		notify_post(m->notify, NOTIFY_UNLINK, buf_cstr(&path));
	}
	return gone;
}

/* All of out/ is looked at once for TRIM_EVERY new entries, not for each. */
void out_trim(struct mount *m)
{
	mount_lock(m);
	size_t n = tree_count(m->dir_out);
	if (n > OUT_RECORDS && n >= m->trim_at)
		m->trim_at = n + TRIM_EVERY - pick_records(m);
	mount_unlock(m);
}

/* Only what is still the record that was meant, and in nobody's hands: who
 * looks at it with a handler has one hold of it. */
int out_expire(struct mount *m, struct node *n)
{
	struct outgoing *f = n->data;
	pthread_mutex_lock(&f->lock);
	mount_lock(m);
	bool goes = f->leaving && f->is_record && !f->dirty && !f->busy &&
		    n->opens <= 1;
	f->leaving = false;
	if (goes)
		tree_unlink(m->tree, n);
	mount_unlock(m);
	if (goes)
		store_draft_remove(m->store, vault_id(f->vault));
	pthread_mutex_unlock(&f->lock);
	return goes ? 0 : EBUSY;
}
