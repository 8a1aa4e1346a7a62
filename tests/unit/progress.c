/* SPDX-License-Identifier: MIT */
#include "core/enc.h"
#include "core/progress_seal.h"
#include "tests/unit/party.h"

#define JOB_ID "o3WMz3nlyayUTzAooGknfA"

static const struct party *party;

static void seal(struct progress *p, const char *output, size_t n)
{
	struct err e = { 0 };

	*p = (struct progress){ .job = JOB_ID, .seq = 7,
				.stream = PROGRESS_STDERR };
	strcpy(p->session_id, party->m.session_id);
	ok(progress_seal(p, (struct bytes){ (const uint8_t *)output, n },
			 party->keys.session_key, party->seed[ROLE_RUNNER],
			 NULL, &e) == 0, "sealed: %s", e.why);
}

static void round_trip(void)
{
	struct progress p, q;
	struct buf body = { 0 }, out = { 0 };
	struct err e = { 0 };
	char want[200];

	seal(&p, "a line\n\0b", 9);
	progress_put(&body, &p);
	ok(progress_parse(&q, buf_bytes(&body), &e) == 0, "parsed: %s", e.why);
	is_str(q.job, JOB_ID, "its job");
	is_str(q.session_id, party->m.session_id, "its session");
	is_int(q.seq, 7, "its number");
	is_int(q.stream, PROGRESS_STDERR, "its stream");
	ok(progress_verify(&q, party->cert[ROLE_RUNNER].pub, &e) == 0,
	   "the runner signed it: %s", e.why);
	ok(progress_verify(&q, party->cert[ROLE_SENDER].pub, &e) < 0 &&
	   e.code == ERR_SIGNATURE, "and nobody else");
	buf_add_str(&out, "before ");
	ok(progress_open(&out, &q, party->keys.session_key, &e) == 0,
	   "opened: %s", e.why);
	is_int(out.len, 16, "added to what was there");
	is_mem(out.data + 7, "a line\n\0b", 9, "the output");
	buf_reset(&body);
	progress_put_aad(&body, &q);
	snprintf(want, sizeof want, "{\"job\":\"" JOB_ID "\",\"seq\":7,"
		 "\"session_id\":\"%s\",\"stream\":\"stderr\"}",
		 party->m.session_id);
	is_str(buf_cstr(&body), want, "what is signed");
	progress_free(&p);
	progress_free(&q);
	buf_free(&body);
	buf_free(&out);
}

static void key(void)
{
	uint8_t a[32], b[32], item[32];

	session_progress_key(a, party->keys.session_key, party->m.session_id,
			     JOB_ID);
	session_progress_key(b, party->keys.session_key, party->m.session_id,
			     "o3WMz3nlyayUTzAooGknfQ");
	session_item_key(item, party->keys.session_key, party->m.session_id,
			 JOB_ID);
	ok(memcmp(a, b, 32) != 0, "a key a job");
	ok(memcmp(a, item, 32) != 0, "and not the item's");
}

/* A frame that is moved to another place opens nowhere. */
static void moved(void)
{
	struct progress p;
	struct buf out = { 0 };
	struct err e = { 0 };
	const uint8_t *runner = party->cert[ROLE_RUNNER].pub;

	seal(&p, "x", 1);
	p.seq = 8;
	ok(progress_verify(&p, runner, &e) < 0, "another number: %s", e.why);
	ok(progress_open(&out, &p, party->keys.session_key, &e) < 0 &&
	   e.code == ERR_DECRYPT && out.len == 0, "nor does it open");
	p.seq = 7;
	p.stream = PROGRESS_STDOUT;
	ok(progress_verify(&p, runner, &e) < 0, "another stream");
	p.stream = PROGRESS_STDERR;
	p.job[0] = 'p';
	ok(progress_verify(&p, runner, &e) < 0, "another job");
	p.job[0] = 'o';
	p.session_id[5] = p.session_id[5] == 'a' ? 'b' : 'a';
	ok(progress_verify(&p, runner, &e) < 0, "another session");
	strcpy(p.session_id, party->m.session_id);
	ok(progress_verify(&p, runner, &e) == 0, "as it was: %s", e.why);
	p.frame.data[13] ^= 1;
	ok(progress_verify(&p, runner, &e) < 0, "another byte");
	progress_free(&p);
	buf_free(&out);
}

static void sizes(void)
{
	static uint8_t much[PROGRESS_OUTPUT_MAX + 1];
	struct progress p, q;
	struct buf body = { 0 };
	struct err e = { 0 };

	seal(&p, (const char *)much, PROGRESS_OUTPUT_MAX);
	progress_put(&body, &p);
	ok(body.len <= PROGRESS_BODY_MAX, "%zu bytes fit", body.len);
	ok(progress_parse(&q, buf_bytes(&body), &e) == 0, "32 KiB: %s", e.why);
	progress_free(&q);
	ok(progress_seal(&p, (struct bytes){ much, sizeof much },
			 party->keys.session_key, party->seed[ROLE_RUNNER],
			 NULL, &e) < 0, "not a byte more: %s", e.why);
	ok(progress_seal(&p, (struct bytes){ much, 0 },
			 party->keys.session_key, party->seed[ROLE_RUNNER],
			 NULL, &e) < 0, "nor none");
	p.frame.len = BLOB_OVERHEAD;
	buf_reset(&body);
	progress_put(&body, &p);
	ok(progress_parse(&q, buf_bytes(&body), &e) < 0, "an empty frame: %s",
	   e.why);
	progress_free(&p);
	buf_free(&body);
}

static void wrong(const char *from, const char *to)
{
	struct progress p, q;
	struct buf body = { 0 };
	struct err e = { 0 };

	seal(&p, "x", 1);
	progress_put(&body, &p);
	ok(party_edit(&body, from, to) &&
	   progress_parse(&q, buf_bytes(&body), &e) < 0 &&
	   e.code == ERR_INVALID && !q.frame.data, "%s for %s: %s", to, from,
	   e.why);
	progress_free(&p);
	buf_free(&body);
}

int main(void)
{
	struct party p;

	party_begin(&p, MODE_EXECUTE);
	party = &p;
	round_trip();
	key();
	moved();
	sizes();
	wrong("stderr", "stdlog");
	wrong("\"seq\":7", "\"seq\":-1");
	wrong("\"seq\":7", "\"seq\":9007199254740992");
	wrong("\"seq\":7", "\"seq\":\"7\"");
	wrong(JOB_ID, "x");
	wrong("ax_", "bx_");
	wrong(",\"seq\":7", "");
	wrong("{\"frame\":\"", "{\"frame\":\"=");
	wrong("\"sig\":\"", "\"sig\":\"A");
	wrong("\"stream\"", "\"sx\":1,\"stream\"");
	party_end(&p);
	return done_testing();
}
