/* SPDX-License-Identifier: MIT
 *
 * Frame and meta of what we send: what payload.c reads, members in byte order
 * of their keys. */
#include "core/payload.h"

/* The length is known once the meta is there. */
static void put_frame(struct buf *out, struct buf *meta)
{
	if (buf_failed(meta)) {
		out->failed = true;
		return;
	}
	buf_add_u32be(out, (uint32_t)meta->len);
	buf_add(out, meta->data, meta->len);
}

static void put_type(struct buf *b, enum item_kind kind)
{
	json_put_key_string(b, "type", bytes_str(item_kind_word(kind)));
	buf_add_byte(b, '}');
}

void payload_put_text(struct buf *out, struct bytes text)
{
	cleanup_buf struct buf meta = { 0 };

	buf_add_byte(&meta, '{');
	json_put_key_string(&meta, "text", text);
	put_type(&meta, ITEM_TEXT);
	put_frame(out, &meta);
}

void payload_put_file(struct buf *out, struct bytes mime, struct bytes name)
{
	cleanup_buf struct buf meta = { 0 };

	buf_add_byte(&meta, '{');
	json_put_key_string(&meta, "mime", mime);
	json_put_key_string(&meta, "name", name);
	put_type(&meta, ITEM_FILE);
	put_frame(out, &meta);
}

void payload_put_event(struct buf *out, enum event_kind event,
		       const uint8_t *pub, const char *reason,
		       const struct item_ref *job)
{
	cleanup_buf struct buf meta = { 0 };

	buf_add_byte(&meta, '{');
	json_put_key_string(&meta, "event",
			    bytes_str(payload_event_word(event)));
	if (event == EVENT_JOB_CANCEL) {
		json_put_key(&meta, "job");
		item_put_ref(&meta, job);
	}
	if (event == EVENT_RUNNER_APPROVE || event == EVENT_RUNNER_REJECT) {
		json_put_key(&meta, "participant_pub");
		json_put_b64(&meta, pub, PRIM_PUB);
	}
	if (event == EVENT_RUNNER_REJECT) {
		json_put_key(&meta, "reason");
		if (reason)
			json_put_string(&meta, bytes_str(reason));
		else
			buf_add_str(&meta, "null");
	}
	put_type(&meta, ITEM_EVENT);
	put_frame(out, &meta);
}

/* --- jobs and results --- */

static void put_strings(struct buf *b, const char *key, const struct bytes *v,
			size_t n)
{
	json_put_key(b, key);
	buf_add_byte(b, '[');
	for (size_t i = 0; i < n; i++) {
		json_put_sep(b);
		json_put_string(b, v[i]);
	}
	buf_add_byte(b, ']');
}

static void put_ref(struct buf *b, const char *key, const struct item_ref *ref)
{
	json_put_key(b, key);
	item_put_ref(b, ref);
}

/* Null where there is none. */
static void put_int_or(struct buf *b, const char *key, bool has, int64_t v)
{
	json_put_key(b, key);
	if (has)
		json_put_int(b, v);
	else
		buf_add_str(b, "null");
}

void payload_put_target(struct buf *out, const struct target *t)
{
	buf_add_byte(out, '{');
	switch (t->kind) {
	case TARGET_ANY:
		break;
	case TARGET_LABELS:
		put_strings(out, "labels", t->labels, t->label_n);
		break;
	case TARGET_RUNNER:
		json_put_key_string(out, "name", t->name);
		json_put_key(out, "participant_pub");
		json_put_b64(out, t->pub, PRIM_PUB);
		break;
	}
	json_put_key_string(out, "type",
			    bytes_str(payload_target_word(t->kind)));
	buf_add_byte(out, '}');
}

void payload_put_job(struct buf *out, const struct payload *p)
{
	cleanup_buf struct buf meta = { 0 };

	buf_add_byte(&meta, '{');
	json_put_key_string(&meta, "code", p->u.job.code);
	json_put_key_string(&meta, "filename", p->u.job.filename);
	json_put_key(&meta, "files");
	buf_add_byte(&meta, '[');
	for (size_t i = 0; i < p->u.job.file_n; i++) {
		json_put_sep(&meta);
		item_put_ref(&meta, &p->u.job.files[i]);
	}
	buf_add_byte(&meta, ']');
	put_int_or(&meta, "memory_mb", p->u.job.has_memory,
		   p->u.job.memory_mb);
	put_strings(&meta, "requirements", p->u.job.requirements,
		    p->u.job.requirement_n);
	json_put_key_string(&meta, "runtime", p->u.job.runtime);
	json_put_key(&meta, "target");
	payload_put_target(&meta, &p->u.job.target);
	json_put_key_int(&meta, "timeout_s", p->u.job.timeout_s);
	put_type(&meta, ITEM_JOB);
	put_frame(out, &meta);
}

static void put_out_files(struct buf *b, const struct payload *p)
{
	json_put_key(b, "out_files");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < p->u.result.out_n; i++) {
		const struct out_file *f = &p->u.result.out[i];
		json_put_sep(b);
		buf_add_byte(b, '{');
		put_ref(b, "item", &f->item);
		json_put_key_string(b, "name", f->name);
		json_put_key_int(b, "size", f->size);
		buf_add_byte(b, '}');
	}
	buf_add_byte(b, ']');
}

void payload_put_result(struct buf *out, const struct payload *p)
{
	cleanup_buf struct buf meta = { 0 };

	buf_add_byte(&meta, '{');
	json_put_key_string(&meta, "code_sha256", p->u.result.code_sha256);
	put_int_or(&meta, "exit_code", p->u.result.has_exit,
		   p->u.result.exit_code);
	json_put_key_string(&meta, "input_sha256", p->u.result.input_sha256);
	put_ref(&meta, "job", &p->u.result.job);
	put_out_files(&meta, p);
	json_put_key_int(&meta, "peak_mem_mb", p->u.result.peak_mem_mb);
	json_put_key(&meta, "reason");
	if (p->u.result.has_reason)
		json_put_string(&meta, p->u.result.reason);
	else
		buf_add_str(&meta, "null");
	json_put_key_string(&meta, "status", bytes_str(
		payload_status_word(p->u.result.status)));
	json_put_key_string(&meta, "stderr", p->u.result.err_text);
	json_put_key_bool(&meta, "stderr_truncated", p->u.result.err_truncated);
	json_put_key_string(&meta, "stdout", p->u.result.out_text);
	json_put_key_bool(&meta, "stdout_truncated", p->u.result.out_truncated);
	json_put_key(&meta, "type");
	json_put_string(&meta, bytes_str(item_kind_word(ITEM_RESULT)));
	json_put_key_int(&meta, "wall_ms", p->u.result.wall_ms);
	buf_add_byte(&meta, '}');
	put_frame(out, &meta);
}
