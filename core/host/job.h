/* SPDX-License-Identifier: MIT
 *
 * job: a job from an entry file and its inputs to a result that counts: what
 * the mount's jobs/ and the command line share.
 *
 * The way: job_plan_new checks everything that needs no network; its inputs
 * are posted as items (job_plan_send), then the job is sealed (job_plan_seal)
 * and posted (job_post).  Id, bytes and signature are fixed by the sealing:
 * who keeps the sealed job and posts it again after a lost answer, or a crash,
 * has one job.  Then it is followed: by events, by job_get, and by results,
 * of which only the one that job_accepts counts. */
#ifndef AIRLOX_HOST_JOB_H
#define AIRLOX_HOST_JOB_H

#include "core/host/approval.h"
#include "core/host/draft.h"
#include "core/host/wire_job.h"

/* --- what to run --- */

/* A file of the work directory; path is relative, with slashes.  The body must
 * not change until the plan is freed. */
struct job_input {
	struct bytes path;
	struct zip_source body;
	bool is_exec;
};

struct job_spec {
	struct bytes filename;		/* of the entry, ends in .py */
	struct bytes code;		/* UTF-8, at most 1 MiB */
	const struct job_input *input;
	size_t input_n;
	const struct bytes *requirement;
	size_t requirement_n;
	struct target target;		/* see job_target */
	int64_t timeout_s;		/* 0: the session's */
	int64_t memory_mb;		/* 0: null, the session's */
};

/* A plan borrows all that its spec points to, and the peer. */
struct job_plan;

/* An input of type py, md, zip or image at the top of the work directory
 * travels as an item of its own (a zip is unpacked by the runner); all others
 * travel in one inputs.zip, unpacked as well.  ERR_EXISTS for two of one path,
 * ERR_NAME, ERR_TYPE, ERR_SIZE, ERR_POLICY, ERR_CONTENT (the entry is not
 * UTF-8), ERR_ROLE, ERR_GONE. */
struct job_plan *job_plan_new(const struct job_spec *s, const struct peer *p,
			      const struct draft_look *look, struct err *e);
size_t job_plan_files(const struct job_plan *j);	/* items to send */
int64_t job_plan_bytes(const struct job_plan *j);	/* of all of them */
/* Posts the inputs that were not posted yet, one after the other.  After
 * ERR_NET and the like it may be called again. */
int job_plan_send(struct job_plan *j, struct peer *p,
		  const struct draft_post *how, struct err *e);
/* Seals the job over the inputs that were sent, into fd (as draft_seal). */
int job_plan_seal(struct job_plan *j, int fd, struct sealed *out,
		  struct err *e);
void job_plan_free(struct job_plan *j);

/* The target that names a verified runner; borrows from it. */
struct target job_target(const struct participant *runner);

/* --- a job that was sealed --- */

/* Zero-initialise; job_free at the end. */
struct job {
	struct item_ref ref;
	struct buf meta;
	struct payload payload;		/* borrows meta; kind ITEM_JOB */
};

/* From its meta (payload without frame), which is copied. */
int job_read(struct job *j, const struct item_ref *ref, struct bytes meta,
	     struct err *e);
/* From the plan, once it is sealed. */
int job_of_plan(struct job *j, const struct job_plan *plan,
		const struct sealed *s, struct err *e);
void job_free(struct job *j);

/* Once, or again after any ERR_NET, ERR_RATE or ERR_FULL: a relay that has it
 * already says how it stands.  Returns 0 also where no runner took it; then
 * the item stays in the log as failed, and a next try is a new plan_seal. */
enum job_posted { JOB_TAKEN, JOB_NO_RUNNER, JOB_RUNNER_BUSY };
int job_post(struct wire *w, const struct sealed *s, const struct job *j,
	     enum job_posted *posted, struct routed_job *state,
	     void (*moved)(void *arg, uint64_t done), void *arg,
	     struct err *e);
/* "no_runner_available" and "runner_busy", as a reason of a failed job. */
bool job_is_unplaced(const struct routed_job *state, enum job_posted *why);

/* Whether this runner may answer for the job: it is the target (or the target
 * names none), and approved where the manifest asks for it. */
bool job_may_run(const struct job *j, const struct manifest *m,
		 const struct approval_list *l, const uint8_t pub[PRIM_PUB]);
/* Whether a verified result counts for the job: by a runner, and as
 * result_binds says.  ERR_POLICY. */
int job_accepts(const struct job *j, const struct payload *result,
		const struct cert *author, const struct manifest *m,
		const struct approval_list *l, struct err *e);

/* First the relay's cancel, then the signed event that says who asked.  Done
 * again it sends the event again, which changes nothing. */
int job_cancel(struct peer *p, struct wire *w, const struct item_ref *job,
	       struct err *e);

/* --- what a result says of what it ran: lowercase hex and a NUL --- */

#define JOB_HEX (2 * HASH_SIZE + 1)
void job_code_hash(char hex[JOB_HEX], struct bytes code);
/* Over the inputs' blobs, as ciphertext, one after the other, from the cache:
 * ERR_NOT_FOUND where one is not there. */
int job_input_hash(char hex[JOB_HEX], struct cache *c,
		   const struct item_ref *files, size_t n, struct err *e);

#endif
