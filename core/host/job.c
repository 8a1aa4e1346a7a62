/* SPDX-License-Identifier: MIT
 *
 * A job that was sealed: posting it, who may answer for it, what counts. */
#include <string.h>

#include "core/enc.h"
#include "core/host/job.h"

#define GIVE_UP_MS 60000
#define CHUNK ((size_t)64 * 1024)

struct target job_target(const struct participant *runner)
{
	struct target t = { .kind = TARGET_RUNNER };

	t.name = bytes_str(runner->join.runner.name);
	memcpy(t.pub, runner->join.cert.pub, PRIM_PUB);
	return t;
}

int job_read(struct job *j, const struct item_ref *ref, struct bytes meta,
	     struct err *e)
{
	*j = (struct job){ .ref = *ref };
	buf_add(&j->meta, meta.p, meta.n);
	if (buf_failed(&j->meta))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (payload_parse(&j->payload, buf_bytes(&j->meta), 0, e) == 0 &&
	    j->payload.kind == ITEM_JOB)
		return 0;
	if (j->payload.doc)
		err_set(e, ERR_INVALID, "that item is no job");
	job_free(j);
	return -1;
}

void job_free(struct job *j)
{
	payload_free(&j->payload);
	buf_free(&j->meta);
	*j = (struct job){ 0 };
}

/* --- to the relay --- */

static bool is_word(const char *word, enum job_posted *why)
{
	if (!strcmp(word, "no_runner_available"))
		*why = JOB_NO_RUNNER;
	else if (!strcmp(word, "runner_busy"))
		*why = JOB_RUNNER_BUSY;
	else
		return false;
	return true;
}

bool job_is_unplaced(const struct routed_job *state, enum job_posted *why)
{
	return state->state == ROUTED_FAILED && state->reason &&
	       is_word(state->reason, why);
}

static int post(struct wire *w, const struct wire_upload *u,
		const struct job *j, struct routed_job *state, struct err *e)
{
	cleanup_buf struct buf target = { 0 };

	payload_put_target(&target, &j->payload.u.job.target);
	if (buf_failed(&target))
		return err_set(e, ERR_MEMORY, "out of memory");
	return wire_job_post(w, u, buf_bytes(&target), state, e);
}

int job_post(struct wire *w, const struct sealed *s, const struct job *j,
	     enum job_posted *posted, struct routed_job *state,
	     void (*moved)(void *arg, uint64_t done), void *arg,
	     struct err *e)
{
	const struct wire_upload u = {
		.envelope = buf_bytes(&s->envelope), .blob_fd = s->blob_fd,
		.blob_n = s->blob_n, .moved = moved, .moved_arg = arg,
	};
	struct err own;

	e = e ? e : &own;
	*posted = JOB_TAKEN;
	if (post(w, &u, j, state, e) == 0)
		return 0;
	if (e->code == ERR_CONFLICT && is_word(wire_word(w), posted))
		return 0;
	if (e->code != ERR_DUPLICATE)
		return -1;
	/* its answer was lost */
	if (wire_job_get(w, j->ref.id, state, e) < 0)
		return -1;
	job_is_unplaced(state, posted);
	return 0;
}

int job_cancel(struct peer *p, struct wire *w, const struct item_ref *job,
	       struct err *e)
{
	const struct draft_post how = { .wire = w, .give_up_ms = GIVE_UP_MS };
	struct sealed s = { .blob_fd = -1 };
	struct draft d;
	uint64_t seq;

	if (wire_job_cancel(w, job->id, e) < 0 ||
	    draft_event(&d, p, EVENT_JOB_CANCEL, NULL, NULL, job, e) < 0)
		return -1;
	int r = draft_add_ref(&d, job, e);
	if (r == 0)
		r = draft_send(&d, p, &how, &s, &seq, e);
	draft_free(&d);
	sealed_free(&s);
	return r;
}

/* --- what counts --- */

bool job_may_run(const struct job *j, const struct manifest *m,
		 const struct approval_list *l, const uint8_t pub[PRIM_PUB])
{
	const struct target *t = &j->payload.u.job.target;

	if (t->kind == TARGET_RUNNER && memcmp(t->pub, pub, PRIM_PUB) != 0)
		return false;
	return approval_stands(l, m, pub);
}

int job_accepts(const struct job *j, const struct payload *result,
		const struct cert *author, const struct manifest *m,
		const struct approval_list *l, struct err *e)
{
	const struct approvals a = approval_view(l, m);

	/* the owner may post anything, but ran nothing */
	if (author->role != ROLE_RUNNER)
		return err_set(e, ERR_POLICY, "result: not from a runner");
	return result_binds(result, author->pub, &j->payload, &j->ref, &a, e);
}

/* --- hashes --- */

void job_code_hash(char hex[JOB_HEX], struct bytes code)
{
	uint8_t sha256[HASH_SIZE];

	hash_sha256(sha256, code.p, code.n);
	enc_hex(hex, sha256, HASH_SIZE);
}

static int hash_blob(struct hash *h, struct cache *c, const char *id,
		     uint8_t *chunk, struct err *e)
{
	cleanup_fd int fd = cache_open_blob(c, id, e);
	int64_t size = fd < 0 ? -1 : file_size(fd, e);

	for (uint64_t at = 0; size > 0 && at < (uint64_t)size;) {
		size_t n = (uint64_t)size - at < CHUNK ?
			(size_t)((uint64_t)size - at) : CHUNK;
		if (file_get_at(fd, chunk, n, at, e) < 0)
			return -1;
		hash_add(h, chunk, n);
		at += n;
	}
	return size < 0 ? -1 : 0;
}

int job_input_hash(char hex[JOB_HEX], struct cache *c,
		   const struct item_ref *files, size_t n, struct err *e)
{
	struct hash *h = hash_new();
	cleanup_free uint8_t *chunk = malloc(CHUNK);
	uint8_t sha256[HASH_SIZE];
	int r = h && chunk ? 0 : err_set(e, ERR_MEMORY, "out of memory");

	for (size_t i = 0; r == 0 && i < n; i++)
		r = hash_blob(h, c, files[i].id, chunk, e);
	if (r == 0) {
		hash_final(h, sha256);
		enc_hex(hex, sha256, HASH_SIZE);
	}
	hash_free(h);
	return r;
}
