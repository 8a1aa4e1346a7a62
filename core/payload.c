/* SPDX-License-Identifier: MIT
 *
 * Form here; what a session allows of it is in payload_check.c, the writing in
 * payload_put.c. */
#include <string.h>

#include "core/enc.h"
#include "core/payload.h"

#define U32_MAX INT64_C(0xffffffff)
#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const events[] = {
	[EVENT_RUNNER_APPROVE] = "runner_approve",
	[EVENT_RUNNER_REJECT] = "runner_reject",
	[EVENT_JOB_CANCEL] = "job_cancel",
	[EVENT_SESSION_CLOSE] = "session_close",
};
static const char *const statuses[] = {
	[RESULT_COMPLETED] = "completed", [RESULT_REFUSED] = "refused",
	[RESULT_TIMED_OUT] = "timed_out", [RESULT_CANCELLED] = "cancelled",
	[RESULT_FAILED] = "failed",
};
static const char *const targets[] = {
	[TARGET_ANY] = "any", [TARGET_LABELS] = "labels",
	[TARGET_RUNNER] = "runner",
};

const char *payload_event_word(enum event_kind event) { return events[event]; }
const char *payload_status_word(enum result_status status) { return statuses[status]; }
const char *payload_target_word(enum target_kind kind) { return targets[kind]; }

static int word_index(const char *const *words, size_t n, struct bytes word)
{
	for (size_t i = 0; i < n; i++)
		if (bytes_eq(word, bytes_str(words[i])))
			return (int)i;
	return -1;
}

int payload_frame(const uint8_t head[4], int64_t payload_size,
		  uint32_t *meta_n, struct err *e)
{
	*meta_n = payload_size < 4 ? 0 : load_u32be(head);
	if (payload_size < 4 || *meta_n > PAYLOAD_META_MAX ||
	    *meta_n > payload_size - 4)
		return err_set(e, ERR_INVALID,
			       "payload: its length is not right");
	return 0;
}

/* Lists are allocated by the count of what was parsed, never by what a peer
 * claims. */
static void *list_new(size_t n, size_t size, struct json_reader *r,
		      const char *key)
{
	void *p = n ? calloc(n, size) : NULL;

	if (n && !p)
		json_fail(r, key, "out of memory");
	return p;
}

static struct bytes *take_strings(struct json_reader *r, const char *key,
				  size_t *n)
{
	const struct json *list = json_take_array(r, key);
	struct bytes *v = list ? list_new(list->count, sizeof *v, r, key)
			       : NULL;

	*n = 0;
	if (!v)
		return NULL;
	for (const struct json *at = list->child; at; at = at->next) {
		if (at->type != JSON_STRING) {
			json_fail(r, key, "has something else than strings");
			break;
		}
		v[(*n)++] = at->str;
	}
	return v;
}

/* Form only, with whatever two strings: see payload.h. */
static int take_ref(struct item_ref *ref, const struct json *v, struct err *e)
{
	struct json_reader r;

	*ref = (struct item_ref){ 0 };
	json_open(&r, v, "reference");
	struct bytes sha256 = json_take_string(&r, "blob_sha256");
	struct bytes id = json_take_string(&r, "id");
	if (json_close(&r, e) < 0)
		return -1;
	if (item_is_id(id) && enc_b64_fixed(ref->sha256, HASH_SIZE, sha256) == 0)
		memcpy(ref->id, id.p, ITEM_ID);
	return 0;
}

/* Null or a string. */
static bool take_reason(struct json_reader *r, struct bytes *reason)
{
	const struct json *v = json_take(r, "reason");

	if (!v || json_is_null(v))
		return false;
	if (v->type != JSON_STRING)
		json_fail(r, "reason", "is of another type");
	*reason = v->str;
	return true;
}

/* The tag of an object: where it stands depends on what it says. */
static int tag_index(const struct json *v, const char *key,
		     const char *const *words, size_t n)
{
	const struct json *m = v && v->type == JSON_OBJECT ? v->child : NULL;

	while (m && !bytes_eq(m->key, bytes_str(key)))
		m = m->next;
	return m && m->type == JSON_STRING ? word_index(words, n, m->str) : -1;
}

/* --- one reader a type --- */

static int take_text(struct payload *p, struct json_reader *r, struct err *e)
{
	p->u.text.text = json_take_string(r, "text");
	json_take(r, "type");
	return json_close(r, e);
}

static int take_file(struct payload *p, struct json_reader *r, struct err *e)
{
	p->u.file.mime = json_take_string(r, "mime");
	p->u.file.name = json_take_string(r, "name");
	json_take(r, "type");
	return json_close(r, e);
}

static int take_target(struct target *t, const struct json *v, struct err *e)
{
	struct json_reader r;
	int kind = tag_index(v, "type", targets, COUNT(targets));

	if (kind < 0)
		return err_set(e, ERR_INVALID, "target: no known type");
	t->kind = (enum target_kind)kind;
	json_open(&r, v, "target");
	switch (t->kind) {
	case TARGET_ANY:
		break;
	case TARGET_LABELS:
		t->labels = take_strings(&r, "labels", &t->label_n);
		break;
	case TARGET_RUNNER:
		t->name = json_take_string(&r, "name");
		key_take(&r, "participant_pub", t->pub);
		break;
	}
	json_take(&r, "type");
	return json_close(&r, e);
}

static int take_files(struct payload *p, const struct json *list,
		      struct err *e)
{
	struct item_ref *v = list->count ? calloc(list->count, sizeof *v)
					 : NULL;

	if (list->count && !v)
		return err_set(e, ERR_MEMORY, "out of memory");
	p->u.job.files = v;
	for (const struct json *at = list->child; at; at = at->next)
		if (take_ref(&v[p->u.job.file_n++], at, e) < 0)
			return -1;
	return 0;
}

static int take_job(struct payload *p, struct json_reader *r, struct err *e)
{
	p->u.job.code = json_take_string(r, "code");
	p->u.job.filename = json_take_string(r, "filename");
	const struct json *files = json_take_array(r, "files");
	const struct json *memory = json_take_optional(r, "memory_mb");
	p->u.job.has_memory = memory && !json_is_null(memory);
	if (!memory || (p->u.job.has_memory && (memory->type != JSON_INT ||
	    memory->num < 0 || memory->num > U32_MAX)))
		json_fail(r, "memory_mb", "is neither null nor in range");
	else
		p->u.job.memory_mb = memory->num;
	p->u.job.requirements = take_strings(r, "requirements",
					     &p->u.job.requirement_n);
	p->u.job.runtime = json_take_string(r, "runtime");
	const struct json *target = json_take_object(r, "target");
	p->u.job.timeout_s = json_take_int(r, "timeout_s", 0, U32_MAX);
	json_take(r, "type");
	if (json_close(r, e) < 0 || take_files(p, files, e) < 0)
		return -1;
	return take_target(&p->u.job.target, target, e);
}

static int take_out_file(struct out_file *out, const struct json *v,
			 struct err *e)
{
	struct json_reader r;

	json_open(&r, v, "out file");
	const struct json *item = json_take_object(&r, "item");
	out->name = json_take_string(&r, "name");
	out->size = json_take_int(&r, "size", 0, JSON_INT_MAX);
	if (json_close(&r, e) < 0)
		return -1;
	return take_ref(&out->item, item, e);
}

static int take_out_files(struct payload *p, const struct json *list,
			  struct err *e)
{
	struct out_file *v = list->count ? calloc(list->count, sizeof *v)
					 : NULL;

	if (list->count && !v)
		return err_set(e, ERR_MEMORY, "out of memory");
	p->u.result.out = v;
	for (const struct json *at = list->child; at; at = at->next)
		if (take_out_file(&v[p->u.result.out_n++], at, e) < 0)
			return -1;
	return 0;
}

static void take_exit(struct payload *p, struct json_reader *r)
{
	const struct json *v = json_take(r, "exit_code");

	if (!v || json_is_null(v))
		return;
	if (v->type != JSON_INT || v->num < INT32_MIN || v->num > INT32_MAX)
		json_fail(r, "exit_code", "is neither null nor in range");
	p->u.result.has_exit = true;
	p->u.result.exit_code = v->num;
}

static void take_status(struct payload *p, struct json_reader *r)
{
	int status = word_index(statuses, COUNT(statuses),
				json_take_string(r, "status"));

	if (status < 0)
		json_fail(r, "status", "is unknown");
	else
		p->u.result.status = (enum result_status)status;
}

static int take_result(struct payload *p, struct json_reader *r,
		       struct err *e)
{
	p->u.result.code_sha256 = json_take_string(r, "code_sha256");
	take_exit(p, r);
	p->u.result.input_sha256 = json_take_string(r, "input_sha256");
	const struct json *job = json_take_object(r, "job");
	const struct json *out = json_take_array(r, "out_files");
	p->u.result.peak_mem_mb = json_take_int(r, "peak_mem_mb", 0, U32_MAX);
	p->u.result.has_reason = take_reason(r, &p->u.result.reason);
	take_status(p, r);
	p->u.result.err_text = json_take_string(r, "stderr");
	p->u.result.err_truncated = json_take_bool(r, "stderr_truncated");
	p->u.result.out_text = json_take_string(r, "stdout");
	p->u.result.out_truncated = json_take_bool(r, "stdout_truncated");
	json_take(r, "type");
	p->u.result.wall_ms = json_take_int(r, "wall_ms", 0, JSON_INT_MAX);
	if (json_close(r, e) < 0 ||
	    take_ref(&p->u.result.job, job, e) < 0)
		return -1;
	return take_out_files(p, out, e);
}

static int take_event(struct payload *p, struct json_reader *r, struct err *e)
{
	int event = word_index(events, COUNT(events),
			       json_take_string(r, "event"));
	const struct json *job = NULL;

	if (event < 0)
		return err_set(e, ERR_INVALID, "event: an unknown one");
	p->u.event.event = (enum event_kind)event;
	if (event == EVENT_JOB_CANCEL)
		job = json_take_object(r, "job");
	if (event == EVENT_RUNNER_APPROVE || event == EVENT_RUNNER_REJECT)
		key_take(r, "participant_pub", p->u.event.pub);
	if (event == EVENT_RUNNER_REJECT)
		p->u.event.has_reason = take_reason(r, &p->u.event.reason);
	json_take(r, "type");
	if (json_close(r, e) < 0)
		return -1;
	return job ? take_ref(&p->u.event.job, job, e) : 0;
}

static int take_payload(struct payload *p, int64_t body_n, struct err *e)
{
	static const char *const words[] = {
		[ITEM_TEXT] = "text", [ITEM_FILE] = "file",
		[ITEM_JOB] = "job", [ITEM_RESULT] = "result",
		[ITEM_EVENT] = "event",
	};
	struct json_reader r;
	int kind = tag_index(p->doc, "type", words, COUNT(words));

	if (kind < 0)
		return err_set(e, ERR_INVALID, "payload: no known type");
	p->kind = (enum item_kind)kind;
	if (p->kind != ITEM_FILE && body_n != 0)
		return err_set(e, ERR_INVALID, "payload: bytes after the "
			       "meta, which only a file has");
	json_open(&r, p->doc, words[kind]);
	switch (p->kind) {
	case ITEM_TEXT: return take_text(p, &r, e);
	case ITEM_FILE: return take_file(p, &r, e);
	case ITEM_JOB: return take_job(p, &r, e);
	case ITEM_RESULT: return take_result(p, &r, e);
	case ITEM_EVENT: return take_event(p, &r, e);
	}
	return -1;
}

int payload_parse(struct payload *p, struct bytes meta, int64_t body_n,
		  struct err *e)
{
	*p = (struct payload){ 0 };
	if (meta.n > PAYLOAD_META_MAX)
		return err_set(e, ERR_INVALID,
			       "payload: its length is not right");
	p->doc = json_parse(meta, e);
	if (!p->doc)
		return err_prefix(e, "payload");
	int r = take_payload(p, body_n, e);
	if (r < 0)
		payload_free(p);
	return r;
}

void payload_free(struct payload *p)
{
	if (!p)
		return;
	if (p->kind == ITEM_JOB) {
		free(p->u.job.files);
		free(p->u.job.requirements);
		free(p->u.job.target.labels);
	} else if (p->kind == ITEM_RESULT) {
		free(p->u.result.out);
	}
	json_free(p->doc);
	*p = (struct payload){ 0 };
}
