/* SPDX-License-Identifier: MIT
 *
 * From a directory of files to a sealed job. */
#include <string.h>

#include "core/clear.h"
#include "core/host/job.h"
#include "core/name.h"

/* An input that is an item of its own.  Drafts do not move: they point into
 * themselves. */
struct job_file {
	struct draft draft;
	int64_t bytes;
	bool sent;
	struct item_ref ref;
};

struct job_plan {
	struct job_spec spec;
	const struct peer *peer;
	const struct draft_look *look;
	struct job_file file[JOB_FILES_MAX];
	size_t file_n;
	bool *apart;			/* by input: it is one of file[] */
	struct zip_bundle *bundle;	/* of the others, or NULL */
	struct buf meta;		/* once sealed */
};

/* --- checks that need no file --- */

static void fill_payload(const struct job_plan *j, struct payload *p)
{
	const struct job_spec *s = &j->spec;
	const struct job_limits *max = &j->peer->manifest.job;

	*p = (struct payload){ .kind = ITEM_JOB };
	p->u.job.code = s->code;
	p->u.job.filename = s->filename;
	p->u.job.runtime = bytes_str(max->runtime);
	p->u.job.has_memory = s->memory_mb != 0;
	p->u.job.memory_mb = s->memory_mb;
	p->u.job.requirements = (struct bytes *)s->requirement;
	p->u.job.requirement_n = s->requirement_n;
	p->u.job.target = s->target;
	p->u.job.timeout_s = s->timeout_s ? s->timeout_s : max->timeout_s;
}

static int check_job(const struct job_plan *j, struct err *e)
{
	const struct peer *p = j->peer;
	struct item_header h = { .kind = ITEM_JOB, .type = TYPE_PY };
	struct cert c = { .role = p->invite.role };
	struct payload payload;

	if (p->manifest.mode != MODE_EXECUTE)
		return err_set(e, ERR_POLICY, "this session runs no jobs: it "
			       "was made without --execute");
	if (peer_may_post(p, ITEM_JOB, TYPE_PY, e) < 0)
		return -1;
	if (!clear_utf8(j->spec.code))
		return err_set(e, ERR_CONTENT, "the program is not UTF-8");
	fill_payload(j, &payload);
	return payload_check(&payload, &h, &c, &p->manifest, e);
}

static char *dup_bytes(struct bytes b)
{
	return strndup((const char *)b.p, b.n);
}

/* The work directory as the runner will have it, without what is in zips. */
static int check_paths(const struct job_plan *j, struct err *e)
{
	const struct job_spec *s = &j->spec;
	struct zip_list list = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->input_n; i++)
		r = name_check_entry(s->input[i].path, e);
	if (r < 0)
		return -1;
	list.v = calloc(s->input_n + 1, sizeof *list.v);
	if (!list.v)
		return err_set(e, ERR_MEMORY, "out of memory");
	list.v[list.n++].path = dup_bytes(s->filename);
	for (size_t i = 0; i < s->input_n; i++)
		list.v[list.n++].path = dup_bytes(s->input[i].path);
	for (size_t i = 0; i < list.n; i++)
		if (!list.v[i].path)
			r = err_set(e, ERR_MEMORY, "out of memory");
	if (r == 0 && (r = zip_name_clash(&list, e)) < 0) {
		e->code = ERR_EXISTS;
		err_prefix(e, "two inputs of one path");
	}
	zip_list_free(&list);
	return r;
}

/* --- what travels how --- */

static bool may_be_apart(const struct job_input *in, enum item_type *type)
{
	bool wrapped;

	if (memchr(in->path.p, '/', in->path.n))
		return false;
	*type = draft_type(in->path, &wrapped);
	return !wrapped && *type != TYPE_TEXT;
}

/* 1 where it cannot be an item: then it goes with the others. */
static int put_apart(struct job_plan *j, size_t i, struct err *e)
{
	const struct job_input *in = &j->spec.input[i];
	struct job_file *f = &j->file[j->file_n];

	if (draft_file(&f->draft, j->peer, in->path, &in->body, j->look,
		       e) == 0) {
		f->bytes = draft_size(&f->draft);
		j->file_n++;
		j->apart[i] = true;
		return 0;
	}
	return e->code == ERR_CONTENT || e->code == ERR_TYPE ||
	       e->code == ERR_NAME || e->code == ERR_POLICY ||
	       e->code == ERR_INVALID || e->code == ERR_SIZE ? 1 : -1;
}

/* Archives first: within another they would not be unpacked.  One place is
 * kept for inputs.zip. */
static int put_all_apart(struct job_plan *j, bool zips, struct err *e)
{
	for (size_t i = 0; i < j->spec.input_n; i++) {
		enum item_type type = TYPE_NONE;
		if (!may_be_apart(&j->spec.input[i], &type) ||
		    (type == TYPE_ZIP) != zips ||
		    j->file_n == JOB_FILES_MAX - 1)
			continue;
		if (put_apart(j, i, e) < 0)
			return -1;
	}
	return 0;
}

static int look_at_ours(enum item_type type, const char *mime,
			const struct zip_source *body, struct err *e)
{
	(void)type, (void)mime, (void)body, (void)e;
	return 0;	/* we have just made it */
}

static int put_bundle(struct job_plan *j, struct err *e)
{
	static const struct draft_look look = { .content = look_at_ours };
	struct job_file *f = &j->file[j->file_n];
	struct zip_source body;

	for (size_t i = 0; i < j->spec.input_n; i++) {
		const struct job_input *in = &j->spec.input[i];
		if (j->apart[i])
			continue;
		if (!j->bundle && !(j->bundle = zip_bundle_new()))
			return err_set(e, ERR_MEMORY, "out of memory");
		if (zip_bundle_add(j->bundle, in->path, &in->body, in->is_exec,
				   e) < 0)
			return -1;
	}
	if (!j->bundle)
		return 0;
	if (zip_bundle_source(j->bundle, &body, e) < 0 ||
	    draft_file(&f->draft, j->peer, bytes_str("inputs.zip"), &body,
		       &look, e) < 0)
		return err_prefix(e, "the inputs, as a zip");
	f->bytes = draft_size(&f->draft);
	j->file_n++;
	return 0;
}

struct job_plan *job_plan_new(const struct job_spec *s, const struct peer *p,
			      const struct draft_look *look, struct err *e)
{
	struct job_plan *j = calloc(1, sizeof *j);
	struct err own;

	e = e ? e : &own;
	*e = (struct err){ 0 };
	if (!j || !(j->apart = calloc(s->input_n + 1, sizeof *j->apart))) {
		free(j);
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	j->spec = *s;
	j->peer = p;
	j->look = look;
	if (check_job(j, e) == 0 && check_paths(j, e) == 0 &&
	    put_all_apart(j, true, e) == 0 &&
	    put_all_apart(j, false, e) == 0 && put_bundle(j, e) == 0)
		return j;
	job_plan_free(j);
	return NULL;
}

void job_plan_free(struct job_plan *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->file_n; i++)
		draft_free(&j->file[i].draft);
	zip_bundle_free(j->bundle);
	buf_free(&j->meta);
	free(j->apart);
	free(j);
}

size_t job_plan_files(const struct job_plan *j) { return j->file_n; }

int64_t job_plan_bytes(const struct job_plan *j)
{
	int64_t n = 0;

	for (size_t i = 0; i < j->file_n; i++)
		n += j->file[i].bytes;
	return n;
}

/* --- out --- */

int job_plan_send(struct job_plan *j, struct peer *p,
		  const struct draft_post *how, struct err *e)
{
	for (size_t i = 0; i < j->file_n; i++) {
		struct job_file *f = &j->file[i];
		struct sealed s = { .blob_fd = -1 };
		uint64_t seq;
		if (f->sent)
			continue;
		if (draft_send(&f->draft, p, how, &s, &seq, e) < 0)
			return err_prefix(e, "an input of the job");
		f->ref = s.ref;
		f->sent = true;
		sealed_free(&s);
		draft_free(&f->draft);
	}
	return 0;
}

static int seal_draft(const struct job_plan *j, struct draft *d, int fd,
		      struct sealed *out, struct err *e)
{
	for (size_t i = 0; i < j->file_n; i++)
		if (draft_add_ref(d, &j->file[i].ref, e) < 0)
			return -1;
	return draft_seal(d, j->peer, fd, out, e);
}

int job_plan_seal(struct job_plan *j, int fd, struct sealed *out,
		  struct err *e)
{
	struct item_ref refs[JOB_FILES_MAX];
	struct payload payload;
	struct buf front = { 0 };
	struct draft d;

	fill_payload(j, &payload);
	for (size_t i = 0; i < j->file_n; i++) {
		if (!j->file[i].sent)
			return err_set(e, ERR_INVALID, "an input of the job "
				       "was not sent yet");
		refs[i] = j->file[i].ref;
	}
	payload.u.job.files = refs;
	payload.u.job.file_n = j->file_n;
	payload_put_job(&front, &payload);
	buf_reset(&j->meta);
	if (!buf_failed(&front))
		buf_add(&j->meta, front.data + 4, front.len - 4);
	if (draft_meta(&d, j->peer, ITEM_JOB, &front, e) < 0)
		return -1;
	int r = seal_draft(j, &d, fd, out, e);
	draft_free(&d);
	return r;
}

int job_of_plan(struct job *job, const struct job_plan *plan,
		const struct sealed *s, struct err *e)
{
	return job_read(job, &s->ref, buf_bytes(&plan->meta), e);
}
