/* SPDX-License-Identifier: MIT
 *
 * payload: what is inside a blob: u32 big-endian length, canonical meta,
 * body (docs/PROTOCOL.md, section 6). */
#ifndef AIRLOX_PAYLOAD_H
#define AIRLOX_PAYLOAD_H

#include "core/item.h"
#include "core/json.h"

#define PAYLOAD_META_MAX (4 * 1024 * 1024)
#define JOB_FILES_MAX 32
#define OUT_FILES_MAX 64

enum event_kind {
	EVENT_RUNNER_APPROVE, EVENT_RUNNER_REJECT, EVENT_JOB_CANCEL,
	EVENT_SESSION_CLOSE
};
enum target_kind { TARGET_ANY, TARGET_LABELS, TARGET_RUNNER };
enum result_status {
	RESULT_COMPLETED, RESULT_REFUSED, RESULT_TIMED_OUT, RESULT_CANCELLED,
	RESULT_FAILED
};

struct target {
	enum target_kind kind;
	struct bytes *labels;
	size_t label_n;			/* 1..16 once payload_check said 0 */
	struct bytes name;		/* TARGET_RUNNER */
	uint8_t pub[PRIM_PUB];
};

struct out_file {
	struct item_ref item;
	struct bytes name;
	int64_t size;
};

/* The parsed meta.  A reference in it that is malformed has the id "": it is
 * payload_check that refuses it, after the policy of the header, as every
 * client does.  Bytes are borrowed from `doc`, which it owns. */
struct payload {
	struct json *doc;
	enum item_kind kind;
	union {
		struct { struct bytes text; } text;
		struct { struct bytes mime, name; } file;
		struct {
			struct bytes code, filename, runtime;
			struct item_ref *files;
			size_t file_n;
			bool has_memory;	/* false: null */
			int64_t memory_mb;
			struct bytes *requirements;
			size_t requirement_n;
			struct target target;
			int64_t timeout_s;
		} job;
		struct {
			struct bytes code_sha256, input_sha256;
			bool has_exit;
			int64_t exit_code;
			struct item_ref job;
			struct out_file *out;
			size_t out_n;
			int64_t peak_mem_mb;
			bool has_reason;
			struct bytes reason, out_text, err_text;
			enum result_status status;
			bool out_truncated, err_truncated;
			int64_t wall_ms;
		} result;
		struct {
			enum event_kind event;
			uint8_t pub[PRIM_PUB];
			bool has_reason;
			struct bytes reason;
			struct item_ref job;
		} event;
	} u;
};

/* The frame: n >= 4 bytes of payload start; gives the meta's length.  -1 if
 * it is over the maximum or over `payload_size` - 4. */
int payload_frame(const uint8_t head[4], int64_t payload_size,
		  uint32_t *meta_n, struct err *e);
/* Parses the meta (borrowed by p until payload_free).  Shape, types, ranges
 * and lengths: ERR_INVALID.  body_n: only a file has a body. */
int payload_parse(struct payload *p, struct bytes meta, int64_t body_n,
		  struct err *e);
void payload_free(struct payload *p);

/* Content rules after the shape (ERR_POLICY and refinements): the payload's
 * type against the header, names, extension against mime and type, job
 * limits, result status rules.  Rules on a file's body (UTF-8, magic, zip)
 * are content_check's, core/content.h. */
int payload_check(const struct payload *p, const struct item_header *h,
		  const struct cert *author, const struct manifest *m,
		  struct err *e);

const char *payload_event_word(enum event_kind event);	/* "runner_approve" ... */
const char *payload_status_word(enum result_status status);	/* "completed" ... */
const char *payload_target_word(enum target_kind kind);	/* "any" ... */

/* Frame and meta of what we send; the body follows by the caller. */
void payload_put_text(struct buf *out, struct bytes text);
void payload_put_file(struct buf *out, struct bytes mime, struct bytes name);
void payload_put_event(struct buf *out, enum event_kind event,
		       const uint8_t *pub, const char *reason,
		       const struct item_ref *job);
/* Of a struct payload that the caller has filled (doc NULL, kind not looked
 * at), with nothing checked: parse and check what was put. */
void payload_put_job(struct buf *out, const struct payload *job);
void payload_put_result(struct buf *out, const struct payload *result);
/* Canonical JSON: also what the header Airlox-Target says. */
void payload_put_target(struct buf *out, const struct target *t);

/* Whether a verified result counts for the job (section 6, "A result counts
 * for a job only if").  approved and rejected are lists of public keys. */
struct approvals {
	const uint8_t (*approved)[PRIM_PUB];
	size_t approved_n;
	const uint8_t (*rejected)[PRIM_PUB];
	size_t rejected_n;
	bool asked;		/* the manifest's approve_runners */
};
int result_binds(const struct payload *result,
		 const uint8_t author[PRIM_PUB], const struct payload *job,
		 const struct item_ref *job_ref, const struct approvals *a,
		 struct err *e);

#endif
