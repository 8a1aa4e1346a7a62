/* SPDX-License-Identifier: MIT */
#include "tests/unit/party.h"

static void same_back(struct party *p)
{
	struct manifest m;
	struct err e = { 0 };

	if (!ok(manifest_parse(&m, buf_bytes(&p->manifest), &e) == 0,
		"what was built is read: %s", e.why))
		return;
	is_str(m.session_id, p->m.session_id, "session id");
	is_int(m.mode, p->m.mode, "mode");
	is_int(m.expires_at_ms, p->m.expires_at_ms, "expiry");
	is_int(m.allowed_n, p->m.allowed_n, "types");
	is_mem(m.pub, p->m.pub, sizeof m.pub, "keys");
	is_str(m.job.runtime, p->m.job.runtime, "runtime");
	ok(m.job.approve_runners == p->m.job.approve_runners, "approval");
	manifest_free(&m);
}

/* Build must refuse what a reader would refuse. */
#define REFUSED(change, what) do { \
	struct party p_; \
	struct buf out_ = { 0 }; \
	struct err e_ = { 0 }; \
	party_begin(&p_, MODE_EXECUTE); \
	struct manifest *m = &p_.m; \
	change; \
	ok(manifest_build(&out_, m, p_.owner, &e_) < 0 && \
	   e_.code == ERR_INVALID && out_.len == 0, "%s: %s", what, e_.why); \
	buf_free(&out_); \
	party_end(&p_); \
} while (0)

static void bounds(void)
{
	REFUSED(m->expires_at_ms = m->created_at_ms, "expires at its birth");
	REFUSED(m->expires_at_ms = m->created_at_ms + MANIFEST_TTL_MAX_MS + 1,
		"lives too long");
	REFUSED(m->created_at_ms = INT64_C(1) << 53, "a time past 2^53-1");
	REFUSED(m->max_item_bytes = 0, "no bytes");
	REFUSED(m->max_item_bytes = MANIFEST_ITEM_MAX + 1, "too many bytes");
	REFUSED(m->allowed_n = 0, "no types");
	REFUSED(m->order[1] = m->order[0], "a type twice");
	REFUSED(m->allowed_n = 1, "execute without py");
	REFUSED(m->job.timeout_s = 3601, "timeout");
	REFUSED(m->job.memory_mb = 31, "memory");
	REFUSED(strcpy(m->job.runtime, "python3."), "runtime without digits");
	REFUSED(m->job.packages[0][0] = 'N', "a package not normalised");
	REFUSED(memcpy(m->pub[1], m->pub[2], 32), "two roles, one key");
	REFUSED(m->session_id[4] ^= 1, "another session id");
}

static void package(const char *name, const char *want)
{
	struct buf b = { 0 };
	int r = manifest_package(&b, bytes_str(name));

	if (want)
		is_str(r == 0 ? buf_cstr(&b) : NULL, want, "package %s", name);
	else
		ok(r < 0, "\"%s\" is no package", name);
	buf_free(&b);
}

static void packages(const struct party *p)
{
	char longest[103];

	package("Foo._-Bar", "foo-bar");
	package("a", "a");
	package("", NULL);
	package("-a", NULL);
	package("a_", NULL);
	package("a==1", NULL);
	package("a b", NULL);
	package("\xc3\xa9", NULL);
	memset(longest, 'a', sizeof longest);
	longest[101] = 0;
	package(longest, NULL);
	longest[100] = 0;
	package(longest, longest);
	ok(manifest_has_package(&p->m, bytes_str("NumPy")), "NumPy is allowed");
	ok(!manifest_has_package(&p->m, bytes_str("pandas")), "pandas is not");
}

static void signature(struct party *p)
{
	struct manifest m;
	struct err e = { 0 };

	ok(party_edit(&p->manifest, "\"timeout_s\":60", "\"timeout_s\":61") &&
	   manifest_parse(&m, buf_bytes(&p->manifest), &e) < 0 &&
	   e.code == ERR_SIGNATURE, "a changed limit: %s", e.why);
	party_edit(&p->manifest, ",\"sig\"", ", \"sig\"");
	ok(manifest_parse(&m, buf_bytes(&p->manifest), &e) < 0 &&
	   e.code == ERR_INVALID, "a space: %s", e.why);
	manifest_free(NULL);
}

int main(void)
{
	struct party p;

	party_begin(&p, MODE_EXECUTE);
	same_back(&p);
	packages(&p);
	bounds();
	signature(&p);
	party_end(&p);
	party_begin(&p, MODE_RELAY);
	same_back(&p);
	party_end(&p);
	return done_testing();
}
