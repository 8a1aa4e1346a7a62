/* SPDX-License-Identifier: MIT
 *
 * No sentence here holds a byte of the link: it is a key. */
#include <string.h>
#include <strings.h>

#include "core/clear.h"
#include "core/enc.h"
#include "core/invite.h"

static const char *const words[ROLES] = {
	[ROLE_OWNER] = "owner", [ROLE_SENDER] = "send", [ROLE_RUNNER] = "run",
	[ROLE_OBSERVER] = "view",
};

static int refuse(struct err *e, const char *why)
{
	return err_set(e, ERR_INVALID, "invite link: %s", why);
}

static bool starts(struct bytes s, const char *with)
{
	size_t n = strlen(with);

	return s.n >= n && memcmp(s.p, with, n) == 0;
}

static struct bytes skip(struct bytes s, size_t n)
{
	return (struct bytes){ s.p + n, s.n - n };
}

static struct bytes drop_slashes(struct bytes s)
{
	while (s.n && s.p[s.n - 1] == '/')
		s.n--;
	return s;
}

/* The position of c in s, or s.n. */
static size_t find(struct bytes s, uint8_t c)
{
	const uint8_t *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

/* --- the base --- */

static bool clean(struct bytes url)
{
	for (size_t at = 0; at < url.n;) {
		uint32_t c = clear_next(url, &at);
		if (c == UINT32_MAX || c < 0x20 || c == 0x7f || clear_white(c) ||
		    c == '?' || c == '#' || c == '@')
			return false;
	}
	return true;
}

/* The host of an authority, without its port. */
static struct bytes host_of(struct bytes authority)
{
	if (authority.n && authority.p[0] == '[') {
		size_t n = find(authority, ']');
		authority.n = n < authority.n ? n + 1 : 0;
	} else {
		authority.n = find(authority, ':');
	}
	return authority;
}

static bool host_is(struct bytes host, const char *name)
{
	return host.n == strlen(name) &&
	       strncasecmp((const char *)host.p, name, host.n) == 0;
}

static bool is_local(struct bytes host)
{
	static const char suffix[] = ".localhost";
	size_t n = sizeof suffix - 1;

	if (host_is(host, "localhost") || host_is(host, "127.0.0.1") ||
	    host_is(host, "[::1]"))
		return true;
	return host.n >= n && host_is(skip(host, host.n - n), suffix);
}

static const char *plain_hosts;	/* set by a main, once */

void invite_allow_plain(const char *hosts) { plain_hosts = hosts; }

static bool is_allowed(struct bytes host)
{
	char name[256];
	for (const char *s = plain_hosts; s && *s;) {
		size_t n = strcspn(s, ", ");
		if (n && n < sizeof name) {
			memcpy(name, s, n);
			name[n] = 0;
			if (host_is(host, name))
				return true;
		}
		s += n + (s[n] != 0);
	}
	return false;
}

bool invite_is_plain(const char *base_url)
{
	struct bytes s = bytes_str(base_url);
	if (!starts(s, "http://"))
		return false;
	s = skip(s, 7);
	s.n = find(s, '/');
	return !is_local(host_of(s));
}

static int base_check(struct bytes url, struct err *e)
{
	bool tls = starts(url, "https://");

	if (!tls && !starts(url, "http://"))
		return refuse(e, "must start with https://");
	if (!clean(url))
		return refuse(e, "the address holds a space, a query, a user "
			      "name or a control character");
	struct bytes authority = skip(url, tls ? 8 : 7);
	authority.n = find(authority, '/');
	struct bytes host = host_of(authority);
	if (host.n == 0)
		return refuse(e, "no host");
	if (!tls && !is_local(host) && !is_allowed(host))
		return refuse(e, "http is for this machine only, use https");
	return 0;
}

int invite_base(struct buf *out, struct bytes url, struct err *e)
{
	url = drop_slashes(url);
	if (base_check(url, e) < 0)
		return -1;
	buf_add(out, url.p, url.n);
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

/* --- the fragment --- */

enum { FIELD_K, FIELD_OK, FIELD_R, FIELD_RK, FIELD_V, FIELDS };
static const char *const field_names[FIELDS] = {
	[FIELD_K] = "k", [FIELD_OK] = "ok", [FIELD_R] = "r",
	[FIELD_RK] = "rk", [FIELD_V] = "v",
};

struct fragment {
	struct bytes value[FIELDS];
	bool has[FIELDS];
};

static int take_pair(struct fragment *f, struct bytes pair, struct err *e)
{
	size_t eq = find(pair, '=');

	if (eq == pair.n)
		return refuse(e, "a part of it has no \"=\"");
	struct bytes name = { pair.p, eq };
	for (int i = 0; i < FIELDS; i++) {
		if (!bytes_eq(name, bytes_str(field_names[i])))
			continue;
		if (f->has[i])
			return refuse(e, "a part of it is there twice");
		f->has[i] = true;
		f->value[i] = skip(pair, eq + 1);
	}
	return 0;
}

static int fragment_parse(struct fragment *f, struct bytes s, struct err *e)
{
	*f = (struct fragment){ 0 };
	for (;;) {
		struct bytes pair = { s.p, find(s, '&') };
		if (pair.n && take_pair(f, pair, e) < 0)
			return -1;
		if (pair.n == s.n)
			return 0;
		s = skip(s, pair.n + 1);
	}
}

static int role_of_word(enum role *role, struct bytes word)
{
	for (unsigned i = 0; i < ROLES; i++) {
		if (bytes_eq(word, bytes_str(words[i]))) {
			*role = (enum role)i;
			return 0;
		}
	}
	return -1;
}

static int take_key(uint8_t to[32], struct bytes s, struct err *e)
{
	return enc_b64_fixed(to, 32, s) < 0 ?
	       refuse(e, "a key in it is cut or mistyped") : 0;
}

static int take_owner(struct invite *v, const struct fragment *f,
		      struct err *e)
{
	uint8_t seed[PRIM_SEED], pub[PRIM_PUB];
	char id[SESSION_ID + 1];

	if (!f->has[FIELD_OK] || f->has[FIELD_K] || f->has[FIELD_RK])
		return refuse(e, "an owner's link holds the owner key alone");
	int r = take_key(seed, f->value[FIELD_OK], e);
	if (r == 0) {
		prim_pub(pub, seed);
		key_session_id(id, pub);
		if (strcmp(id, v->session_id) != 0)
			r = refuse(e, "its key is of another session");
		else
			session_from_owner(&v->keys, seed);
	}
	prim_wipe(seed, sizeof seed);
	return r;
}

static int take_member(struct invite *v, const struct fragment *f,
		       struct err *e)
{
	if (f->has[FIELD_OK] || !f->has[FIELD_K] || !f->has[FIELD_RK])
		return refuse(e, "a member's link holds session and role key");
	if (take_key(v->keys.session_key, f->value[FIELD_K], e) < 0)
		return -1;
	return take_key(v->keys.role_seed, f->value[FIELD_RK], e);
}

static int take_fragment(struct invite *v, struct bytes s, struct err *e)
{
	struct fragment f;

	if (fragment_parse(&f, s, e) < 0)
		return -1;
	if (!f.has[FIELD_V] || !bytes_eq(f.value[FIELD_V], bytes_str("1")))
		return refuse(e, "not of version 1");
	if (!f.has[FIELD_R] || role_of_word(&v->role, f.value[FIELD_R]) < 0)
		return refuse(e, "no role, or an unknown one");
	return v->role == ROLE_OWNER ? take_owner(v, &f, e)
				     : take_member(v, &f, e);
}

/* --- the whole --- */

static int take_address(struct invite *v, struct bytes s, struct err *e)
{
	size_t at = s.n;

	for (size_t i = 0; i + 3 <= s.n; i++)
		if (memcmp(s.p + i, "/s/", 3) == 0)
			at = i;
	if (at == s.n)
		return refuse(e, "no session in it");
	struct bytes id = drop_slashes(skip(s, at + 3));
	if (!key_is_session_id(id))
		return refuse(e, "no session in it");
	memcpy(v->session_id, id.p, id.n);
	struct buf base = { 0 };
	if (invite_base(&base, (struct bytes){ s.p, at }, e) < 0) {
		buf_free(&base);
		return -1;
	}
	v->base_url = buf_steal(&base);
	if (!v->base_url) {
		buf_free(&base);
		return err_set(e, ERR_MEMORY, "out of memory");
	}
	return 0;
}

int invite_parse(struct invite *v, struct bytes url, struct err *e)
{
	size_t hash = find(url, '#');

	*v = (struct invite){ 0 };
	if (hash == url.n)
		return refuse(e, "the part after # is missing");
	if (take_address(v, (struct bytes){ url.p, hash }, e) < 0 ||
	    take_fragment(v, skip(url, hash + 1), e) < 0) {
		invite_free(v);
		return -1;
	}
	return 0;
}

static void put_key(struct buf *out, const char *name, const uint8_t key[32])
{
	buf_add_str(out, name);
	enc_b64(out, key, 32);
}

int invite_build(struct buf *out, const char *base_url,
		 const uint8_t owner_seed[PRIM_SEED], enum role role,
		 struct err *e)
{
	uint8_t pub[PRIM_PUB], seed[PRIM_SEED];
	char id[SESSION_ID + 1];
	struct session_keys keys;

	if (invite_base(out, bytes_str(base_url), e) < 0)
		return -1;
	prim_pub(pub, owner_seed);
	key_session_id(id, pub);
	session_from_owner(&keys, owner_seed);
	session_role_seed(seed, owner_seed, role);
	buf_addf(out, "/s/%s#v=1&r=%s", id, words[role]);
	if (role == ROLE_OWNER) {
		put_key(out, "&ok=", seed);
	} else {
		put_key(out, "&k=", keys.session_key);
		put_key(out, "&rk=", seed);
	}
	prim_wipe(seed, sizeof seed);
	prim_wipe(&keys, sizeof keys);
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}

void invite_free(struct invite *v)
{
	if (!v)
		return;
	free(v->base_url);
	prim_wipe(v, sizeof *v);
}
