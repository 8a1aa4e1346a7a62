/* SPDX-License-Identifier: MIT
 *
 * out/D/ctl: `send` makes D.zip of the directory and sends it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/ctl.h"
#include "airloxfs/notify.h"
#include "airloxfs/out_private.h"
#include "airloxfs/outbox.h"
#include "airloxfs/text.h"
#include "core/name.h"
#include "core/zip.h"

#define PACK_CHUNK (256 * 1024)

struct packing {
	struct mount *m;
	struct zip_writer *w;
	struct vault *to;
	uint8_t *chunk;
	struct err *e;
};

static int pack_take(void *arg, const void *p, size_t n)
{
	struct packing *k = arg;
	uint64_t limit = (uint64_t)k->m->peer->manifest.max_item_bytes;
	if (vault_size(k->to) + n > limit)
		return err_set(k->e, ERR_SIZE, "the directory is larger than "
			       "this session takes: %llu bytes at most",
			       (unsigned long long)limit);
	return vault_write(k->to, vault_size(k->to), p, n, k->e);
}

static int pack_file(struct packing *k, struct outgoing *f)
{
	int rc = 0;
	pthread_mutex_lock(&f->lock);
	uint64_t size = vault_size(f->vault);
	out_busy(f);
	pthread_mutex_unlock(&f->lock);
	for (uint64_t at = 0; rc == 0 && at < size; at += PACK_CHUNK) {
		size_t n = size - at < PACK_CHUNK ? (size_t)(size - at)
						  : PACK_CHUNK;
		rc = out_read_busy(f, at, k->chunk, n);
		if (rc < 0)
			err_set(k->e, ERR_SYS, "a file cannot be read");
		else
			rc = zip_writer_data(k->w, k->chunk, n, k->e);
	}
	out_idle(f);
	return rc;
}

static int pack_dir(struct packing *k, struct node *dir, struct buf *path);

static int pack_node(struct packing *k, struct node *n, struct buf *path)
{
	size_t len = path->len;
	bool is_dir = tree_is_dir(n);
	mount_lock(k->m);
	buf_addf(path, "%s%s", len ? "/" : "", n->name);
	mount_unlock(k->m);
	int rc = name_check_entry(buf_bytes(path), k->e);
	if (rc == 0)
		rc = zip_writer_begin(k->w, buf_bytes(path), is_dir,
				      !is_dir && n->mode & 0100, k->e);
	if (rc == 0 && !is_dir)
		rc = pack_file(k, n->data);
	if (rc == 0)
		rc = zip_writer_end(k->w, k->e);
	if (rc == 0 && is_dir)
		rc = pack_dir(k, n, path);
	path->len = len;
	return rc;
}

static int pack_dir(struct packing *k, struct node *dir, struct buf *path)
{
	int rc = 0;
	uint64_t at = 0;
	while (rc == 0) {
		struct node *n = out_hold_next(k->m, dir, &at);
		if (!n)
			break;
		if (n->ops != &out_ctl_ops)
			rc = pack_node(k, n, path);
		mount_drop(k->m, n);
	}
	return rc;
}

static int pack(struct mount *m, struct node *dir, struct vault *to,
		struct err *e)
{
	struct packing k = { .m = m, .to = to, .e = e };
	cleanup_buf struct buf path = { 0 };
	err_set(e, ERR_MEMORY, "out of memory");
	k.chunk = malloc(PACK_CHUNK);
	k.w = zip_writer_new((struct zip_sink){ pack_take, &k });
	int rc = k.chunk && k.w && pack_dir(&k, dir, &path) == 0
		? zip_writer_finish(k.w, e) : -1;
	zip_writer_free(k.w);
	free(k.chunk);
	return rc;
}

/* The kernel knows the file that was there: it stays, with other bytes. */
static void replace_bytes(struct mount *m, struct outgoing *f,
			  struct vault *v)
{
	pthread_mutex_lock(&f->lock);
	out_await_idle(f);
	store_draft_remove(m->store, vault_id(f->vault));
	vault_close(f->vault);
	f->vault = v;
	f->gen++;
	f->dirty = f->poisoned = f->temporary = false;
	f->write_errno = 0;
	f->state = OUT_STAGED;
	mount_lock(m);
	f->is_record = false;
	f->node->size = vault_size(v);
	mount_unlock(m);
	pthread_mutex_unlock(&f->lock);
}

/* D.zip appears in out/ as the record of what was sent; v becomes its own.
 * The record is held. */
static struct outgoing *add_record(struct mount *m, const char *name,
				   struct vault *v)
{
	cleanup_buf struct buf path = { 0 };
	struct outgoing *f = out_file_new(v);
	if (!f)
		return NULL;
	mount_lock(m);
	struct node *old = tree_find(m->dir_out, name);
	struct node *n = old ? NULL : out_add(m, m->dir_out, name, 0644, f);
	if (old && old->ops == &out_file_ops)
		n = old;
	if (n) {
		n->size = vault_size(v);
		n->opens++;
	}
	mount_unlock(m);
	if (n && n != old)
		return f;
	struct node stray = { .data = f };
	if (n)
		f->vault = NULL;
	else
		store_draft_remove(m->store, vault_id(v));
	out_file_free(&stray);
	if (!n)
		return NULL;
	replace_bytes(m, n->data, v);
	buf_addf(&path, "out/%s", name);
	if (buf_cstr(&path))	/* its size was known, and is another now */
		notify_post(m->notify, NOTIFY_TOUCH, buf_cstr(&path));
	return n->data;
}

static int send_dir(struct mount *m, struct node *dir, struct err *e)
{
	char name[260];
	mount_lock(m);
	snprintf(name, sizeof name, "%s.zip", dir->name);
	mount_unlock(m);
	if (out_name_ok(m, name, e) < 0)
		return -1;
	struct vault *v = store_draft_new(m->store, e);
	if (!v)
		return -1;
	if (pack(m, dir, v, e) < 0) {
		store_draft_remove(m->store, vault_id(v));
		vault_close(v);
		return -1;
	}
	struct outgoing *f = add_record(m, name, v);
	if (!f)
		return err_set(e, ERR_EXISTS, "out/%s is in the way", name);
	int err = outbox_commit_wait(m, f, name, OUT_CALL_WAIT_MS);
	out_drop(m, f);
	if (!err)
		return 0;
	mount_lock(m);
	*e = m->last_error;
	mount_unlock(m);
	e->code = ERR_SYS;
	e->sys = err;
	return -1;
}

/* What is inside went with D.zip. */
static void mark_sent(struct mount *m, struct node *dir)
{
	uint64_t at = 0;
	for (;;) {
		struct node *n = out_hold_next(m, dir, &at);
		if (!n)
			return;
		if (tree_is_dir(n)) {
			mark_sent(m, n);
		} else if (n->ops == &out_file_ops) {
			struct outgoing *f = n->data;
			pthread_mutex_lock(&f->lock);
			f->dirty = false;
			uint64_t gen = f->gen;
			pthread_mutex_unlock(&f->lock);
			out_set_state(m, f, gen, OUT_SENT, NULL, 0, NULL);
		}
		mount_drop(m, n);
	}
}

static int verb(struct mount *m, struct node *n, char *line, struct err *e)
{
	mount_lock(m);
	struct node *dir = n->parent;
	mount_unlock(m);
	if (strcmp(line, "send") == 0 && dir) {
		int rc = send_dir(m, dir, e);
		if (rc == 0)
			mark_sent(m, dir);
		return rc;
	}
	return err_set(e, ERR_VERB, "the only verb here is: send");
}

static int octl_open(struct mount *m, struct handle *h)
{
	(void)m;
	h->direct = true;
	buf_add_str(&h->bytes, "send\n");
	return 0;
}

static int octl_write(struct mount *m, struct handle *h, pid_t tid,
		      const void *p, size_t n, uint64_t off)
{
	(void)tid, (void)off;
	return ctl_lines(m, h->node, p, n, verb);
}

const struct node_ops out_ctl_ops = {
	.open = octl_open, .read = text_read, .write = octl_write,
	.truncate = fs_truncate_nothing, .timeout_s = 86400,
};
