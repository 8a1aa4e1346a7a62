/* SPDX-License-Identifier: MIT
 *
 * From a directory to a sealed job.  The drafts are read where they are: they
 * are busy (out.h) until the inputs were sent, and held. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "airloxfs/jobs_private.h"
#include "core/host/file.h"

#define INPUTS_MAX 10000
#define RELEASE_WAIT_MS 1000	/* a close is known before its release */

struct input {
	struct node *node;	/* held */
	struct outgoing *file;	/* busy */
	char *path;
};

struct jobs_plan {
	struct mount *m;
	struct job_plan *plan;
	struct input *v;
	size_t n;
	struct buf code;
	struct job_input *in;
	struct bytes *words;	/* labels, then requirements */
	bool sent;	/* the drafts were let go */
};

/* --- the drafts of a directory --- */

/* The paths stay: the plan borrows them. */
static void let_go(struct jobs_plan *p)
{
	for (size_t i = 0; i < p->n && !p->sent; i++) {
		if (p->v[i].file)
			out_idle(p->v[i].file);
		mount_drop(p->m, p->v[i].node);
	}
	p->sent = true;
}

static void plan_free(struct jobs_plan *p)
{
	if (!p)
		return;
	job_plan_free(p->plan);
	let_go(p);
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].path);
	free(p->v);
	buf_free(&p->code);
	free(p->in);
	free(p->words);
	free(p);
}

void jobs_plan_free(struct submitted *s)
{
	plan_free(s->plan);
	s->plan = NULL;
}

struct job_plan *jobs_plan_of(struct jobs_plan *p) { return p->plan; }

void jobs_plan_sent(struct jobs_plan *p) { let_go(p); }

bool jobs_plan_is_sent(const struct jobs_plan *p) { return p->sent; }

/* What was run is there after a crash. */
static int make_durable(struct jobs_plan *p, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < p->n && rc == 0; i++) {
		struct outgoing *f = p->v[i].file;
		pthread_mutex_lock(&f->lock);
		rc = out_put_header(p->m, f, e) < 0 ? -1
			: vault_sync(f->vault, e);
		pthread_mutex_unlock(&f->lock);
	}
	return rc;
}

/* A writer's release comes a moment after its close has returned. */
static int make_busy(struct outgoing *f, const char *path, struct err *e)
{
	int64_t until = jobs_now() + RELEASE_WAIT_MS;
	for (;;) {
		pthread_mutex_lock(&f->lock);
		bool open = f->handles, bad = f->poisoned;
		if (!open && !bad)
			out_busy(f);
		pthread_mutex_unlock(&f->lock);
		if (!open && bad)
			return err_set(e, ERR_CONTENT, "%s is not whole: its "
				       "writer was killed, or a write failed",
				       path);
		if (!open)
			return 0;
		if (jobs_now() >= until)
			return err_set(e, ERR_LOCKED, "%s is still being "
				       "written", path);
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
}

static int add_input(struct jobs_plan *p, struct node *n, const char *path,
		     struct err *e)
{
	if (p->n == INPUTS_MAX)
		return err_set(e, ERR_SIZE, "more than %d inputs", INPUTS_MAX);
	if ((p->n & (p->n - 1)) == 0) {
		void *v = realloc(p->v, (p->n ? p->n * 2 : 1) * sizeof *p->v);
		if (!v)
			return err_set(e, ERR_MEMORY, "out of memory");
		p->v = v;
	}
	struct input *in = &p->v[p->n];
	*in = (struct input){ .node = n, .path = strdup(path) };
	if (!in->path)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (make_busy(n->data, path, e) < 0) {
		free(in->path);
		return -1;
	}
	in->file = n->data;
	mount_lock(p->m);
	n->opens++;
	mount_unlock(p->m);
	p->n++;
	return 0;
}

static int collect(struct jobs_plan *p, struct node *dir, struct buf *path,
		   struct err *e)
{
	uint64_t at = 0;
	int rc = 0;
	while (rc == 0) {
		struct node *n = out_hold_next(p->m, dir, &at);
		size_t len = path->len;
		if (!n)
			break;
		mount_lock(p->m);
		buf_addf(path, "%s%s", len ? "/" : "", n->name);
		mount_unlock(p->m);
		const char *s = buf_cstr(path);
		if (!s)
			rc = err_set(e, ERR_MEMORY, "out of memory");
		else if (n->ops == &out_file_ops)
			rc = add_input(p, n, s, e);
		else if (n->ops == &jobs_one_ops)
			rc = collect(p, n, path, e);
		path->len = len;
		mount_drop(p->m, n);
	}
	return rc;
}

/* --- the entry --- */

static bool is_py(const char *path)
{
	size_t n = strlen(path);
	return n > 3 && !strchr(path, '/') && !strcmp(path + n - 3, ".py");
}

static struct input *named(struct jobs_plan *p, const char *path)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->v[i].path, path))
			return &p->v[i];
	return NULL;
}

static struct input *find_entry(struct jobs_plan *p,
				const struct jobs_spec *spec, struct err *e)
{
	struct input *only = NULL;
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (is_py(p->v[i].path)) {
			only = &p->v[i];
			n++;
		}
	if (spec->entry[0])
		only = named(p, spec->entry);
	else if (n != 1)
		only = named(p, "main.py");
	if (only)
		return only;
	if (spec->entry[0])
		err_set(e, ERR_VERB, "there is no %s in this job", spec->entry);
	else if (!n)
		err_set(e, ERR_VERB, "there is no .py to run in this job");
	else
		err_set(e, ERR_VERB, "which .py is to be run? entry FILE in "
			"ctl says");
	return NULL;
}

static int read_code(struct jobs_plan *p, struct input *entry, struct err *e)
{
	uint64_t n = entry->node->size;
	if (n > JOBS_CODE_MAX)
		return err_set(e, ERR_SIZE, "a program may have 1 MiB");
	uint8_t *to = buf_room(&p->code, (size_t)n + 1);
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (n && out_read_busy(entry->file, 0, to, (size_t)n) < 0)
		return err_set(e, ERR_SYS, "%s cannot be read", entry->path);
	p->code.len = (size_t)n;
	return 0;
}

/* --- the plan --- */

/* Words with a space between, borrowed. */
static size_t split(const struct buf *text, struct bytes *to)
{
	size_t n = 0;
	for (size_t at = 0; at < text->len;) {
		size_t end = at;
		while (end < text->len && text->data[end] != ' ')
			end++;
		to[n++] = (struct bytes){ text->data + at, end - at };
		at = end + 1;
	}
	return n;
}

static void fill_spec(struct jobs_plan *p, const struct submitted *s,
		      const struct input *entry, struct job_spec *spec)
{
	const struct jobs_spec *want = &s->spec;
	size_t labels = split(&want->labels, p->words);
	*spec = (struct job_spec){
		.filename = bytes_str(entry->path),
		.code = buf_bytes(&p->code), .input = p->in,
		.requirement = p->words + labels,
		.requirement_n = split(&want->requirements, p->words + labels),
		.timeout_s = want->timeout_s, .memory_mb = want->memory_mb };
	spec->target.kind = want->target;
	spec->target.labels = p->words;
	spec->target.label_n = labels;
	spec->target.name = bytes_str(want->runner);
	memcpy(spec->target.pub, want->pub, PRIM_PUB);
	for (size_t i = 0; i < p->n; i++) {
		const struct input *in = &p->v[i];
		if (in == entry)
			continue;
		p->in[spec->input_n++] = (struct job_input){
			.path = bytes_str(in->path),
			.body = { out_read_busy, in->file, in->node->size },
			.is_exec = in->node->mode & 0100 };
	}
}

static int make_plan(struct jobs_plan *p, const struct submitted *s,
		     struct node *dir, struct err *e)
{
	cleanup_buf struct buf path = { 0 };
	struct job_spec spec;
	if (collect(p, dir, &path, e) < 0 || make_durable(p, e) < 0)
		return -1;
	struct input *entry = find_entry(p, &s->spec, e);
	if (!entry || read_code(p, entry, e) < 0)
		return -1;
	p->in = calloc(p->n, sizeof *p->in);
	p->words = calloc(s->spec.labels.len + s->spec.requirements.len + 2,
			  sizeof *p->words);
	if (!p->in || !p->words)
		return err_set(e, ERR_MEMORY, "out of memory");
	fill_spec(p, s, entry, &spec);
	p->plan = job_plan_new(&spec, p->m->peer, &seal_look, e);
	return p->plan ? 0 : -1;
}

/* The words of s->spec stay: ctl takes no more of them meanwhile. */
struct jobs_plan *jobs_plan_new(struct submitted *s, struct err *e)
{
	struct mount *m = s->m;
	struct jobs_plan *p = calloc(1, sizeof *p);
	mount_lock(m);
	struct node *dir = s->dir;
	if (dir)
		dir->opens++;
	mount_unlock(m);
	int rc = -1;
	if (!p || !dir) {
		err_set(e, ERR_MEMORY, "the job was removed");
	} else {
		p->m = m;
		rc = make_plan(p, s, dir, e);
	}
	if (dir)
		mount_drop(m, dir);
	if (rc == 0)
		return p;
	plan_free(p);
	return NULL;
}

/* --- sealing --- */

static int keep_blob(struct submitted *s, const struct sealed *sealed,
		     const char *blob, struct err *e)
{
	struct jobs *j = s->m->jobs;
	if (fdatasync(sealed->blob_fd) < 0)
		return err_sys(e, "the sealed job cannot be made durable");
	if (file_fsync_dir(j->dir, e) < 0)
		return -1;
	pthread_mutex_lock(&j->lock);
	int rc = job_of_plan(&s->job, s->plan->plan, sealed, e);
	if (rc == 0)
		rc = jobs_text_replace(s, JOBS_META, buf_bytes(&s->job.meta),
				       e);
	if (rc == 0) {
		s->sealed = *sealed;
		strcpy(s->blob, blob);
		s->has_job = true;
		s->live = (struct live){ 0 };
		jobs_put(s);
	}
	pthread_mutex_unlock(&j->lock);
	return rc == 0 ? jobs_sync(j, e) : -1;
}

int jobs_seal(struct submitted *s, struct err *e)
{
	struct jobs *j = s->m->jobs;
	struct sealed sealed;
	char blob[FILE_TMP];
	int fd = file_tmp(j->dir, blob, e);
	if (fd < 0)
		return -1;
	if (job_plan_seal(s->plan->plan, fd, &sealed, e) < 0) {
		close(fd);
		unlinkat(j->dir, blob, 0);
		return -1;
	}
	sealed.owns_fd = true;
	if (keep_blob(s, &sealed, blob, e) == 0)
		return 0;
	if (!s->has_job) {
		sealed_free(&sealed);
		unlinkat(j->dir, blob, 0);
	}
	return -1;
}

int jobs_reopen(struct submitted *s, struct err *e)
{
	if (s->sealed.blob_fd >= 0)
		return 0;
	s->sealed.blob_fd = openat(s->m->jobs->dir, s->blob,
				   O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	s->sealed.owns_fd = true;
	return s->sealed.blob_fd >= 0 ? 0 :
		err_sys(e, "a sealed job is gone from the state directory");
}

/* We hold it like any holder: it can be given back to the relay. */
void jobs_posted(struct submitted *s)
{
	struct jobs *j = s->m->jobs;
	if (s->blob[0] && renameat(j->dir, s->blob, s->m->peer->cache->blobs,
				   s->sealed.id) < 0)
		unlinkat(j->dir, s->blob, 0);
	s->blob[0] = 0;
	if (s->sealed.blob_fd >= 0)
		close(s->sealed.blob_fd);
	s->sealed.blob_fd = -1;
	s->sealed.owns_fd = false;
	jobs_plan_free(s);
}
