/* SPDX-License-Identifier: MIT
 *
 * What a session allows of a payload that is well formed.  Every fault is of
 * class policy, but for a requirement that is no package name. */
#include <string.h>

#include "core/clear.h"
#include "core/name.h"
#include "core/payload.h"
#include "core/sniff.h"

#define TEXT_MAX ((size_t)1 << 20)	/* code, stdout, stderr: bytes */
#define REASON_CHARS 4096

static int refuse(struct err *e, const char *why)
{
	return err_set(e, ERR_POLICY, "%s", why);
}

static int check_file(const struct payload *p, const struct item_header *h,
		      struct err *e)
{
	struct sniff s;

	if (name_check(p->u.file.name, e) < 0)
		return -1;
	if (sniff_name(p->u.file.name, &s) < 0 || s.type != h->type ||
	    !bytes_eq(p->u.file.mime, bytes_str(s.mime)))
		return err_set(e, ERR_NAME, "file: its name and mime type do "
			       "not go with its type");
	return 0;
}

static int check_ref(const struct item_ref *ref, struct err *e)
{
	return ref->id[0] ? 0 : err_set(e, ERR_INVALID, "payload: a reference "
					"is malformed");
}

/* --- jobs --- */

static int check_filename(struct bytes name, struct err *e)
{
	struct sniff s;

	if (name_check(name, e) < 0)
		return -1;
	if (sniff_name(name, &s) < 0 || s.type != TYPE_PY)
		return err_set(e, ERR_NAME,
			       "job: its file name must end in .py");
	return 0;
}

static int check_requirements(const struct payload *p,
			      const struct manifest *m, struct err *e)
{
	for (size_t i = 0; i < p->u.job.requirement_n; i++) {
		struct bytes name = p->u.job.requirements[i];
		cleanup_buf struct buf b = { 0 };
		if (manifest_package(&b, name) < 0)
			return err_set(e, ERR_INVALID, "job: a requirement "
				       "is not a package name");
		if (!manifest_has_package(m, name))
			return err_set(e, ERR_POLICY, "job: this session does "
				       "not allow the package %.*s",
				       (int)b.len, (const char *)b.data);
	}
	return 0;
}

static int check_target(const struct target *t, struct err *e)
{
	switch (t->kind) {
	case TARGET_ANY:
		return 0;
	case TARGET_RUNNER:
		return label_ok(t->name) ? 0 :
		       refuse(e, "job: the target is not a runner's name");
	case TARGET_LABELS:
		break;
	}
	if (t->label_n == 0 || t->label_n > LABELS_MAX)
		return refuse(e, "job: a target has 1 to 16 labels");
	for (size_t i = 0; i < t->label_n; i++)
		if (!label_ok(t->labels[i]))
			return refuse(e, "job: a label of the target is none");
	return 0;
}

static int check_job(const struct payload *p, const struct manifest *m,
		     struct err *e)
{
	const struct job_limits *max = &m->job;

	if (p->u.job.code.n > TEXT_MAX)
		return refuse(e, "job: the code is longer than 1 MiB");
	if (check_filename(p->u.job.filename, e) < 0)
		return -1;
	if (!bytes_eq(p->u.job.runtime, bytes_str(max->runtime)))
		return err_set(e, ERR_POLICY, "job: this session runs %s",
			       max->runtime);
	if (p->u.job.timeout_s < 1 || p->u.job.timeout_s > max->timeout_s)
		return err_set(e, ERR_POLICY, "job: a timeout is 1 to %lld s "
			       "here", (long long)max->timeout_s);
	if (p->u.job.has_memory && (p->u.job.memory_mb < 1 ||
	    p->u.job.memory_mb > max->memory_mb))
		return err_set(e, ERR_POLICY, "job: memory is 1 to %lld MB "
			       "here", (long long)max->memory_mb);
	if (p->u.job.file_n > JOB_FILES_MAX)
		return refuse(e, "job: more than 32 files");
	for (size_t i = 0; i < p->u.job.file_n; i++)
		if (check_ref(&p->u.job.files[i], e) < 0)
			return -1;
	if (check_requirements(p, m, e) < 0)
		return -1;
	return check_target(&p->u.job.target, e);
}

/* --- results --- */

static bool is_sha256(struct bytes s)
{
	if (s.n != 2 * HASH_SIZE)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= '0' && s.p[i] <= '9') &&
		    !(s.p[i] >= 'a' && s.p[i] <= 'f'))
			return false;
	return true;
}

static int check_reason(bool has, struct bytes reason, struct err *e)
{
	if (has && clear_count(reason) > REASON_CHARS)
		return refuse(e, "a reason has at most 4096 characters");
	return 0;
}

static int check_status(const struct payload *p, struct err *e)
{
	bool wants_reason = false, may_exit = false, wants_exit = false;

	switch (p->u.result.status) {
	case RESULT_COMPLETED: may_exit = wants_exit = true; break;
	case RESULT_REFUSED: wants_reason = true; break;
	case RESULT_TIMED_OUT: case RESULT_CANCELLED: break;
	case RESULT_FAILED: wants_reason = may_exit = true; break;
	}
	if (p->u.result.has_exit ? !may_exit : wants_exit)
		return refuse(e, "result: status and exit code disagree");
	if (wants_reason && !p->u.result.has_reason)
		return refuse(e, "result: this status needs a reason");
	return 0;
}

static int check_out_files(const struct payload *p, struct err *e)
{
	if (p->u.result.out_n > OUT_FILES_MAX)
		return refuse(e, "result: more than 64 files");
	for (size_t i = 0; i < p->u.result.out_n; i++)
		if (name_check(p->u.result.out[i].name, e) < 0 ||
		    check_ref(&p->u.result.out[i].item, e) < 0)
			return -1;
	return 0;
}

static int check_result(const struct payload *p, struct err *e)
{
	if (check_ref(&p->u.result.job, e) < 0)
		return -1;
	if (!is_sha256(p->u.result.code_sha256) ||
	    !is_sha256(p->u.result.input_sha256))
		return refuse(e, "result: a hash is 64 digits of hex");
	if (p->u.result.out_text.n > TEXT_MAX ||
	    p->u.result.err_text.n > TEXT_MAX)
		return refuse(e, "result: stdout and stderr have at most "
			      "1 MiB each");
	if (check_out_files(p, e) < 0 ||
	    check_reason(p->u.result.has_reason, p->u.result.reason, e) < 0)
		return -1;
	return check_status(p, e);
}

/* The relay cannot see which event it is; a sender may only cancel. */
static int check_event(const struct payload *p, const struct cert *author,
		       struct err *e)
{
	if (author->role != ROLE_OWNER &&
	    p->u.event.event != EVENT_JOB_CANCEL)
		return err_set(e, ERR_ROLE,
			       "event: only the owner may post this one");
	if (p->u.event.event == EVENT_JOB_CANCEL &&
	    check_ref(&p->u.event.job, e) < 0)
		return -1;
	return check_reason(p->u.event.has_reason, p->u.event.reason, e);
}

int payload_check(const struct payload *p, const struct item_header *h,
		  const struct cert *author, const struct manifest *m,
		  struct err *e)
{
	if (p->kind != h->kind)
		return refuse(e, "payload: not of the kind its header says");
	switch (p->kind) {
	case ITEM_TEXT: return 0;
	case ITEM_FILE: return check_file(p, h, e);
	case ITEM_JOB: return check_job(p, m, e);
	case ITEM_RESULT: return check_result(p, e);
	case ITEM_EVENT: return check_event(p, author, e);
	}
	return -1;
}

/* --- a result and its job --- */

static bool has_pub(const uint8_t (*list)[PRIM_PUB], size_t n,
		    const uint8_t pub[PRIM_PUB])
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(list[i], pub, PRIM_PUB) == 0)
			return true;
	return false;
}

int result_binds(const struct payload *result,
		 const uint8_t author[PRIM_PUB], const struct payload *job,
		 const struct item_ref *job_ref, const struct approvals *a,
		 struct err *e)
{
	const struct item_ref *ref = &result->u.result.job;
	const struct target *t = &job->u.job.target;

	if (result->kind != ITEM_RESULT || job->kind != ITEM_JOB)
		return refuse(e, "result: it binds a result to a job");
	if (strcmp(ref->id, job_ref->id) != 0 ||
	    memcmp(ref->sha256, job_ref->sha256, HASH_SIZE) != 0)
		return refuse(e, "result: of another job");
	if (t->kind == TARGET_RUNNER &&
	    memcmp(t->pub, author, PRIM_PUB) != 0)
		return refuse(e, "result: not from the runner that was asked");
	if (a->asked && (!has_pub(a->approved, a->approved_n, author) ||
	    has_pub(a->rejected, a->rejected_n, author)))
		return refuse(e, "result: from a runner that the owner has "
			      "not approved");
	return 0;
}
