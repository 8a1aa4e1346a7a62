/* SPDX-License-Identifier: MIT */
#include "core/payload.h"
#include "tests/unit/party.h"

#define REF "{\"blob_sha256\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"" \
	",\"id\":\"AAAAAAAAAAAAAAAAAAAAAA\"}"
#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define JOB "{\"code\":\"x\",\"filename\":\"a.py\",\"files\":[" REF "]," \
	"\"memory_mb\":null,\"requirements\":[\"NumPy\"]," \
	"\"runtime\":\"python3.12\",\"target\":{\"type\":\"any\"}," \
	"\"timeout_s\":60,\"type\":\"job\"}"
#define RESULT "{\"code_sha256\":\"" HEX "\",\"exit_code\":0," \
	"\"input_sha256\":\"" HEX "\",\"job\":" REF ",\"out_files\":" \
	"[{\"item\":" REF ",\"name\":\"a.bin\",\"size\":3}]," \
	"\"peak_mem_mb\":9,\"reason\":null,\"status\":\"completed\"," \
	"\"stderr\":\"\",\"stderr_truncated\":false,\"stdout\":\"o\"," \
	"\"stdout_truncated\":true,\"type\":\"result\",\"wall_ms\":5}"

static const struct party *party;

/* The whole way for the meta with a part replaced, by this author. */
static enum err_code judge(const char *meta, const char *from, const char *to,
			   enum role role, struct err *e)
{
	struct item_header h = { .type = TYPE_NONE };
	struct buf b = { 0 };
	struct payload p;

	*e = (struct err){ 0 };
	buf_add_str(&b, meta);
	if (from && !party_edit(&b, from, to))
		return ERR_CODES;
	if (payload_parse(&p, buf_bytes(&b), 0, e) == 0) {
		h.kind = p.kind;
		payload_check(&p, &h, &party->cert[role], &party->m, e);
	}
	payload_free(&p);
	buf_free(&b);
	return e->code;
}

static void is(const char *meta, const char *from, const char *to,
	       enum err_code want)
{
	struct err e;
	int got = judge(meta, from, to, ROLE_OWNER, &e);

	is_int(got, want, "%.60s for %.30s: %s", to ? to : "as it is",
	       from ? from : "nothing", e.why);
}

static void jobs(void)
{
	is(JOB, NULL, NULL, ERR_NONE);
	is(JOB, "null", "512", ERR_NONE);
	is(JOB, "null", "0", ERR_POLICY);
	is(JOB, "null", "513", ERR_POLICY);
	is(JOB, "null", "4294967296", ERR_INVALID);
	is(JOB, "null", "\"1\"", ERR_INVALID);
	is(JOB, "\"memory_mb\":null,", "", ERR_INVALID);
	is(JOB, "60", "61", ERR_POLICY);
	is(JOB, "60", "0", ERR_POLICY);
	is(JOB, "60", "-1", ERR_INVALID);
	is(JOB, "a.py", "a.PY", ERR_NONE);
	is(JOB, "a.py", "a.txt", ERR_NAME);
	is(JOB, "a.py", "../a.py", ERR_NAME);
	is(JOB, "3.12", "3.11", ERR_POLICY);
	is(JOB, "NumPy", "pandas", ERR_POLICY);
	is(JOB, "NumPy", "a b", ERR_INVALID);
	is(JOB, "[\"NumPy\"]", "[1]", ERR_INVALID);
	is(JOB, REF, "{\"id\":\"x\"}", ERR_INVALID);
	is(JOB, "\"type\":\"any\"", "\"type\":\"all\"", ERR_INVALID);
	is(JOB, "\"type\":\"any\"", "\"labels\":[],\"type\":\"any\"",
	   ERR_INVALID);
	is(JOB, "\"type\":\"any\"", "\"labels\":[],\"type\":\"labels\"",
	   ERR_POLICY);
	is(JOB, "\"type\":\"any\"", "\"labels\":[\"A\"],\"type\":\"labels\"",
	   ERR_POLICY);
	is(JOB, "\"type\":\"any\"", "\"labels\":[\"a\"],\"type\":\"labels\"",
	   ERR_NONE);
	is(JOB, "\"type\":\"any\"", "\"labels\":[\"a\",\"a\",\"a\",\"a\","
	   "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
	   "\"a\",\"a\",\"a\"],\"type\":\"labels\"", ERR_POLICY);
}

static void results(void)
{
	is(RESULT, NULL, NULL, ERR_NONE);
	is(RESULT, "\"exit_code\":0", "\"exit_code\":null", ERR_POLICY);
	is(RESULT, "\"exit_code\":0", "\"exit_code\":-2147483648", ERR_NONE);
	is(RESULT, "\"exit_code\":0", "\"exit_code\":2147483648",
	   ERR_INVALID);
	is(RESULT, "completed", "failed", ERR_POLICY);
	is(RESULT, "null,\"status\":\"completed\"",
	   "\"x\",\"status\":\"failed\"", ERR_NONE);
	is(RESULT, "completed", "cancelled", ERR_POLICY);
	is(RESULT, "completed", "lost", ERR_INVALID);
	is(RESULT, HEX, "A", ERR_POLICY);
	is(RESULT, "a.bin", "a/b", ERR_NAME);
	is(RESULT, "\"wall_ms\":5", "\"wall_ms\":null", ERR_INVALID);
	is(RESULT, "true", "1", ERR_INVALID);
}

static void event_of(enum role role, enum event_kind kind, enum err_code want)
{
	struct item_ref job = { .id = "AAAAAAAAAAAAAAAAAAAAAA" };
	struct buf b = { 0 };
	struct err e;

	payload_put_event(&b, kind, party->cert[0].pub, "no", &job);
	buf_cstr(&b);
	is_int(judge((const char *)b.data + 4, NULL, NULL, role, &e), want,
	       "event %d of a %s", kind, role_word(role));
	buf_free(&b);
}

static void events(void)
{
	for (int i = EVENT_RUNNER_APPROVE; i <= EVENT_SESSION_CLOSE; i++) {
		event_of(ROLE_OWNER, (enum event_kind)i, ERR_NONE);
		event_of(ROLE_SENDER, (enum event_kind)i,
			 i == EVENT_JOB_CANCEL ? ERR_NONE : ERR_ROLE);
	}
	is("{\"event\":\"runner_approve\",\"participant_pub\":\"AA\","
	   "\"type\":\"event\"}", NULL, NULL, ERR_INVALID);
}

static void reasons(void)
{
	struct buf text = { 0 }, b = { 0 };
	struct err e;

	for (int i = 0; i < 4096; i++)
		buf_add_str(&text, "\xc3\xa9");
	for (int more = 0; more < 2; more++) {
		buf_reset(&b);
		payload_put_event(&b, EVENT_RUNNER_REJECT, party->cert[0].pub,
				  buf_cstr(&text), NULL);
		buf_cstr(&b);
		is_int(judge((const char *)b.data + 4, NULL, NULL, ROLE_OWNER,
			     &e), more ? ERR_POLICY : ERR_NONE,
		       "a reason of %d characters", 4096 + more);
		buf_add_str(&text, "a");
	}
	buf_free(&text);
	buf_free(&b);
}

static void frames(void)
{
	static const uint8_t zero[4] = { 0 }, four_m[4] = { 0, 0x40, 0, 0 },
			     more[4] = { 0, 0x40, 0, 1 };
	uint32_t n = 1;

	ok(payload_frame(zero, 3, &n, NULL) < 0, "three bytes are no frame");
	ok(payload_frame(zero, 4, &n, NULL) == 0 && n == 0, "four are");
	ok(payload_frame(four_m, 5 << 20, &n, NULL) == 0 && n == 4 << 20,
	   "4 MiB of meta");
	ok(payload_frame(more, 5 << 20, &n, NULL) < 0, "and not one more");
	ok(payload_frame(four_m, 4 << 20, &n, NULL) < 0, "nor past the end");
}

static void texts_and_files(void)
{
	struct buf b = { 0 };
	struct payload p;
	struct err e = { 0 };
	struct bytes nul = { (const uint8_t *)"a\0b", 3 };

	payload_put_text(&b, nul);
	ok(payload_parse(&p, (struct bytes){ b.data + 4, b.len - 4 }, 0,
			 &e) == 0 && bytes_eq(p.u.text.text, nul),
	   "a text with a NUL");
	payload_free(&p);
	ok(payload_parse(&p, (struct bytes){ b.data + 4, b.len - 4 }, 1,
			 &e) < 0 && e.code == ERR_INVALID,
	   "a text has no body: %s", e.why);
	buf_reset(&b);
	payload_put_file(&b, bytes_str("text/markdown"), bytes_str("a.md"));
	struct item_header h = { .kind = ITEM_FILE, .type = TYPE_MD };
	ok(load_u32be(b.data) == b.len - 4 &&
	   payload_parse(&p, (struct bytes){ b.data + 4, b.len - 4 }, 9,
			 &e) == 0 &&
	   payload_check(&p, &h, &party->cert[0], &party->m, &e) == 0,
	   "a file");
	h.type = TYPE_PY;
	ok(payload_check(&p, &h, &party->cert[0], &party->m, &e) < 0 &&
	   e.code == ERR_NAME, "of another type: %s", e.why);
	h.kind = ITEM_TEXT;
	ok(payload_check(&p, &h, &party->cert[0], &party->m, &e) < 0 &&
	   e.code == ERR_POLICY, "of another kind: %s", e.why);
	payload_free(&p);
	payload_free(NULL);
	buf_free(&b);
}

/* What was read, put again: the same bytes. */
static void again(const char *meta)
{
	struct buf b = { 0 };
	struct payload p;
	struct err e = { 0 };

	ok(payload_parse(&p, bytes_str(meta), 0, &e) == 0, "read: %s", e.why);
	if (p.kind == ITEM_JOB)
		payload_put_job(&b, &p);
	else
		payload_put_result(&b, &p);
	is_int(load_u32be(b.data), b.len - 4, "its length");
	is_str(buf_cstr(&b) + 4, meta, "put again");
	payload_free(&p);
	buf_free(&b);
}

static void again_all(void)
{
	struct buf b = { 0 };

	again(JOB);
	again(RESULT);
	buf_add_str(&b, JOB);
	party_edit(&b, "{\"type\":\"any\"}",
		   "{\"labels\":[\"a\",\"b\"],\"type\":\"labels\"}");
	party_edit(&b, "[" REF "]", "[]");
	party_edit(&b, "null", "256");
	again(buf_cstr(&b));
	party_edit(&b, "\"labels\":[\"a\",\"b\"],\"type\":\"labels\"",
		   "\"name\":\"r\",\"participant_pub\":\"jm9f_BF44Vxcb9GGJVqCD-"
		   "e2PPyJojg2_FgBcrrjOtw\",\"type\":\"runner\"");
	again(buf_cstr(&b));
	buf_reset(&b);
	buf_add_str(&b, RESULT);
	party_edit(&b, "\"exit_code\":0", "\"exit_code\":null");
	party_edit(&b, "null,\"status\":\"completed\"",
		   "\"\xc3\xa9\\n\",\"status\":\"failed\"");
	party_edit(&b, "\"stdout\":\"o\"", "\"stdout\":\"\\u0000\"");
	again(buf_cstr(&b));
	buf_free(&b);
}

static void binding(void)
{
	struct payload job, result;
	struct item_ref ref = { .id = "AAAAAAAAAAAAAAAAAAAAAA" };
	const uint8_t *me = party->cert[ROLE_RUNNER].pub;
	uint8_t list[1][PRIM_PUB];
	struct approvals a = { 0 };
	struct err e = { 0 };

	memcpy(list[0], me, PRIM_PUB);
	payload_parse(&job, bytes_str(JOB), 0, &e);
	payload_parse(&result, bytes_str(RESULT), 0, &e);
	ok(result_binds(&result, me, &job, &ref, &a, &e) == 0, "it counts");
	a.asked = true;
	ok(result_binds(&result, me, &job, &ref, &a, &e) < 0,
	   "not without approval: %s", e.why);
	a.approved = (const void *)list;
	a.approved_n = 1;
	ok(result_binds(&result, me, &job, &ref, &a, &e) == 0, "now it does");
	a.rejected = (const void *)list;
	a.rejected_n = 1;
	ok(result_binds(&result, me, &job, &ref, &a, &e) < 0,
	   "a rejection is final");
	a.rejected_n = 0;
	ref.sha256[31] = 1;
	ok(result_binds(&result, me, &job, &ref, &a, &e) < 0,
	   "another ciphertext: %s", e.why);
	payload_free(&job);
	payload_free(&result);
}

int main(void)
{
	struct party p;

	party_begin(&p, MODE_EXECUTE);
	party = &p;
	frames();
	texts_and_files();
	jobs();
	results();
	events();
	reasons();
	again_all();
	binding();
	party_end(&p);
	return done_testing();
}
