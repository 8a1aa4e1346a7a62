/* SPDX-License-Identifier: MIT
 *
 * The worker seals what has ended into the outbox: the files first and the
 * result that names them last, as one batch that a crash keeps or loses as a
 * whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/queue_private.h"
#include "core/host/check.h"
#include "core/host/clock.h"
#include "core/host/draft.h"

#define SEAL_RETRY_MS 5000
#define IN_MEMORY_MAX ((uint64_t)16 << 20)
#define TEXT_MIN 1024		/* a result is tried with this much output */
#define RESULT_FILES (ITEM_REFS_MAX - 1)	/* its job is a reference too */

struct ending {
	struct queue_room *q;
	struct qjob *j;
	struct queue_files files;
	struct outbox_item item[ITEM_REFS_MAX];	/* the result is the last */
	struct out_file out[RESULT_FILES];
	size_t n;		/* of out: items so far */
	struct buf note;	/* what of out/ is left out, and why */
};

static int read_file(void *arg, uint64_t off, void *to, size_t n)
{
	const struct qout *o = arg;
	pthread_mutex_lock(&o->job->io);
	ssize_t got = vault_read(o->vault, off, to, n, NULL);
	pthread_mutex_unlock(&o->job->io);
	return got == (ssize_t)n ? 0 : -1;
}

static struct zip_source source_of(const struct queue_file *f)
{
	struct qout *o = f->node->data;
	return (struct zip_source){ read_file, o, vault_size(o->vault) };
}

static int look_at(enum item_type type, const char *mime,
		   const struct zip_source *body, struct err *e)
{
	return type == TYPE_ZIP ? check_content(type, mime, body, e)
				: content_check(type, mime, body, e);
}

static int seal_item(struct ending *k, const struct draft *d,
		     struct outbox_item *item, struct err *e)
{
	struct mount *m = k->q->m;
	int fd = outbox_blob(m, (uint64_t)draft_size(d) + BLOB_OVERHEAD,
			     item->blob, e);
	if (fd < 0)
		return -1;
	if (draft_seal(d, m->peer, fd, &item->sealed, e) < 0) {
		close(fd);
		outbox_item_drop(m, item);
		return -1;
	}
	item->sealed.blob_fd = fd;
	item->sealed.owns_fd = true;
	return 0;
}

/* A file of the result.  name is borrowed until the result is sealed. */
static int add_item(struct ending *k, const char *name,
		    const struct zip_source *body, struct err *e)
{
	static const struct draft_look look = { look_at, check_image };
	struct draft d = { 0 };
	struct outbox_item *item = &k->item[k->n];
	if (k->n >= RESULT_FILES)
		return err_set(e, ERR_POLICY, "more files than a result has");
	if (draft_file(&d, k->q->m->peer, bytes_str(name), body, &look, e) < 0)
		return -1;
	int rc = seal_item(k, &d, item, e);
	if (rc == 0) {
		item->name = name;
		k->out[k->n++] = (struct out_file){
			.item = item->sealed.ref, .name = bytes_str(name),
			.size = (int64_t)d.body.size };
	}
	draft_free(&d);
	return rc;
}

static bool is_fault(const struct err *e)
{
	return e->code >= ERR_INVALID && e->code <= ERR_CONTENT;
}

/* A fault of a file is no fault of the job: it is told, not returned. */
static int forgive(struct ending *k, int rc, struct err *e)
{
	if (rc == 0 || !is_fault(e))
		return rc;
	buf_addf(&k->note, "out/ was not returned: %s", e->why);
	return 0;
}

/* Images at the top go as items, while there is room for the archive. */
static int add_images(struct ending *k, struct err *e)
{
	bool wrapped;
	for (size_t i = 0; i < k->files.n && k->n < RESULT_FILES - 1; i++) {
		struct queue_file *f = &k->files.v[i];
		if (!f->is_top || draft_type(bytes_str(f->path), &wrapped) !=
				  TYPE_IMAGE)
			continue;
		struct zip_source src = source_of(f);
		f->is_sent = add_item(k, f->path, &src, e) == 0;
		if (!f->is_sent && !is_fault(e) && e->code != ERR_TIMEOUT)
			return -1;	/* else it goes into the archive */
	}
	return 0;
}

static int check_names(struct ending *k, size_t left, struct err *e)
{
	struct zip_list list = { .v = calloc(left + 1, sizeof *list.v) };
	if (!list.v)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (size_t i = 0; i < k->files.n; i++)
		if (!k->files.v[i].is_sent)
			list.v[list.n++].path = k->files.v[i].path;
	int rc = zip_name_clash(&list, e);
	free(list.v);
	return rc;
}

/* Headers of many small files are read again and again, from both ends: from
 * memory that costs nothing. */
static int add_bundle(struct ending *k, const struct zip_source *src,
		      struct err *e)
{
	cleanup_buf struct buf all = { 0 };
	size_t n = (size_t)src->size;
	if (src->size > IN_MEMORY_MAX)
		return add_item(k, "out.zip", src, e);
	uint8_t *to = buf_room(&all, n);
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (src->read(src->arg, 0, to, n) < 0)
		return err_set(e, ERR_SYS, "out/ cannot be read");
	struct bytes view = { to, n };
	const struct zip_source copy = zip_source_bytes(&view);
	all.len = n;
	return add_item(k, "out.zip", &copy, e);
}

static int add_archive(struct ending *k, size_t left, struct err *e)
{
	struct zip_bundle *b = zip_bundle_new();
	struct zip_source src;
	int rc = b ? check_names(k, left, e)
		   : err_set(e, ERR_MEMORY, "out of memory");
	for (size_t i = 0; rc == 0 && i < k->files.n; i++) {
		const struct queue_file *f = &k->files.v[i];
		if (f->is_sent)
			continue;
		struct zip_source body = source_of(f);
		rc = zip_bundle_add(b, bytes_str(f->path), &body, f->is_exec,
				    e);
	}
	if (rc == 0)
		rc = zip_bundle_source(b, &src, e);
	if (rc == 0)
		rc = add_bundle(k, &src, e);
	zip_bundle_free(b);
	return rc;
}

/* The rest in one out.zip; where it is one archive, that one as it is. */
static int add_rest(struct ending *k, struct err *e)
{
	const struct queue_file *only = NULL;
	size_t left = 0;
	bool wrapped;
	for (size_t i = 0; i < k->files.n; i++)
		if (!k->files.v[i].is_sent) {
			only = &k->files.v[i];
			left++;
		}
	if (!left)
		return 0;
	if (left == 1 && only->is_top &&
	    draft_type(bytes_str(only->path), &wrapped) == TYPE_ZIP &&
	    !wrapped) {
		struct zip_source src = source_of(only);
		if (add_item(k, only->path, &src, e) == 0)
			return 0;
		if (!is_fault(e))
			return -1;
	}
	return add_archive(k, left, e);
}

static int add_out(struct ending *k, struct err *e)
{
	const struct job_limits *l = &k->q->m->peer->manifest.job;
	enum result_status s = k->j->end.status;
	if (!l->return_out || s == RESULT_REFUSED || s == RESULT_CANCELLED)
		return 0;
	if (queue_out_list(k->j, &k->files, e) < 0 || add_images(k, e) < 0)
		return -1;
	return forgive(k, add_rest(k, e), e);
}

/* --- the result --- */

static void fill_result(const struct ending *k, struct payload *r,
			struct bytes reason)
{
	const struct qjob *j = k->j;
	const struct qend *end = &j->end;
	*r = (struct payload){ .kind = ITEM_RESULT };
	r->u.result.code_sha256 = bytes_str(j->code_sha256);
	r->u.result.input_sha256 = bytes_str(j->input_sha256);
	r->u.result.has_exit = end->has_exit;
	r->u.result.exit_code = end->exit;
	r->u.result.job = j->ref;
	r->u.result.out = (struct out_file *)k->out;
	r->u.result.out_n = k->n;
	r->u.result.peak_mem_mb = end->peak_mem_mb;
	r->u.result.has_reason = reason.n > 0;
	r->u.result.reason = reason;
	r->u.result.status = end->status;
	r->u.result.wall_ms = end->wall_ms;
}

static int make_draft(struct ending *k, struct draft *d, size_t max,
		      struct bytes reason, struct err *e)
{
	const struct qend *end = &k->j->end;
	cleanup_buf struct buf front = { 0 }, out = { 0 }, text = { 0 };
	struct payload r;
	fill_result(k, &r, reason);
	r.u.result.out_truncated = kept_cut(buf_bytes(&end->out), &out, max) ||
		end->out_cut;
	r.u.result.err_truncated = kept_cut(buf_bytes(&end->err), &text,
					    max) || end->err_cut;
	r.u.result.out_text = buf_bytes(&out);
	r.u.result.err_text = buf_bytes(&text);
	if (out.failed || text.failed)
		return err_set(e, ERR_MEMORY, "out of memory");
	payload_put_result(&front, &r);
	int rc = draft_meta(d, k->q->m->peer, ITEM_RESULT, &front, e);
	buf_free(&front);
	return rc;
}

/* Less output where a session's items are too small for it. */
static int add_result(struct ending *k, struct err *e)
{
	struct draft d = { 0 };
	cleanup_buf struct buf reason = { 0 };
	buf_add(&reason, k->j->end.reason.data, k->j->end.reason.len);
	if (reason.len && k->note.len)
		buf_add_str(&reason, "; ");
	buf_add(&reason, k->note.data, k->note.len);
	size_t max = KEPT_MAX;
	int rc = make_draft(k, &d, max, buf_bytes(&reason), e);
	while (rc < 0 && e->code == ERR_SIZE && max > TEXT_MIN)
		rc = make_draft(k, &d, max /= 4, buf_bytes(&reason), e);
	if (rc < 0)
		return -1;
	rc = draft_add_ref(&d, &k->j->ref, e);
	for (size_t i = 0; rc == 0 && i < k->n; i++)
		rc = draft_add_ref(&d, &k->out[i].item, e);
	if (rc == 0)
		rc = seal_item(k, &d, &k->item[k->n], e);
	draft_free(&d);
	return rc;
}

static int seal_all(struct ending *k, struct err *e)
{
	char key[sizeof QUEUE_KEY + ITEM_ID];
	snprintf(key, sizeof key, QUEUE_KEY "%s", k->j->id);
	if (add_out(k, e) < 0 || add_result(k, e) < 0)
		return -1;
	return outbox_put(k->q->m, key, k->item, k->n + 1, e);
}

static void forget(struct queue_room *q, struct qjob *j)
{
	struct err e;
	j->keep = false;
	if (queue_note(q, QK_ENDED, NULL, j->id, false, &e) < 0)
		mount_failed(q->m, &e);
	pthread_mutex_lock(&q->lock);
	queue_remember(q, j->id, QK_ENDED);
	queue_unlist(q, j);
	pthread_mutex_unlock(&q->lock);
	queue_dir_vanish(j);
}

/* Whether the fault is of this machine, and may pass. */
static bool may_pass(const struct err *e)
{
	return e->code == ERR_FULL || e->code == ERR_SYS ||
	       e->code == ERR_MEMORY || e->code == ERR_TIMEOUT;
}

void queue_seal(struct queue_room *q, struct qjob *j)
{
	struct err e = { 0 };
	struct ending *k = calloc(1, sizeof *k);
	if (!k)
		return;
	*k = (struct ending){ .q = q, .j = j };
	int rc = seal_all(k, &e);
	for (size_t i = 0; rc < 0 && i < ITEM_REFS_MAX; i++)
		outbox_item_drop(q->m, &k->item[i]);
	queue_out_list_free(j, &k->files);
	buf_free(&k->note);
	free(k);
	if (rc < 0) {
		err_prefix(&e, "the result of job %s cannot be sealed", j->id);
		mount_failed(q->m, &e);
	}
	if (rc == 0 || !may_pass(&e))
		forget(q, j);
	else if (!q->ending)
		queue_ask(q, QT_SEAL, j->id, j, clock_mono_ms() +
			  SEAL_RETRY_MS, 0);
}
