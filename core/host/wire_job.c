/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "core/enc.h"
#include "core/host/wire_job.h"

#define SMALL_MAX (64 * 1024)
#define RUNNERS_MAX (16 * 1024 * 1024)
#define TAIL_MAX 96

static const char *const words[] = {
	[ROUTED_ASSIGNED] = "assigned", [ROUTED_RUNNING] = "running",
	[ROUTED_DONE] = "done", [ROUTED_FAILED] = "failed",
};

const char *routed_word(enum routed state) { return words[state]; }

int routed_parse(enum routed *state, struct bytes word)
{
	for (int i = ROUTED_ASSIGNED; i <= ROUTED_FAILED; i++)
		if (bytes_eq(word, bytes_str(words[i]))) {
			*state = (enum routed)i;
			return 0;
		}
	return -1;
}

void routed_job_free(struct routed_job *j)
{
	free(j->reason);
	*j = (struct routed_job){ 0 };
}

/* "/jobs/{id}what" */
static int job_tail(char tail[TAIL_MAX], const char *id, const char *what,
		    struct err *e)
{
	if (!item_is_id(bytes_str(id)))
		return err_set(e, ERR_INVALID, "that is no job id");
	snprintf(tail, TAIL_MAX, "/jobs/%s%s", id, what);
	return 0;
}

static int post_job(struct wire *w, const char *id, const char *what,
		    struct bytes body, struct err *e)
{
	char tail[TAIL_MAX];
	struct rest_call c = { .method = "POST", .body = body,
			       .type = body.n ? "application/json" : NULL };

	if (job_tail(tail, id, what, e) < 0)
		return -1;
	return wire_call(w, &c, tail, e);
}

static const char *text_of(const cJSON *doc, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(doc,
								     name));
}

static bool truth_of(const cJSON *doc, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(doc, name));
}

static bool take_pub(uint8_t pub[PRIM_PUB], const cJSON *doc,
		     const char *name)
{
	const char *s = text_of(doc, name);

	return s && enc_b64_fixed(pub, PRIM_PUB, bytes_str(s)) == 0;
}

static bool take_job(char job[ITEM_ID + 1], const cJSON *doc)
{
	const char *s = text_of(doc, "job");

	if (!s || !item_is_id(bytes_str(s)))
		return false;
	memcpy(job, s, ITEM_ID);
	job[ITEM_ID] = 0;
	return true;
}

/* --- jobs --- */

static int read_routed(struct routed_job *out, const struct buf *answer,
		       struct err *e)
{
	cJSON *doc = cJSON_ParseWithLength((const char *)answer->data,
					   answer->len);
	const char *state = text_of(doc, "state");
	const char *reason = text_of(doc, "reason");
	int r = state ? routed_parse(&out->state, bytes_str(state)) : -1;

	out->has_runner = take_pub(out->runner, doc, "runner");
	if (r == 0 && reason && !(out->reason = strdup(reason)))
		r = err_set(e, ERR_MEMORY, "out of memory");
	else if (r < 0)
		/* a proxy's page says 200 as well */
		err_set(e, ERR_NET, "what answered was not the relay: no "
			"state of the job");
	cJSON_Delete(doc);
	return r;
}

int wire_job_post(struct wire *w, const struct wire_upload *u,
		  struct bytes target_json, struct routed_job *out,
		  struct err *e)
{
	cleanup_buf struct buf answer = { 0 }, header = { 0 };

	*out = (struct routed_job){ 0 };
	if (target_json.n > WIRE_TARGET_MAX)
		return err_set(e, ERR_POLICY, "the job's target is too long");
	buf_add_str(&header, "Airlox-Target: ");
	buf_add(&header, target_json.p, target_json.n);
	/* our jobs list all their inputs in refs: their runner needs no
	 * others */
	const char *const lines[2] = { buf_cstr(&header),
				       "Airlox-Refs: complete" };
	if (!lines[0])
		return err_set(e, ERR_MEMORY, "out of memory");
	if (wire_post_frame(w, "/jobs", lines, u, &answer, e) < 0)
		return -1;
	return read_routed(out, &answer, e);
}

int wire_job_get(struct wire *w, const char *job, struct routed_job *out,
		 struct err *e)
{
	char tail[TAIL_MAX];
	cleanup_buf struct buf answer = { 0 };
	struct rest_call c = { .method = "GET", .answer = &answer,
			       .answer_max = SMALL_MAX };

	*out = (struct routed_job){ 0 };
	if (job_tail(tail, job, "", e) < 0 || wire_call(w, &c, tail, e) < 0)
		return -1;
	return read_routed(out, &answer, e);
}

int wire_job_cancel(struct wire *w, const char *job, struct err *e)
{
	return post_job(w, job, "/cancel", (struct bytes){ 0 }, e);
}

int wire_job_claim(struct wire *w, const char *job, struct err *e)
{
	return post_job(w, job, "/claim", (struct bytes){ 0 }, e);
}

int wire_job_progress(struct wire *w, const char *job, struct bytes body,
		      struct err *e)
{
	return post_job(w, job, "/progress", body, e);
}

int wire_heartbeat(struct wire *w, const char *job, struct err *e)
{
	char body[ITEM_ID + 16];
	struct rest_call c = { .method = "POST", .type = "application/json" };

	if (job && !item_is_id(bytes_str(job)))
		return err_set(e, ERR_INVALID, "that is no job id");
	if (job)
		snprintf(body, sizeof body, "{\"job\":\"%s\"}", job);
	else
		strcpy(body, "{\"job\":null}");
	c.body = bytes_str(body);
	return wire_call(w, &c, "/runners/me/heartbeat", e);
}

int wire_runner_away(struct wire *w, struct err *e)
{
	struct rest_call c = { .method = "POST" };

	return wire_call(w, &c, "/runners/me/away", e);
}

int wire_runner_stream(struct wire *w,
		       int (*on)(void *arg, const struct event *ev,
				 struct err *e),
		       void *arg, uint64_t *delivered, struct err *e)
{
	return wire_listen(w, "/runners/me/stream", -1, on, arg, delivered, e);
}

int wire_assigned(char job[ITEM_ID + 1], struct bytes data)
{
	cJSON *doc = cJSON_ParseWithLength((const char *)data.p, data.n);
	bool has = take_job(job, doc);

	cJSON_Delete(doc);
	return has ? 0 : -1;
}

/* --- runners --- */

static int tell_runner(const cJSON *item,
		       int (*on)(void *arg, const struct listed_runner *r,
				 struct err *e), void *arg, struct err *e)
{
	struct listed_runner r = { 0 };
	const char *join = text_of(item, "signed_join");

	if (!join || !take_pub(r.pub, item, "participant_pub"))
		return 0;
	r.signed_join = bytes_str(join);
	r.approved = truth_of(item, "approved");
	r.rejected = truth_of(item, "rejected");
	r.online = truth_of(item, "online");
	take_job(r.job, item);
	return on(arg, &r, e);
}

int wire_runners(struct wire *w,
		 int (*on)(void *arg, const struct listed_runner *r,
			   struct err *e), void *arg, struct err *e)
{
	cleanup_buf struct buf answer = { 0 };
	struct rest_call c = { .method = "GET", .answer = &answer,
			       .answer_max = RUNNERS_MAX };

	if (wire_call(w, &c, "/runners", e) < 0)
		return -1;
	cJSON *doc = cJSON_ParseWithLength((const char *)answer.data,
					   answer.len);
	const cJSON *item, *list = cJSON_GetObjectItemCaseSensitive(doc,
								 "runners");
	int r = cJSON_IsArray(list) ? 0 :
		err_set(e, ERR_PROTO, "the relay's answer has no runners");
	if (r == 0)
		cJSON_ArrayForEach(item, list)
			if ((r = tell_runner(item, on, arg, e)) < 0)
				break;
	cJSON_Delete(doc);
	return r;
}

static int post_runner(struct wire *w, const uint8_t pub[PRIM_PUB],
		       const char *what, struct err *e)
{
	cleanup_buf struct buf tail = { 0 };
	struct rest_call c = { .method = "POST" };

	buf_add_str(&tail, "/runners/");
	enc_b64(&tail, pub, PRIM_PUB);
	buf_add_str(&tail, what);
	const char *path = buf_cstr(&tail);
	if (!path)
		return err_set(e, ERR_MEMORY, "out of memory");
	return wire_call(w, &c, path, e);
}

int wire_runner_approve(struct wire *w, const uint8_t pub[PRIM_PUB],
			struct err *e)
{
	return post_runner(w, pub, "/approve", e);
}

int wire_runner_reject(struct wire *w, const uint8_t pub[PRIM_PUB],
		       struct err *e)
{
	return post_runner(w, pub, "/reject", e);
}
