/* SPDX-License-Identifier: MIT
 *
 * fact: what a record of the log says.  Its body is
 *
 *	type u8, session id 29, seq u64, at_ms u64, n u32, extra n, data
 *
 * big-endian; seq is FACT_NO_SEQ for what is no event.  `data` is the event's
 * JSON as clients get it; `extra` is what the relay itself needs, by type:
 *
 *	SESSION	 the signed manifest
 *	JOIN	 pub 32, role u8, approved u8, token hash 32, issued_at_ms u64;
 *		 a runner: name, labels u8, each a name (u8 and bytes)
 *	ITEM	 id 22, author 32, kind u8, sha256 32, signature's first 16,
 *		 blob bytes u64, blob's file u64 (0: in the log);
 *		 a job: inputs u8 (FACT_ANY_INPUT: it lists none), each an id
 *		 22; a result: its job's id 22
 *	ACK	 id 22, pub 32			WANT	 id 22, pub 32
 *	EVICTED	 id 22				RESEEDED id 22, pub 32, file u64
 *	LEFT	 pub 32				REVOKED	 role u8
 *	CLOSED	 expires_at_ms u64
 *	JOB	 id 22, state u8, reason u8, the runner's pub 32 (0: none)
 *	CANCEL	 id 22, pub 32
 *	APPROVED pub 32				REJECTED pub 32 */
#ifndef RELAY_FACT_H
#define RELAY_FACT_H

#include "core/item.h"
#include "relay/store.h"

#define FACT_NO_SEQ UINT64_MAX
#define FACT_SIG 16
#define FACT_ANY_INPUT 255u

struct fact {
	enum rec_type type;
	char session_id[SESSION_ID + 1];
	uint64_t seq;
	int64_t at_ms;
	struct bytes extra, data;
};

/* The body without its data, which the caller adds behind it. */
void fact_begin(struct buf *body, enum rec_type type, const char *session_id,
		int64_t at_ms, struct bytes extra);
void fact_set_seq(struct buf *body, uint64_t seq);
int fact_parse(struct fact *f, struct bytes body, struct err *e);

/* The event's kind, or NULL where clients are told of no such event; and its
 * word in the audit trail. */
const char *fact_event(enum rec_type type);
const char *fact_audit(enum rec_type type);
uint32_t fact_tag(const char *session_id);

void fact_add_u64(struct buf *b, uint64_t v);
void fact_add_name(struct buf *b, const char *name);	/* at most 255 */

/* Taking extra apart, field by field.  bad is set when it runs short. */
struct fact_reader {
	struct bytes left;
	bool bad;
};
void fact_take(struct fact_reader *r, void *to, size_t n);
uint64_t fact_take_u64(struct fact_reader *r);
uint8_t fact_take_u8(struct fact_reader *r);
/* With a NUL; bad where it does not fit. */
void fact_take_name(struct fact_reader *r, char *to, size_t cap);

#endif
