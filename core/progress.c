/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/enc.h"
#include "core/json.h"
#include "core/progress.h"

static const char *const streams[] = {
	[PROGRESS_STDOUT] = "stdout", [PROGRESS_STDERR] = "stderr",
};

static void take_id(struct json_reader *r, struct progress *p)
{
	struct bytes id = json_take_string(r, "job");

	if (item_is_id(id))
		memcpy(p->job, id.p, ITEM_ID);
	else
		json_fail(r, "job", "is no item id");
}

static void take_session(struct json_reader *r, struct progress *p)
{
	struct bytes id = json_take_string(r, "session_id");

	if (key_is_session_id(id))
		memcpy(p->session_id, id.p, SESSION_ID);
	else
		json_fail(r, "session_id", "is none");
}

static void take_stream(struct json_reader *r, struct progress *p)
{
	struct bytes word = json_take_string(r, "stream");

	if (bytes_eq(word, bytes_str(streams[PROGRESS_STDERR])))
		p->stream = PROGRESS_STDERR;
	else if (!bytes_eq(word, bytes_str(streams[PROGRESS_STDOUT])))
		json_fail(r, "stream", "is neither stdout nor stderr");
}

static void take_frame(struct json_reader *r, struct progress *p)
{
	struct bytes text = json_take_string(r, "frame");

	if (r->bad)
		return;
	if (enc_b64_decode(&p->frame, text) < 0 || buf_failed(&p->frame))
		json_fail(r, "frame", "is not base64url");
	else if (p->frame.len <= BLOB_OVERHEAD ||
		 p->frame.len > PROGRESS_FRAME_MAX)
		json_fail(r, "frame", "has not 1 to 32768 bytes of output");
}

int progress_parse(struct progress *p, struct bytes body, struct err *e)
{
	struct json_reader r;

	*p = (struct progress){ 0 };
	if (body.n > PROGRESS_BODY_MAX)
		return err_set(e, ERR_INVALID, "progress: too long");
	struct json *doc = json_parse(body, e);
	if (!doc)
		return err_prefix(e, "progress");
	json_open(&r, doc, "progress");
	take_frame(&r, p);
	take_id(&r, p);
	p->seq = (uint64_t)json_take_int(&r, "seq", 0, JSON_INT_MAX);
	take_session(&r, p);
	json_take_fixed(&r, "sig", p->sig, PRIM_SIG);
	take_stream(&r, p);
	int ok = json_close(&r, e);
	json_free(doc);
	if (ok < 0)
		progress_free(p);
	return ok;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	buf_free(&p->frame);
	*p = (struct progress){ 0 };
}

int progress_verify(const struct progress *p, const uint8_t runner[PRIM_PUB],
		    struct err *e)
{
	cleanup_buf struct buf msg = { 0 };

	progress_put_signed(&msg, p);
	if (buf_failed(&msg))
		return err_set(e, ERR_MEMORY, "out of memory");
	return key_verify(p->sig, runner, KEY_PROGRESS, buf_bytes(&msg), e);
}

/* --- writing --- */

static void put_str(struct buf *b, const char *key, const char *s)
{
	json_put_key(b, key);
	json_put_string(b, bytes_str(s));
}

static void put_seq(struct buf *b, const struct progress *p)
{
	json_put_key(b, "seq");
	json_put_int(b, (int64_t)p->seq);
}

void progress_put_aad(struct buf *out, const struct progress *p)
{
	buf_add_byte(out, '{');
	put_str(out, "job", p->job);
	put_seq(out, p);
	put_str(out, "session_id", p->session_id);
	put_str(out, "stream", streams[p->stream]);
	buf_add_byte(out, '}');
}

void progress_put_signed(struct buf *out, const struct progress *p)
{
	uint8_t sha256[HASH_SIZE];

	progress_put_aad(out, p);
	hash_sha256(sha256, p->frame.data, p->frame.len);
	buf_add(out, sha256, sizeof sha256);
}

void progress_put(struct buf *out, const struct progress *p)
{
	buf_add_byte(out, '{');
	json_put_key(out, "frame");
	json_put_b64(out, p->frame.data, p->frame.len);
	put_str(out, "job", p->job);
	put_seq(out, p);
	put_str(out, "session_id", p->session_id);
	json_put_key(out, "sig");
	json_put_b64(out, p->sig, sizeof p->sig);
	put_str(out, "stream", streams[p->stream]);
	buf_add_byte(out, '}');
}
