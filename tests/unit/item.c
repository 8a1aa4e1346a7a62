/* SPDX-License-Identifier: MIT */
#include "core/item.h"
#include "tests/unit/party.h"

static struct item_header text_of(const struct party *p, enum role role)
{
	struct item_header h = { .created_at_ms = PARTY_BEGIN,
				 .kind = ITEM_TEXT, .type = TYPE_NONE,
				 .size = 40 };

	memcpy(h.author, p->cert[role].pub, 32);
	strcpy(h.session_id, p->m.session_id);
	item_new_id(h.id);
	return h;
}

static void envelopes(const struct party *p)
{
	struct item_header h = text_of(p, ROLE_SENDER);
	struct item_ref refs[2] = { { .sha256 = { 1 } }, { .sha256 = { 2 } } };
	struct buf raw = { 0 }, text = { 0 };
	uint8_t sha[HASH_SIZE] = { 3 };
	struct envelope v;
	struct err e = { 0 };

	item_new_id(refs[0].id);
	item_new_id(refs[1].id);
	h.refs = refs;
	h.ref_n = 2;
	item_put_header(&raw, &h);
	envelope_build(&text, buf_bytes(&raw), sha, p->seed[ROLE_SENDER]);
	if (!ok(envelope_parse(&v, buf_bytes(&text), &e) == 0,
		"an envelope: %s", e.why))
		return;
	ok(bytes_eq(v.raw_header, buf_bytes(&raw)), "its header, as written");
	is_str(v.header.id, h.id, "its id");
	is_int(v.header.ref_n, 2, "two references");
	is_str(v.header.refs[1].id, refs[1].id, "the second");
	ok(envelope_verify(&v, sha, &e) == 0, "the signature");
	sha[0] ^= 1;
	ok(envelope_verify(&v, sha, &e) < 0 && e.code == ERR_SIGNATURE,
	   "covers the blob");
	envelope_free(&v);
	ok(party_edit(&text, "\"subkind\":null", "\"subkind\":\"py\"") &&
	   envelope_parse(&v, buf_bytes(&text), &e) < 0 &&
	   e.code == ERR_INVALID, "a text has no subkind: %s", e.why);
	buf_free(&raw);
	buf_free(&text);
	envelope_free(NULL);
}

static void forms(const struct party *p)
{
	static const struct { enum item_kind kind; enum item_type type;
			      bool good; } pairs[] = {
		{ ITEM_FILE, TYPE_ZIP, true }, { ITEM_FILE, TYPE_TEXT, false },
		{ ITEM_FILE, TYPE_NONE, false }, { ITEM_JOB, TYPE_NONE, true },
		{ ITEM_EVENT, TYPE_NONE, true },
	};
	struct item_header h = text_of(p, ROLE_SENDER), back;

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct buf raw = { 0 };
		h.kind = pairs[i].kind;
		h.type = pairs[i].type;
		item_put_header(&raw, &h);
		int r = item_parse_header(&back, buf_bytes(&raw), NULL);
		ok((r == 0) == pairs[i].good &&
		   (r < 0 || back.type == h.type), "%s/%s",
		   item_kind_word(h.kind), type_word(h.type));
		item_free_header(&back);
		buf_free(&raw);
	}
	ok(item_is_id(bytes_str(h.id)), "%s is an id", h.id);
	ok(!item_is_id(bytes_str("AAAAAAAAAAAAAAAAAAAAAB")),
	   "bits at its end are zero");
	ok(!item_is_id(bytes_str("AAAA")), "and it is not short");
}

static void says(const struct party *p, const struct item_header *h,
		 enum role role, enum err_code want, const char *what)
{
	struct err e = { 0 };

	item_check_header(h, &p->cert[role], &p->m, &e);
	is_int(e.code, want, "%s: %s", what, e.why);
}

static void policy(const struct party *p)
{
	struct item_header h = text_of(p, ROLE_SENDER);

	says(p, &h, ROLE_SENDER, ERR_NONE, "a text");
	says(p, &h, ROLE_OWNER, ERR_POLICY, "of another author");
	h.created_at_ms = p->m.created_at_ms - 1;
	says(p, &h, ROLE_SENDER, ERR_TIME, "too early");
	h.created_at_ms = p->m.expires_at_ms;
	says(p, &h, ROLE_SENDER, ERR_TIME, "at expiry");
	h.created_at_ms--;
	says(p, &h, ROLE_SENDER, ERR_NONE, "just before");
	h.size = p->m.max_item_bytes + 1;
	says(p, &h, ROLE_SENDER, ERR_SIZE, "too large");
	h.size--;
	says(p, &h, ROLE_SENDER, ERR_NONE, "as large as may be");
	h.session_id[5] ^= 1;
	says(p, &h, ROLE_SENDER, ERR_POLICY, "of another session");
}

static void roles(struct party *p, enum mode mode)
{
	/* rows: owner, sender, runner, observer; columns: item_kind */
	static const char *const execute[ROLES] = {
		"yyyyy", "yyyny", "nynyn", "nnnnn"
	};
	static const char *const relay[ROLES] = {
		"yynny", "yynny", "nnnnn", "nnnnn"
	};

	p->m.mode = mode;
	for (int i = 0; i < ROLES; i++) {
		struct item_header h = text_of(p, (enum role)i);
		for (int k = 0; k < 5; k++) {
			bool may = (mode ? execute : relay)[i][k] == 'y';
			h.kind = (enum item_kind)k;
			h.type = k == ITEM_FILE ? TYPE_MD : TYPE_NONE;
			says(p, &h, (enum role)i, may ? ERR_NONE : ERR_ROLE,
			     item_kind_word(h.kind));
		}
	}
	p->m.mode = MODE_EXECUTE;
}

static void types(struct party *p)
{
	struct item_header h = text_of(p, ROLE_OWNER);

	memset(p->m.allowed, 0, sizeof p->m.allowed);
	says(p, &h, ROLE_OWNER, ERR_TYPE, "no text here");
	h.kind = ITEM_JOB;
	says(p, &h, ROLE_OWNER, ERR_TYPE, "no py, no job");
	h.kind = ITEM_FILE;
	h.type = TYPE_ZIP;
	says(p, &h, ROLE_OWNER, ERR_TYPE, "no archive");
	p->m.allowed[TYPE_ZIP] = true;
	says(p, &h, ROLE_OWNER, ERR_NONE, "now there is");
	h.kind = ITEM_EVENT;
	says(p, &h, ROLE_OWNER, ERR_NONE, "events always are");
}

int main(void)
{
	struct party p;

	party_begin(&p, MODE_EXECUTE);
	envelopes(&p);
	forms(&p);
	policy(&p);
	roles(&p, MODE_EXECUTE);
	roles(&p, MODE_RELAY);
	types(&p);
	party_end(&p);
	return done_testing();
}
