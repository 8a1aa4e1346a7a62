/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "relay/fact.h"

#define SEQ_AT (1 + SESSION_ID)
#define FIXED_N (SEQ_AT + 8 + 8 + 4)

static const struct {
	const char *event, *audit;
} words[REC_TYPES] = {
	[REC_SESSION]	= { NULL,	   "created" },
	[REC_JOIN]	= { "participant", "joined" },
	[REC_ITEM]	= { "item",	   "posted" },
	[REC_ACK]	= { NULL,	   "acked" },
	[REC_EVICTED]	= { "evicted",	   "evicted" },
	[REC_WANT]	= { "want",	   "wanted" },
	[REC_RESEEDED]	= { "reseeded",	   "reseeded" },
	[REC_LEFT]	= { "left",	   "left" },
	[REC_REVOKED]	= { "revoked",	   "revoked" },
	[REC_CLOSED]	= { "closed",	   "closed" },
	[REC_JOB]	= { "job",	   "job" },
	[REC_CANCEL]	= { NULL,	   "cancelled" },
	[REC_APPROVED]	= { NULL,	   "approved" },
	[REC_REJECTED]	= { "left",	   "rejected" },
};

const char *fact_event(enum rec_type type) { return words[type].event; }
const char *fact_audit(enum rec_type type) { return words[type].audit; }

void fact_add_u64(struct buf *b, uint64_t v)
{
	buf_add_u32be(b, (uint32_t)(v >> 32));
	buf_add_u32be(b, (uint32_t)v);
}

void fact_add_name(struct buf *b, const char *name)
{
	size_t n = strlen(name);
	buf_add_byte(b, (uint8_t)n);
	buf_add(b, name, n);
}

static void store_u64be(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static uint64_t load_u64be(const uint8_t *p)
{
	return (uint64_t)load_u32be(p) << 32 | load_u32be(p + 4);
}

void fact_begin(struct buf *body, enum rec_type type, const char *session_id,
		int64_t at_ms, struct bytes extra)
{
	buf_add_byte(body, (uint8_t)type);
	buf_add(body, session_id, SESSION_ID);
	fact_add_u64(body, FACT_NO_SEQ);
	fact_add_u64(body, (uint64_t)at_ms);
	buf_add_u32be(body, (uint32_t)extra.n);
	buf_add(body, extra.p, extra.n);
}

void fact_set_seq(struct buf *body, uint64_t seq)
{
	store_u64be(body->data + SEQ_AT, seq);
}

int fact_parse(struct fact *f, struct bytes body, struct err *e)
{
	if (body.n < FIXED_N || body.p[0] == 0 || body.p[0] >= REC_TYPES)
		return err_set(e, ERR_SYS, "a record of the log is malformed");
	const uint8_t *p = body.p + SEQ_AT;
	uint32_t n = load_u32be(p + 16);
	if (n > body.n - FIXED_N)
		return err_set(e, ERR_SYS, "a record of the log is malformed");
	f->type = (enum rec_type)body.p[0];
	memcpy(f->session_id, body.p + 1, SESSION_ID);
	f->session_id[SESSION_ID] = 0;
	f->seq = load_u64be(p);
	f->at_ms = (int64_t)load_u64be(p + 8);
	f->extra = (struct bytes){ body.p + FIXED_N, n };
	f->data = (struct bytes){ body.p + FIXED_N + n, body.n - FIXED_N - n };
	return 0;
}

uint32_t fact_tag(const char *session_id)
{
	uint32_t h = 2166136261u;	/* FNV-1a */
	for (; *session_id; session_id++)
		h = (h ^ (uint8_t)*session_id) * 16777619u;
	return h;
}

void fact_take(struct fact_reader *r, void *to, size_t n)
{
	if (r->bad || r->left.n < n) {
		r->bad = true;
		memset(to, 0, n);
		return;
	}
	memcpy(to, r->left.p, n);
	r->left.p += n;
	r->left.n -= n;
}

uint64_t fact_take_u64(struct fact_reader *r)
{
	uint8_t b[8];
	fact_take(r, b, sizeof b);
	return load_u64be(b);
}

uint8_t fact_take_u8(struct fact_reader *r)
{
	uint8_t b;
	fact_take(r, &b, 1);
	return b;
}

void fact_take_name(struct fact_reader *r, char *to, size_t cap)
{
	size_t n = fact_take_u8(r);
	memset(to, 0, cap);
	if (n < cap)
		fact_take(r, to, n);
	else
		r->bad = true;
}
