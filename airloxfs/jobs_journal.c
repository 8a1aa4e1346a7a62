/* SPDX-License-Identifier: MIT
 *
 * What a crash finds again: each record is the whole of a job as it was then,
 * as canonical JSON; the newest of a number counts.  The bytes of what is
 * sealed and of what it wrote are files beside it, made durable before the
 * record that names them.  A record that takes more room than a new journal
 * would is no matter: it is written anew at each mount. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/jobs_private.h"
#include "core/host/file.h"
#include "core/json.h"

#define JOURNAL "jobs.journal"

/* --- writing; members in the order of their keys --- */

static void put_out(struct buf *b, const struct submitted *s)
{
	json_put_key(b, "out");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < s->out_n; i++) {
		const struct jobs_out *o = &s->out[i];
		json_put_sep(b);
		buf_add_byte(b, '{');
		json_put_key(b, "path");
		json_put_string(b, bytes_str(o->path));
		json_put_key(b, "size");
		json_put_int(b, (int64_t)o->size);
		json_put_key(b, "vault");
		json_put_string(b, bytes_str(o->vault));
		buf_add_byte(b, '}');
	}
	buf_add_byte(b, ']');
}

static void put_sealed(struct buf *b, const struct submitted *s)
{
	json_put_key(b, "sealed");
	if (!s->has_job) {
		buf_add_str(b, "null");
		return;
	}
	buf_add_byte(b, '{');
	json_put_key(b, "blob"), json_put_string(b, bytes_str(s->blob));
	json_put_key(b, "blob_n");
	json_put_int(b, (int64_t)s->sealed.blob_n);
	json_put_key(b, "envelope");
	json_put_string(b, buf_bytes(&s->sealed.envelope));
	json_put_key(b, "id"), json_put_string(b, bytes_str(s->sealed.id));
	json_put_key(b, "sha256");
	json_put_b64(b, s->sealed.ref.sha256, HASH_SIZE);
	buf_add_byte(b, '}');
}

static void put_spec(struct buf *b, const struct jobs_spec *s)
{
	json_put_key(b, "spec");
	buf_add_byte(b, '{');
	json_put_key(b, "entry"), json_put_string(b, bytes_str(s->entry));
	json_put_key(b, "labels"), json_put_string(b, buf_bytes(&s->labels));
	json_put_key(b, "memory_mb"), json_put_int(b, s->memory_mb);
	json_put_key(b, "nowait"), json_put_int(b, s->nowait);
	json_put_key(b, "pub"), json_put_b64(b, s->pub, PRIM_PUB);
	json_put_key(b, "requirements");
	json_put_string(b, buf_bytes(&s->requirements));
	json_put_key(b, "runner"), json_put_string(b, bytes_str(s->runner));
	json_put_key(b, "target"), json_put_int(b, s->target);
	json_put_key(b, "timeout_s"), json_put_int(b, s->timeout_s);
	buf_add_byte(b, '}');
}

static void put_sizes(struct buf *b, const struct submitted *s)
{
	json_put_key(b, "sizes");
	buf_add_byte(b, '[');
	for (int t = 0; t < JOBS_TEXTS; t++) {
		json_put_sep(b);
		json_put_int(b, (int64_t)s->text_n[t]);
	}
	buf_add_byte(b, ']');
}

static void put_record(struct buf *b, const struct submitted *s)
{
	buf_add_byte(b, '{');
	json_put_key(b, "cancelling"), json_put_int(b, s->cancelling);
	json_put_key(b, "exit"), json_put_int(b, s->exit_code);
	json_put_key(b, "has_exit"), json_put_int(b, s->has_exit);
	json_put_key(b, "has_runner"), json_put_int(b, s->has_runner);
	json_put_key(b, "n"), json_put_int(b, (int64_t)s->n);
	json_put_key(b, "name"), json_put_string(b, bytes_str(s->name));
	put_out(b, s);
	json_put_key(b, "peak_mem_mb"), json_put_int(b, s->peak_mem_mb);
	json_put_key(b, "reason"), json_put_string(b, bytes_str(s->reason));
	json_put_key(b, "removed"), json_put_int(b, s->removed);
	json_put_key(b, "runner"), json_put_b64(b, s->runner, PRIM_PUB);
	put_sealed(b, s);
	put_sizes(b, s);
	put_spec(b, &s->spec);
	json_put_key(b, "state");
	json_put_string(b, bytes_str(jobs_state_word(s->state)));
	json_put_key(b, "tried"), json_put_int(b, s->tried);
	json_put_key(b, "verified"), json_put_int(b, s->verified);
	json_put_key(b, "wall_ms"), json_put_int(b, s->wall_ms);
	buf_add_byte(b, '}');
}

void jobs_put(struct submitted *s)
{
	struct jobs *j = s->m->jobs;
	cleanup_buf struct buf b = { 0 };
	uint64_t at;
	struct err e;
	put_record(&b, s);
	if (buf_failed(&b))
		err_set(&e, ERR_MEMORY, "out of memory");
	else if (!j->journal || journal_append(j->journal, buf_bytes(&b), &at,
					       &e) == 0)
		return;
	mount_failed(s->m, &e);
}

int jobs_sync(struct jobs *j, struct err *e)
{
	return journal_sync(j->journal, e);
}

/* --- reading --- */

static void copy_text(char *to, size_t room, struct bytes s)
{
	size_t n = s.n < room ? s.n : room - 1;
	if (n)			/* an empty one may be nowhere */
		memcpy(to, s.p, n);
	to[n] = 0;
}

static void read_spec(struct jobs_spec *s, const struct json *v,
		      struct json_reader *up)
{
	struct json_reader r;
	struct err e;
	json_open(&r, v, "spec");
	copy_text(s->entry, sizeof s->entry, json_take_string(&r, "entry"));
	struct bytes labels = json_take_string(&r, "labels");
	s->memory_mb = json_take_int(&r, "memory_mb", 0, JSON_INT_MAX);
	s->nowait = json_take_int(&r, "nowait", 0, 1);
	json_take_fixed(&r, "pub", s->pub, PRIM_PUB);
	struct bytes reqs = json_take_string(&r, "requirements");
	copy_text(s->runner, sizeof s->runner, json_take_string(&r, "runner"));
	s->target = (enum target_kind)json_take_int(&r, "target", 0,
						    TARGET_RUNNER);
	s->timeout_s = json_take_int(&r, "timeout_s", 0, JSON_INT_MAX);
	if (json_close(&r, &e) < 0) {
		json_fail(up, "spec", e.why);
		return;
	}
	buf_add(&s->labels, labels.p, labels.n);
	buf_add(&s->requirements, reqs.p, reqs.n);
}

static int read_sealed(struct submitted *s, const struct json *v,
		       struct err *e)
{
	struct json_reader r;
	if (json_is_null(v))
		return 0;
	json_open(&r, v, "sealed");
	copy_text(s->blob, sizeof s->blob, json_take_string(&r, "blob"));
	s->sealed.blob_n = (uint64_t)json_take_int(&r, "blob_n", 0,
						   JSON_INT_MAX);
	struct bytes envelope = json_take_string(&r, "envelope");
	struct bytes id = json_take_string(&r, "id");
	json_take_fixed(&r, "sha256", s->sealed.ref.sha256, HASH_SIZE);
	if (json_close(&r, e) < 0)
		return -1;
	if (!item_is_id(id) || strchr(s->blob, '/'))
		return err_set(e, ERR_INVALID, "what was sealed is damaged");
	copy_text(s->sealed.id, sizeof s->sealed.id, id);
	copy_text(s->sealed.ref.id, sizeof s->sealed.ref.id, id);
	buf_add(&s->sealed.envelope, envelope.p, envelope.n);
	s->has_job = true;
	return 0;
}

static int read_outs(struct submitted *s, const struct json *list,
		     struct err *e)
{
	s->out = calloc(list->count + 1, sizeof *s->out);
	if (!s->out)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (const struct json *v = list->child; v; v = v->next) {
		struct json_reader r;
		struct jobs_out *o = &s->out[s->out_n];
		json_open(&r, v, "out");
		struct bytes path = json_take_string(&r, "path");
		o->size = (uint64_t)json_take_int(&r, "size", 0, JSON_INT_MAX);
		copy_text(o->vault, sizeof o->vault,
			  json_take_string(&r, "vault"));
		if (json_close(&r, e) < 0)
			return -1;
		o->path = strndup((const char *)path.p, path.n);
		if (!o->path)
			return err_set(e, ERR_MEMORY, "out of memory");
		s->out_n++;
	}
	return 0;
}

/* Everything but the lists and the name, which the caller reads. */
static int read_record(struct submitted *s, const struct json *doc,
		       struct bytes *name, const struct json **out,
		       const struct json **sealed, struct err *e)
{
	struct json_reader r;
	json_open(&r, doc, "job");
	s->cancelling = json_take_int(&r, "cancelling", 0, 1);
	s->exit_code = json_take_int(&r, "exit", INT32_MIN, INT32_MAX);
	s->has_exit = json_take_int(&r, "has_exit", 0, 1);
	s->has_runner = json_take_int(&r, "has_runner", 0, 1);
	s->n = (uint64_t)json_take_int(&r, "n", 1, JSON_INT_MAX);
	*name = json_take_string(&r, "name");
	*out = json_take_array(&r, "out");
	s->peak_mem_mb = json_take_int(&r, "peak_mem_mb", 0, JSON_INT_MAX);
	copy_text(s->reason, sizeof s->reason, json_take_string(&r, "reason"));
	s->removed = json_take_int(&r, "removed", 0, 1);
	json_take_fixed(&r, "runner", s->runner, PRIM_PUB);
	*sealed = json_take(&r, "sealed");
	const struct json *sizes = json_take_array(&r, "sizes");
	int t = 0;
	for (const struct json *v = sizes ? sizes->child : NULL;
	     v && t < JOBS_TEXTS; v = v->next)
		if (v->type == JSON_INT && v->num >= 0)
			s->text_n[t++] = (uint64_t)v->num;
		else
			json_fail(&r, "sizes", "has what is no size");
	read_spec(&s->spec, json_take_object(&r, "spec"), &r);
	if (jobs_state_parse(&s->state, json_take_string(&r, "state")) < 0)
		json_fail(&r, "state", "is no state");
	s->tried = json_take_int(&r, "tried", 0, 1);
	s->verified = json_take_int(&r, "verified", 0, 1);
	s->wall_ms = json_take_int(&r, "wall_ms", 0, JSON_INT_MAX);
	return json_close(&r, e);
}

/* The record of this number takes the place of an older one. */
static struct submitted *slot_of(struct jobs *j, uint64_t n, const char *name)
{
	struct submitted *s = j->first;
	while (s && s->n != n)
		s = s->next;
	if (!s)
		return jobs_add(j, name);
	sealed_free(&s->sealed);
	for (size_t i = 0; i < s->out_n; i++)
		free(s->out[i].path);
	free(s->out);
	buf_free(&s->spec.labels);
	buf_free(&s->spec.requirements);
	return s;
}

static int load_one(struct jobs *j, const struct json *doc, struct err *e)
{
	struct submitted tmp = { .sealed.blob_fd = -1 };
	struct bytes name;
	const struct json *out, *sealed;
	if (read_record(&tmp, doc, &name, &out, &sealed, e) < 0 || !name.n) {
		buf_free(&tmp.spec.labels);
		buf_free(&tmp.spec.requirements);
		return -1;
	}
	char word[256];
	copy_text(word, sizeof word, name);
	struct submitted *s = slot_of(j, tmp.n, word);
	if (!s)
		return err_set(e, ERR_MEMORY, "out of memory");
	tmp.next = s->next;
	tmp.name = s->name;
	tmp.m = s->m;
	*s = tmp;
	if (s->n > j->newest)
		j->newest = s->n;
	if (!jobs_state_is_final(s->state))	/* what came live is gone */
		s->text_n[JOBS_STDOUT] = s->text_n[JOBS_STDERR] = 0;
	return read_sealed(s, sealed, e) < 0 || read_outs(s, out, e) < 0
		? -1 : 0;
}

static int load_record(void *arg, uint64_t at, struct bytes record,
		       struct err *e)
{
	(void)at;
	struct jobs *j = arg;
	struct json *doc = json_parse(record, e);
	if (!doc || load_one(j, doc, e) < 0)
		mount_log(j->m, "a record of a job was left out: %s", e->why);
	json_free(doc);
	return 0;
}

/* --- at each mount the journal is written anew --- */

/* A journal's key comes with its name: the new one is begun in a directory
 * beside it. */
static struct journal *begin_anew(struct jobs *j, int dir, struct err *e)
{
	const struct store *st = j->m->store;
	uint64_t cut;
	unlinkat(dir, JOURNAL, 0);
	return journal_open(dir, JOURNAL, st->session_key, st->session_id,
			    NULL, NULL, &cut, e);
}

/* Where that fails the old one serves as well. */
static void renew(struct jobs *j)
{
	struct err e;
	struct journal *old = j->journal;
	cleanup_fd int dir = file_make_dir(j->dir, "anew", &e);
	j->journal = dir < 0 ? NULL : begin_anew(j, dir, &e);
	for (struct submitted *s = j->first; j->journal && s; s = s->next)
		/* numbers are not given again */
		if (!s->removed || s->n == j->newest)
			jobs_put(s);
	if (j->journal && journal_sync(j->journal, &e) == 0 &&
	    renameat(dir, JOURNAL, j->m->store->dir, JOURNAL) == 0) {
		file_fsync_dir(j->m->store->dir, &e);
		journal_close(old);
		return;
	}
	journal_close(j->journal);
	j->journal = old;
}

static bool is_needed(const struct jobs *j, const char *name)
{
	char own[32];
	unsigned long long n;
	if (strncmp(name, "j", 1) == 0 && sscanf(name, "j%llu-%31s", &n,
						 own) == 2) {
		for (const struct submitted *s = j->first; s; s = s->next)
			if (s->n == n && !s->removed)
				return true;
		return false;
	}
	for (const struct submitted *s = j->first; s; s = s->next)
		if (strcmp(s->blob, name) == 0)
			return !s->removed;
	return false;
}

/* Sealed, and killed before the record that names it. */
static void sweep(struct jobs *j)
{
	int fd = openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return;
	for (struct dirent *de; (de = readdir(d));)
		if (de->d_name[0] != '.' || strncmp(de->d_name, ".tmp-",
						    5) == 0)
			if (!is_needed(j, de->d_name))
				unlinkat(j->dir, de->d_name, 0);
	closedir(d);
}

/* What was sealed is a job again. */
static void read_jobs(struct jobs *j)
{
	for (struct submitted *s = j->first; s; s = s->next) {
		cleanup_buf struct buf meta = { 0 };
		struct err e;
		if (!s->has_job || s->removed || s->verified)
			continue;
		if (jobs_text_all(s, JOBS_META, &meta, &e) == 0 &&
		    job_read(&s->job, &s->sealed.ref, buf_bytes(&meta),
			     &e) == 0)
			continue;
		mount_log(j->m, "jobs/%s: what was sealed cannot be read: %s",
			  s->name, e.why);
		s->has_job = false;
	}
}

int jobs_load(struct jobs *j, struct err *e)
{
	uint64_t cut = 0;
	j->journal = store_journal(j->m->store, JOURNAL, load_record, j, &cut,
				   e);
	if (!j->journal)
		return -1;
	if (cut)
		mount_log(j->m, "the journal of jobs had a damaged end of %llu "
			  "bytes", (unsigned long long)cut);
	else
		sweep(j);
	read_jobs(j);
	renew(j);
	return 0;
}
