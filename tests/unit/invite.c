/* SPDX-License-Identifier: MIT */
#include "core/invite.h"
#include "tests/unit/party.h"

#define BASE "https://ax.example:8443/base"

static void there_and_back(const struct party *p, enum role role)
{
	struct buf url = { 0 };
	struct invite v;
	struct err e = { 0 };
	uint8_t seed[32];

	session_role_seed(seed, p->owner, role);
	ok(invite_build(&url, BASE "//", p->owner, role, &e) == 0,
	   "a link for a %s", role_word(role));
	if (!ok(invite_parse(&v, buf_bytes(&url), &e) == 0, "is read: %s",
		e.why))
		return;
	is_str(v.base_url, BASE, "base");
	is_str(v.session_id, p->m.session_id, "session");
	is_int(v.role, role, "role");
	is_mem(v.keys.session_key, p->keys.session_key, 32, "session key");
	is_mem(v.keys.role_seed, seed, 32, "role key");
	invite_free(&v);
	buf_free(&url);
}

/* The sender's link with a part replaced is refused, and not quoted. */
static void refused(const struct party *p, const char *from, const char *to)
{
	struct buf url = { 0 };
	struct invite v;
	struct err e = { 0 };

	invite_build(&url, BASE, p->owner, ROLE_SENDER, &e);
	char *key = strdup(strstr(buf_cstr(&url), "&k=") + 3);
	key[20] = 0;
	ok(party_edit(&url, from, to) &&
	   invite_parse(&v, buf_bytes(&url), &e) < 0 &&
	   e.code == ERR_INVALID && !v.base_url, "%s for %s: %s", to, from,
	   e.why);
	ok(!strstr(e.why, key), "the sentence holds no key");
	free(key);
	buf_free(&url);
}

static void base(const char *url, const char *want)
{
	struct buf out = { 0 };
	int r = invite_base(&out, bytes_str(url), NULL);

	is_str(r == 0 ? buf_cstr(&out) : NULL, want, "base %s", url);
	buf_free(&out);
}

static void plain(void)
{
	base("http://pod.example:80", NULL);
	invite_allow_plain("other, pod.example,[fd00::1]");
	base("http://pod.example:80/x/", "http://pod.example:80/x");
	base("http://POD.example", "http://POD.example");
	base("http://[fd00::1]:1", "http://[fd00::1]:1");
	base("http://pod.example.evil", NULL);
	base("http://a.pod.example", NULL);
	base("http://u@other", NULL);
	ok(invite_is_plain("http://other:1/x"), "that is plain");
	ok(!invite_is_plain("https://other") &&
	   !invite_is_plain("http://127.0.0.1:2"), "these are not");
	invite_allow_plain(NULL);
	base("http://pod.example:80", NULL);
}

int main(void)
{
	struct party p;

	party_begin(&p, MODE_EXECUTE);
	for (int i = 0; i < ROLES; i++)
		there_and_back(&p, (enum role)i);
	refused(&p, "#", "?");
	refused(&p, "v=1", "v=2");
	refused(&p, "v=1&", "");
	refused(&p, "r=send", "r=send&r=view");
	refused(&p, "r=send", "r=sender");
	refused(&p, "r=send", "r=owner");
	refused(&p, "&rk=", "&ok=");
	refused(&p, "&k=", "&k=A");
	refused(&p, "&k=", "&x&k=");
	refused(&p, "/s/ax_", "/s/AX_");
	refused(&p, "/s/", "/t/");
	refused(&p, "https://", "http://");
	refused(&p, "https://", "https://u@");
	refused(&p, "/base", "/ba se");
	base("https://h/", "https://h");
	base("http://LocalHost:80/x//", "http://LocalHost:80/x");
	base("http://a.localhost", "http://a.localhost");
	base("http://[::1]:9", "http://[::1]:9");
	base("http://127.0.0.1", "http://127.0.0.1");
	base("http://127.0.0.2", NULL);
	base("http://localhost.", NULL);
	base("http://localhost.evil.example", NULL);
	base("https://", NULL);
	base("https://:80", NULL);
	base("https://h?x", NULL);
	base("https://h#x", NULL);
	base("https://h/@x", NULL);
	base("https://h\xc2\xa0x", NULL);
	base("https://h\x01", NULL);
	base("HTTPS://h", NULL);
	plain();
	invite_free(NULL);
	party_end(&p);
	return done_testing();
}
