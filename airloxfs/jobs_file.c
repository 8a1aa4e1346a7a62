/* SPDX-License-Identifier: MIT
 *
 * What a job says: status, exit, reason; stdout, stderr and result.json, which
 * are vaults; output and wait, which block; the files it wrote. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/jobs_private.h"
#include "airloxfs/kept.h"
#include "airloxfs/notify.h"
#include "airloxfs/text.h"

#define COPY_CHUNK (64 * 1024)

/* --- lines of ours --- */

static void put_runner(const struct submitted *s, const char *before,
		       struct buf *out)
{
	cleanup_buf struct buf name = { 0 };
	if (!s->has_runner)
		return;
	runners_name(s->m->jobs->runners, s->runner, &name);
	if (name.len && buf_cstr(&name))
		buf_addf(out, " %s %s", before, buf_cstr(&name));
}

static void put_detail(const struct submitted *s, struct buf *out)
{
	switch (s->state) {
	case JOBS_DRAFT:
		return;
	case JOBS_WAITING:
		buf_addf(out, " %s", s->posting ? "being sent" : s->reason[0] ?
			 s->reason : "for a runner that is idle");
		return;
	case JOBS_ASSIGNED:
		put_runner(s, "to", out);
		break;
	case JOBS_RUNNING:
		put_runner(s, "on", out);
		break;
	case JOBS_COMPLETED:
		buf_addf(out, " exit %lld in %lld.%03lld s",
			 (long long)s->exit_code,
			 (long long)s->wall_ms / 1000,
			 (long long)s->wall_ms % 1000);
		put_runner(s, "on", out);
		return;
	case JOBS_FAILED: case JOBS_TIMED_OUT: case JOBS_CANCELLED:
	case JOBS_REFUSED: case JOBS_LOST:
		if (s->reason[0])
			buf_addf(out, " %s", s->reason);
		return;
	}
	if (s->cancelling)
		buf_add_str(out, ", to be cancelled");
}

void jobs_status_line(const struct submitted *s, struct buf *out)
{
	buf_add_str(out, jobs_state_word(s->state));
	put_detail(s, out);
	buf_add_byte(out, '\n');
}

static void make(struct mount *m, const struct node *n, struct buf *out)
{
	struct submitted *s = n->data;
	pthread_mutex_lock(&m->jobs->lock);
	if (!strcmp(n->name, "status"))
		jobs_status_line(s, out);
	else if (!strcmp(n->name, "exit"))
		buf_addf(out, "%lld\n", (long long)s->exit_code);
	else
		buf_addf(out, "%s\n", s->reason);
	pthread_mutex_unlock(&m->jobs->lock);
}

static int made_open(struct mount *m, struct handle *h)
{
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EACCES;
	make(m, h->node, &h->bytes);
	h->direct = true;
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

static uint64_t made_size(struct mount *m, const struct node *n)
{
	cleanup_buf struct buf b = { 0 };
	make(m, n, &b);
	return b.len;
}

const struct node_ops jobs_made_ops = {
	.open = made_open, .read = text_read, .size = made_size,
	.shown = jobs_end_shown,
};

/* --- texts in vaults; with the lock --- */

void jobs_vault_id(const struct submitted *s, const char *what,
		   char id[VAULT_ID_MAX + 1])
{
	snprintf(id, VAULT_ID_MAX + 1, "j%llu-%.12s",
		 (unsigned long long)s->n, what);
}

static const char *const text_words[] = { "out", "err", "json", "job" };
static const char *const text_names[] = { "stdout", "stderr", "result.json",
					    "" };

static struct vault *open_vault(struct jobs *j, const char *id, bool fresh,
				struct err *e)
{
	const struct store *st = j->m->store;
	if (!fresh)
		return vault_open(j->dir, id, st->session_key,
				  st->session_id, e);
	vault_unlink(j->dir, id, NULL);
	return vault_create(j->dir, id, st->session_key, st->session_id, e);
}

struct vault *jobs_text_open(struct submitted *s, enum jobs_text t, bool make_it,
			     struct err *e)
{
	char id[VAULT_ID_MAX + 1];
	jobs_vault_id(s, text_words[t], id);
	if (!s->text[t])
		s->text[t] = open_vault(s->m->jobs, id, make_it, e);
	if (s->text[t])
		s->text_users[t]++;
	return s->text[t];
}

void jobs_text_close(struct submitted *s, enum jobs_text t)
{
	if (--s->text_users[t])
		return;
	vault_close(s->text[t]);
	s->text[t] = NULL;
}

static void set_size(struct submitted *s, enum jobs_text t, uint64_t size)
{
	s->text_n[t] = size;
	mount_lock(s->m);
	struct node *n = s->dir ? tree_find(s->dir, text_names[t]) : NULL;
	if (n)
		n->size = size;
	mount_unlock(s->m);
	if (n && t < JOBS_JSON)
		jobs_touch(s, text_names[t]);
}

void jobs_text_grow(struct submitted *s, enum jobs_text t, struct bytes more)
{
	struct err e;
	if (!s->text_held[t]) {
		if (!jobs_text_open(s, t, true, &e)) {
			mount_failed(s->m, &e);
			return;
		}
		s->text_held[t] = true;
	}
	struct vault *v = s->text[t];
	if (vault_write(v, vault_size(v), more.p, more.n, &e) < 0) {
		mount_failed(s->m, &e);
		return;
	}
	set_size(s, t, vault_size(v));
	if (s->all)
		line_append(s->m, s->all, more);
}

int jobs_text_all(struct submitted *s, enum jobs_text t, struct buf *out,
		  struct err *e)
{
	struct vault *v = jobs_text_open(s, t, false, e);
	if (!v)
		return -1;
	size_t n = (size_t)vault_size(v);
	uint8_t *to = buf_room(out, n + 1);
	ssize_t got = to ? vault_read(v, 0, to, n, e) : -1;
	out->len += got > 0 ? (size_t)got : 0;
	jobs_text_close(s, t);
	return got == (ssize_t)n ? 0 : -1;
}

/* Whether what is in v is how `whole` begins. */
static bool is_start(struct vault *v, struct bytes whole)
{
	uint64_t n = vault_size(v);
	uint8_t *got = n <= whole.n ? malloc((size_t)n + 1) : NULL;
	struct err e;
	bool is = got && vault_read(v, 0, got, (size_t)n, &e) == (ssize_t)n &&
		memcmp(got, whole.p, (size_t)n) == 0;
	free(got);
	return is || (n == 0 && !whole.n);
}

/* What who reads `output` has not seen of it. */
static struct bytes unseen(struct vault *v, struct bytes whole)
{
	uint8_t end[KEPT_SEEN];
	struct err e;
	uint64_t had = vault_size(v);
	size_t n = had < sizeof end ? (size_t)had : sizeof end;
	size_t at = (size_t)had;
	if (!is_start(v, whole))
		at = vault_read(v, had - n, end, n, &e) == (ssize_t)n ?
			kept_rest((struct bytes){ end, n }, whole) : 0;
	return (struct bytes){ whole.p + at, whole.n - at };
}

int jobs_text_replace(struct submitted *s, enum jobs_text t,
		      struct bytes whole, struct err *e)
{
	bool make_it = !s->text[t];
	struct vault *v = jobs_text_open(s, t, make_it, e);
	if (!v)
		return -1;
	struct bytes more = t < JOBS_JSON ? unseen(v, whole)
					  : (struct bytes){ 0 };
	if (s->all && more.n)
		line_append(s->m, s->all, more);
	int rc = vault_truncate(v, 0, e);
	if (rc == 0 && whole.n)
		rc = vault_write(v, 0, whole.p, whole.n, e);
	if (rc == 0)
		rc = vault_sync(v, e);
	if (rc == 0)
		set_size(s, t, whole.n);
	if (s->text_held[t])
		jobs_text_close(s, t);
	s->text_held[t] = false;
	jobs_text_close(s, t);
	return rc;
}

static enum jobs_text text_of(const struct node *n)
{
	int t = JOBS_JSON;
	while (t > 0 && strcmp(text_names[t], n->name) != 0)
		t--;
	return (enum jobs_text)t;
}

static int text_open(struct mount *m, struct handle *h)
{
	struct submitted *s = h->node->data;
	enum jobs_text t = text_of(h->node);
	struct err e;
	int err = 0;
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EACCES;
	pthread_mutex_lock(&m->jobs->lock);
	/* one that has said nothing yet has none; an empty one is no less */
	bool none = !s->text[t] && !jobs_state_is_final(s->state);
	if (!jobs_text_open(s, t, none, &e) && s->text_n[t]) {
		mount_failed(m, &e);
		err = EIO;
	} else if (s->text[t]) {
		h->data = s;
	}
	pthread_mutex_unlock(&m->jobs->lock);
	h->direct = true;
	return err;
}

static void read_text(struct mount *m, struct fuse_req *req, struct handle *h,
		      size_t n, uint64_t off)
{
	struct submitted *s = h->data;
	if (s)
		fs_reply_vault(req, &m->jobs->lock,
			       &s->text[text_of(h->node)], n, off);
	else
		fs_reply_data(req, NULL, 0);
}

static void text_release(struct mount *m, struct handle *h)
{
	pthread_mutex_lock(&m->jobs->lock);
	if (h->data)
		jobs_text_close(h->data, text_of(h->node));
	pthread_mutex_unlock(&m->jobs->lock);
}

const struct node_ops jobs_text_ops = {
	.open = text_open, .read = read_text, .release = text_release,
	.shown = jobs_end_shown,
};

/* --- output --- */

static int copy_text(struct submitted *s, enum jobs_text t, struct err *e)
{
	bool none = !s->text[t] && !jobs_state_is_final(s->state);
	struct vault *v = jobs_text_open(s, t, none, e);
	if (!v)
		return s->text_n[t] ? -1 : 0;
	uint8_t *chunk = malloc(COPY_CHUNK);
	int rc = chunk ? 0 : err_set(e, ERR_MEMORY, "out of memory");
	for (uint64_t at = 0; rc == 0 && at < vault_size(v);) {
		ssize_t n = vault_read(v, at, chunk, COPY_CHUNK, e);
		if (n <= 0)
			rc = -1;
		else
			line_append(s->m, s->all, (struct bytes){ chunk,
								  (size_t)n });
		at += n > 0 ? (uint64_t)n : 0;
	}
	free(chunk);
	jobs_text_close(s, t);
	return rc;
}

static int make_all(struct submitted *s, struct err *e)
{
	char id[VAULT_ID_MAX + 1];
	if (s->all)
		return 0;
	jobs_vault_id(s, "all", id);
	struct vault *v = open_vault(s->m->jobs, id, true, e);
	s->all = v ? line_new(v, e) : NULL;
	if (!s->all)
		return -1;
	vault_unlink(s->m->jobs->dir, id, NULL);
	if (copy_text(s, JOBS_STDOUT, e) < 0 || copy_text(s, JOBS_STDERR,
							  e) < 0)
		return -1;
	if (jobs_state_is_final(s->state))
		line_end(s->m, s->all);
	return 0;
}

static int all_open(struct mount *m, struct handle *h)
{
	struct submitted *s = h->node->data;
	struct err e;
	pthread_mutex_lock(&m->jobs->lock);
	int err = make_all(s, &e) < 0 ? EIO : line_open_at(s->all, h);
	pthread_mutex_unlock(&m->jobs->lock);
	if (err == EIO)
		mount_failed(m, &e);
	return err;
}

static void all_release(struct mount *m, struct handle *h)
{
	struct submitted *s = h->node->data;
	line_release(m, h);
	pthread_mutex_lock(&m->jobs->lock);
	if (s->all && jobs_state_is_final(s->state) && !line_is_read(s->all)) {
		line_free(s->all);
		s->all = NULL;
	}
	pthread_mutex_unlock(&m->jobs->lock);
}

const struct node_ops jobs_all_ops = {
	.open = all_open, .read = line_read, .release = all_release,
	.poll = line_poll,
};

/* --- wait --- */

void jobs_tell_end(struct submitted *s)
{
	cleanup_buf struct buf b = { 0 };
	jobs_status_line(s, &b);
	if (s->wait)
		line_set(s->m, s->wait, buf_bytes(&b));
	if (s->all)
		line_end(s->m, s->all);
	for (int t = 0; t < JOBS_TEXTS; t++)	/* lost with live output */
		if (s->text_held[t] && s->text[t] &&
		    vault_sync(s->text[t], NULL) == 0)
			jobs_text_close(s, (enum jobs_text)t),
			s->text_held[t] = false;
}

static int wait_open(struct mount *m, struct handle *h)
{
	struct submitted *s = h->node->data;
	struct err e;
	pthread_mutex_lock(&m->jobs->lock);
	bool fresh = !s->wait;
	if (fresh)
		s->wait = line_new(NULL, &e);
	int err = s->wait ? line_open_at(s->wait, h) : ENOMEM;
	if (!err && fresh && jobs_state_is_final(s->state))
		jobs_tell_end(s);
	pthread_mutex_unlock(&m->jobs->lock);
	return err;
}

const struct node_ops jobs_wait_ops = {
	.open = wait_open, .read = line_read, .release = line_release,
	.poll = line_poll,
};

/* --- out/ --- */

static void path_of(const struct submitted *s, const struct node *n,
		    struct buf *out)
{
	if (!n || n == s->dir_out)
		return;
	path_of(s, n->parent, out);
	buf_addf(out, "%s%s", out->len ? "/" : "", n->name);
}

static int out_open(struct mount *m, struct handle *h)
{
	struct submitted *s = h->node->data;
	cleanup_buf struct buf path = { 0 };
	struct err e;
	struct vault *v = NULL;
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EACCES;
	err_set(&e, ERR_NOT_FOUND, "a file that a job wrote is gone");
	pthread_mutex_lock(&m->jobs->lock);
	mount_lock(m);
	path_of(s, h->node, &path);
	mount_unlock(m);
	const char *p = buf_cstr(&path);
	for (size_t i = 0; p && !v && i < s->out_n; i++)
		if (!strcmp(s->out[i].path, p))
			v = open_vault(m->jobs, s->out[i].vault, false, &e);
	pthread_mutex_unlock(&m->jobs->lock);
	if (!v) {
		mount_failed(m, &e);
		return EIO;
	}
	h->data = v;
	h->keep = true;
	return 0;
}

/* The kernel may read ahead with several threads. */
static void out_read(struct mount *m, struct fuse_req *req, struct handle *h,
		     size_t n, uint64_t off)
{
	struct vault *v = h->data;
	fs_reply_vault(req, &m->jobs->lock, &v, n, off);
}

static void out_release(struct mount *m, struct handle *h)
{
	(void)m;
	vault_close(h->data);
}

static int out_unlink(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
	return 0;
}

static int out_rmdir(struct mount *m, struct node *dir, struct node *n)
{
	(void)dir;
	mount_lock(m);
	int err = tree_count(n) ? ENOTEMPTY : 0;
	if (!err)
		tree_unlink(m->tree, n);
	mount_unlock(m);
	return err;
}

const struct node_ops jobs_out_ops = {
	.open = out_open, .read = out_read, .release = out_release,
	.timeout_s = 86400,
};
const struct node_ops jobs_outdir_ops = { .unlink = out_unlink,
					  .rmdir = out_rmdir,
					  .timeout_s = 86400 };
