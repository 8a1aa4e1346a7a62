/* SPDX-License-Identifier: MIT
 *
 * The content of a draft: open, read, write, flush, release; and its header
 * on disk.  Making, renaming and removing is out_tree.c, attributes are
 * out_attr.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/commit.h"
#include "airloxfs/jobs.h"
#include "airloxfs/notify.h"
#include "airloxfs/out_private.h"
#include "airloxfs/outbox.h"
#include "airloxfs/proc.h"
#include "core/clear.h"
#include "core/enc.h"
#include "core/host/draft.h"
#include "core/name.h"

const char *out_state_word(enum out_state s)
{
	static const char *const words[] = { "staged", "queued", "sent",
					     "failed" };
	return words[s];
}

struct outgoing *out_file_new(struct vault *v)
{
	struct outgoing *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->idle, NULL);
	f->vault = v;
	return f;
}

void out_file_free(struct node *n)
{
	struct outgoing *f = n->data;
	vault_close(f->vault);
	out_drop_xattrs(f);
	free(f->refs);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->idle);
	free(f);
}

void out_hold(struct mount *m, struct outgoing *f)
{
	mount_lock(m);
	f->node->opens++;
	mount_unlock(m);
}

void out_drop(struct mount *m, struct outgoing *f) { mount_drop(m, f->node); }

void out_busy(struct outgoing *f) { f->busy++; }

void out_idle(struct outgoing *f)
{
	pthread_mutex_lock(&f->lock);
	if (--f->busy == 0)
		pthread_cond_broadcast(&f->idle);
	pthread_mutex_unlock(&f->lock);
}

void out_await_idle(struct outgoing *f)
{
	while (f->busy)
		pthread_cond_wait(&f->idle, &f->lock);
}

int out_read_busy(void *file, uint64_t off, void *to, size_t n)
{
	struct outgoing *f = file;
	pthread_mutex_lock(&f->lock);
	ssize_t got = vault_read(f->vault, off, to, n, NULL);
	pthread_mutex_unlock(&f->lock);
	return got == (ssize_t)n ? 0 : -1;
}

/* --- what a name decides --- */

bool out_is_draft_name(const char *name)
{
	size_t n = strlen(name);
	const char *dot = strrchr(name, '.');
	return name[0] == '.' || name[n - 1] == '~' || !strcmp(name, "4913") ||
	       (name[0] == '#' && name[n - 1] == '#') ||
	       (dot && (!strcmp(dot, ".tmp") || !strcmp(dot, ".part")));
}

int out_name_ok(struct mount *m, const char *name, struct err *e)
{
	const struct manifest *mf = &m->peer->manifest;
	bool wrapped;
	if (name_check(bytes_str(name), e) < 0)
		return -1;
	enum item_type t = draft_type(bytes_str(name), &wrapped);
	if (wrapped && strlen(name) > NAME_MAX_BYTES - strlen(".zip"))
		return err_set(e, ERR_NAME, "the name is too long: it travels "
			       "as NAME.zip, and %d bytes are the most",
			       NAME_MAX_BYTES);
	if (mf->allowed[t])
		return 0;
	/* without an extension it may turn out to be no text */
	if (t == TYPE_TEXT && !strchr(name, '.') && mf->allowed[TYPE_ZIP])
		return 0;
	return err_set(e, ERR_TYPE, "%s would be sent as %s, which this "
		       "session does not allow: see allowed_types in session",
		       name, type_word(t));
}

/* The most bytes of content that fit, with what the item adds to them. */
uint64_t out_limit(const struct mount *m, const char *name)
{
	struct bytes s = bytes_str(name);
	cleanup_buf struct buf front = { 0 };
	uint64_t max = (uint64_t)m->peer->manifest.max_item_bytes;
	bool wrapped;
	draft_type(s, &wrapped);
	payload_put_file(&front, bytes_str("application/zip"), s);
	uint64_t extra = front.len + (wrapped ? zip_wrap_extra(s) + 4 : 0);
	if (wrapped && max > ZIP_MAX_ENTRY_BYTES)
		max = ZIP_MAX_ENTRY_BYTES + extra;
	return max > extra ? max - extra : 0;
}

/* --- the header --- */

static void set_stale(struct outgoing *f) { f->header_stale = true; }

int out_put_header(struct mount *m, struct outgoing *f, struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	out_encode(m, f, &b);
	if (buf_failed(&b))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (vault_set_record(f->vault, buf_bytes(&b), e) < 0 ||
	    vault_flush_header(f->vault, e) < 0)
		return -1;
	f->header_stale = false;
	return 0;
}

void out_set_state(struct mount *m, struct outgoing *f, uint64_t gen,
		   enum out_state s, const char *id, uint64_t seq,
		   const struct err *why)
{
	struct err e;
	pthread_mutex_lock(&f->lock);
	/* Written anew meanwhile: the record shows the newest. */
	if (!f->dirty && gen == f->gen) {
		f->state = s;
		f->seq = seq;
		snprintf(f->id, sizeof f->id, "%s", id ? id : "");
		snprintf(f->error, sizeof f->error, "%s",
			 why ? why->why : "");
		if (out_put_header(m, f, &e) < 0)
			mount_failed(m, &e);
		mount_lock(m);
		f->is_record = s == OUT_SENT || s == OUT_FAILED;
		mount_unlock(m);
		if (s == OUT_FAILED && f->id[0] && m->out)
			m->out->doubt = true;
	}
	pthread_mutex_unlock(&f->lock);
}

/* --- open, read, write --- */

static void begin_draft(struct mount *m, struct outgoing *f)
{
	if (f->dirty)
		return;
	mount_lock(m);
	f->is_record = false;
	mount_unlock(m);
	f->dirty = true;
	f->gen++;
	f->state = OUT_STAGED;
	f->error[0] = 0;
	memset(f->writers, 0, sizeof f->writers);
	set_stale(f);
}

static void set_size(struct mount *m, struct outgoing *f)
{
	mount_lock(m);
	f->node->size = vault_size(f->vault);
	clock_gettime(CLOCK_REALTIME, &f->node->mtime);
	mount_unlock(m);
}

/* With f->lock. */
static int cut_to(struct mount *m, struct outgoing *f, uint64_t size)
{
	struct err e;
	if (size == vault_size(f->vault) && size)
		return 0;
	if (vault_truncate(f->vault, size, &e) < 0) {
		mount_failed(m, &e);
		return err_errno(&e);
	}
	begin_draft(m, f);
	if (size == 0) {	/* what follows is a complete rewrite */
		f->poisoned = false;
		f->write_errno = 0;
	}
	set_size(m, f);
	return 0;
}

/* An old record that left in this very moment: on ESTALE the kernel looks the
 * name up once more. */
static bool is_gone(struct mount *m, const struct node *n)
{
	mount_lock(m);
	bool gone = !n->parent;
	mount_unlock(m);
	return gone;
}

static int draft_open(struct mount *m, struct handle *h)
{
	struct outgoing *f = h->node->data;
	int err = 0;
	h->direct = true;
	if ((h->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	if (m->closed)
		return ESHUTDOWN;
	if (!jobs_may_write(m, h->node))
		return EPERM;
	pthread_mutex_lock(&f->lock);
	if (is_gone(m, h->node)) {
		pthread_mutex_unlock(&f->lock);
		return ESTALE;
	}
	f->opener = proc_tgid(h->opener);
	f->pid_ns = proc_pid_ns(h->opener);
	f->handles++;
	if (h->flags & O_TRUNC) {
		out_await_idle(f);
		err = cut_to(m, f, 0);
	}
	if (err)
		f->handles--;
	pthread_mutex_unlock(&f->lock);
	return err;
}

static void draft_read(struct mount *m, struct fuse_req *req, struct handle *h,
		      size_t n, uint64_t off)
{
	(void)m;
	struct outgoing *f = h->node->data;
	fs_reply_vault(req, &f->lock, &f->vault, n, off);
}

/* A draft that lost bytes must not be sent by a close. */
static int write_failed(struct mount *m, struct outgoing *f,
			const struct err *e)
{
	f->poisoned = f->header_stale = true;
	f->write_errno = err_errno(e);
	snprintf(f->error, sizeof f->error, "%s", e->why);
	mount_failed(m, e);
	return f->write_errno;
}

static int check_size(struct mount *m, const struct node *n, uint64_t end,
		      struct err *e)
{
	char name[256];
	mount_lock(m);
	snprintf(name, sizeof name, "%s", n->name);
	mount_unlock(m);
	uint64_t limit = out_limit(m, name);
	if (end <= limit)
		return 0;
	return err_set(e, ERR_SIZE, "%s is larger than this session takes: "
		       "%llu bytes at most", name, (unsigned long long)limit);
}

static int draft_write(struct mount *m, struct handle *h, pid_t tid,
		      const void *p, size_t n, uint64_t off)
{
	struct outgoing *f = h->node->data;
	struct err e;
	int err = 0;
	if (m->closed)
		return ESHUTDOWN;
	if (!jobs_may_write(m, h->node))
		return EPERM;
	pthread_mutex_lock(&f->lock);
	out_await_idle(f);
	bool first = !f->dirty;
	begin_draft(m, f);
	commit_wrote(f, tid);
	if (check_size(m, h->node, off + n, &e) < 0 ||
	    vault_write(f->vault, off, p, n, &e) < 0)
		err = write_failed(m, f, &e);
	else
		set_size(m, f);
	set_stale(f);	/* its length is in the header too */
	if (first && f->gen > 1 && !err)
		out_put_header(m, f, &e);
	pthread_mutex_unlock(&f->lock);
	return err;
}

static int draft_truncate(struct mount *m, struct node *n, uint64_t size)
{
	struct outgoing *f = n->data;
	struct err e;
	int err;
	if (m->closed)
		return ESHUTDOWN;
	if (!jobs_may_write(m, n))
		return EPERM;
	/* nothing of the content is lost: whoever asked can go on */
	if (check_size(m, n, size, &e) < 0) {
		mount_failed(m, &e);
		return err_errno(&e);
	}
	pthread_mutex_lock(&f->lock);
	out_await_idle(f);
	err = cut_to(m, f, size);
	pthread_mutex_unlock(&f->lock);
	return err;
}

/* What takes long is done without the lock. */
static int draft_fsync(struct mount *m, struct handle *h)
{
	struct outgoing *f = h->node->data;
	struct err e;
	pthread_mutex_lock(&f->lock);
	out_busy(f);
	pthread_mutex_unlock(&f->lock);
	int rc = vault_settle(f->vault, &e);
	out_idle(f);
	pthread_mutex_lock(&f->lock);
	if (rc < 0) {		/* what was lost nobody can say */
		int err = write_failed(m, f, &e);
		pthread_mutex_unlock(&f->lock);
		return err;
	}
	int err = out_put_header(m, f, &e) < 0 ||
		vault_sync(f->vault, &e) < 0 ? err_errno(&e) : 0;
	pthread_mutex_unlock(&f->lock);
	return err;
}

/* --- the commit --- */

static void draft_flush(struct mount *m, struct fuse_req *req,
		       struct handle *h, pid_t tid)
{
	struct outgoing *f = h->node->data;
	struct err e;
	if ((h->flags & O_ACCMODE) == O_RDONLY) {
		fs_reply_error(req, 0);
		return;
	}
	char name[256];
	mount_lock(m);
	snprintf(name, sizeof name, "%s", h->node->name);
	bool top = h->node->parent == m->dir_out;
	mount_unlock(m);
	pthread_mutex_lock(&f->lock);
	enum commit c = top ? commit_decide(f, h->node->ino, name, tid) : COMMIT_NOT;
	int err = c == COMMIT_FAILED ? f->write_errno : 0;
	if (c == COMMIT_NOW)
		f->dirty = false;
	else if (f->header_stale && out_put_header(m, f, &e) < 0)
		err = err_errno(&e);
	pthread_mutex_unlock(&f->lock);
	if (c == COMMIT_NOW)
		outbox_commit(m, f, name, req);
	else
		fs_reply_error(req, err);
}

/* The last descriptor is gone with bytes unsent: nobody hears of a failure
 * here but state, status and log. */
static void draft_release(struct mount *m, struct handle *h)
{
	struct outgoing *f = h->node->data;
	char name[256];
	if ((h->flags & O_ACCMODE) == O_RDONLY)
		return;
	mount_lock(m);
	snprintf(name, sizeof name, "%s", h->node->name);
	bool top = h->node->parent == m->dir_out;
	mount_unlock(m);
	pthread_mutex_lock(&f->lock);
	bool late = --f->handles == 0 && top && f->dirty && !f->temporary && !f->poisoned &&
		    vault_size(f->vault) && !out_is_draft_name(name);
	if (late)
		f->dirty = false;
	pthread_mutex_unlock(&f->lock);
	if (late)
		outbox_commit(m, f, name, NULL);
}

static void draft_changed(struct mount *m, struct node *n)
{
	(void)m;
	struct outgoing *f = n->data;
	pthread_mutex_lock(&f->lock);
	set_stale(f);
	pthread_mutex_unlock(&f->lock);
}

const struct node_ops out_file_ops = {
	.open = draft_open, .read = draft_read, .write = draft_write,
	.flush = draft_flush, .fsync = draft_fsync, .release = draft_release,
	.truncate = draft_truncate, .changed = draft_changed,
	.getxattr = out_getxattr, .listxattr = out_listxattr,
	.setxattr = out_setxattr, .removexattr = out_removexattr,
	.expire = out_expire, .free = out_file_free, .timeout_s = 86400,
};
