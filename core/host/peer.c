/* SPDX-License-Identifier: MIT
 *
 * Opening a session: what the relay says is held against the invite, and what
 * the cache says against both. */
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "core/host/ids.h"
#include "core/host/peer.h"

struct opening {
	struct peer *p;
	const struct peer_options *o;
	struct wire *wire;
	bool has_manifest, has_identity;
};

/* --- the manifest --- */

/* The invite decides which session this is: the manifest must be of that id
 * and must name our role's key. */
static int check_manifest(struct manifest *m, struct bytes text,
			  const struct invite *v, struct err *e)
{
	uint8_t pub[PRIM_PUB];
	if (manifest_parse(m, text, e) < 0)
		return err_prefix(e, "the session's manifest");
	prim_pub(pub, v->keys.role_seed);
	if (strcmp(m->session_id, v->session_id) != 0)
		err_set(e, ERR_INVALID, "the relay answered with the manifest "
			"of another session");
	else if (memcmp(m->pub[v->role], pub, PRIM_PUB) != 0)
		err_set(e, ERR_SIGNATURE, "the invite's key is not the one in "
			"the session's manifest; ask for a new link");
	else
		return 0;
	manifest_free(m);
	return -1;
}

/* A cached manifest that does not verify is as good as none. */
static int load_manifest(struct opening *s, struct err *e)
{
	struct peer *p = s->p;
	int r = cache_load_manifest(p->cache, &p->signed_manifest, e);
	if (r < 0 && e->code == ERR_SYS)
		return -1;
	if (r == 1 && s->o->restore_manifest)
		r = s->o->restore_manifest(s->o->restore_arg,
					   &p->signed_manifest);
	s->has_manifest = r == 0 &&
		check_manifest(&p->manifest, buf_bytes(&p->signed_manifest),
			       &p->invite, NULL) == 0;
	if (!s->has_manifest)
		buf_reset(&p->signed_manifest);
	return 0;
}

static int accept_manifest(struct opening *s, struct buf *text, struct err *e)
{
	struct peer *p = s->p;
	if (s->has_manifest) {
		if (bytes_eq(buf_bytes(text), buf_bytes(&p->signed_manifest)))
			return 0;
		return err_set(e, ERR_CONFLICT, "the relay shows another "
			       "manifest of this session than before; refused");
	}
	if (check_manifest(&p->manifest, buf_bytes(text), &p->invite, e) < 0)
		return -1;
	s->has_manifest = true;
	buf_add(&p->signed_manifest, text->data, text->len);
	if (buf_failed(&p->signed_manifest))
		return err_set(e, ERR_MEMORY, "out of memory");
	return cache_save_manifest(p->cache, buf_bytes(text), e);
}

/* Without a relay we still are who we were. */
static int go_on_without(struct opening *s, struct err *e)
{
	struct peer *p = s->p;
	bool over = e->code == ERR_NOT_FOUND || e->code == ERR_GONE;
	if (!over && !peer_may_retry(e))
		return -1;
	if (s->has_manifest && s->has_identity) {
		peer_heard(p, e);
		return 0;
	}
	if (over)
		return err_set(e, ERR_GONE, "the session is not on the relay: "
			       "it was closed or has expired");
	return -1;
}

static int fetch_manifest(struct opening *s, struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	if (wire_manifest(s->wire, &text, e) < 0)
		return go_on_without(s, e);
	if (accept_manifest(s, &text, e) < 0)
		return -1;
	if (clock_expired(&s->p->clock, &s->p->manifest)) {
		err_set(&s->p->why, ERR_GONE, "the session has expired");
		s->p->state = PEER_CLOSED;
	}
	return 0;
}

/* --- the identity --- */

/* Scheme and host compare without case, the path does not. */
static bool same_relay(const char *a, const char *b)
{
	const char *slashes = strstr(a, "://");
	size_t n = slashes ? (size_t)(slashes - a) + 3 : 0;
	n += strcspn(a + n, "/");
	return strncasecmp(a, b, n) == 0 && strlen(b) >= n &&
	       strcmp(a + n, b + n) == 0;
}

static int bind_identity(struct opening *s, struct err *e)
{
	struct identity *id = &s->p->identity;
	const char *base = s->p->invite.base_url;
	if (id->base_url && !same_relay(id->base_url, base))
		return err_set(e, ERR_POLICY, "this link names another relay "
			       "than the one this session was joined on; it "
			       "may have been altered, refused");
	if (id->base_url)
		return 0;
	id->base_url = strdup(base);
	if (!id->base_url)
		return err_set(e, ERR_MEMORY, "out of memory");
	return cache_save_identity(s->p->cache, id, e);
}

/* Whether one is the other, damaged: who joined anew has another key and
 * another token. */
static bool is_damaged(const struct identity *id, const struct identity *kept)
{
	bool seed = prim_equal(id->seed, kept->seed, PRIM_SEED);
	return seed != (strcmp(id->token, kept->token) == 0);
}

/* The copy that we keep, sealed, is worth more than what lies open in the
 * cache: where that one is gone or damaged, it is written anew. */
static int restore_identity(struct opening *s, int found, struct err *e)
{
	struct identity *id = &s->p->identity;
	struct identity kept = { .role = s->p->invite.role };
	if (!s->o->restore || s->o->restore(s->o->restore_arg, &kept) != 0)
		return found;
	if (found == 0 && !is_damaged(id, &kept)) {
		identity_free(&kept);
		return 0;
	}
	identity_free(id);
	*id = kept;
	prim_wipe(&kept, sizeof kept);
	return cache_save_identity(s->p->cache, id, e);
}

static int load_identity(struct opening *s, struct err *e)
{
	struct peer *p = s->p;
	int r = cache_load_identity(p->cache, p->invite.role, &p->identity, e);
	if (r >= 0 || e->code == ERR_INVALID)
		r = restore_identity(s, r, e);
	if (r < 0)
		return -1;
	s->has_identity = r == 0;
	return s->has_identity ? bind_identity(s, e) : 0;
}

static int build_join(struct opening *s, struct buf *out, struct err *e)
{
	struct peer *p = s->p;
	const struct peer_options *o = s->o;
	cleanup_buf struct buf cert = { 0 };
	struct join j = {
		.cert = { .role = p->invite.role },
		.kind = o->kind, .has_runner = o->runner != NULL,
		.display_name = (char *)(o->name ? o->name :
					 role_word(p->invite.role)),
		.description = (char *)o->description,
	};
	j.created_at_ms = j.cert.issued_at_ms =
		clock_sign_ms(&p->clock, &p->manifest);
	prim_pub(j.cert.pub, p->identity.seed);
	if (o->runner)
		j.runner = *o->runner;
	if (cert_build(&cert, &j.cert, &p->manifest,
		       p->invite.keys.role_seed, e) < 0)
		return -1;
	return join_build(out, &j, buf_bytes(&cert), &p->manifest,
			  p->identity.seed, e);
}

static int join(struct opening *s, struct err *e)
{
	struct peer *p = s->p;
	cleanup_buf struct buf text = { 0 };

	p->identity.role = p->invite.role;
	prim_random(p->identity.seed, PRIM_SEED);
	p->identity.base_url = strdup(p->invite.base_url);
	if (!p->identity.base_url)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (build_join(s, &text, e) < 0 ||
	    wire_join(s->wire, buf_bytes(&text), p->identity.token, e) < 0)
		return err_prefix(e, "cannot join the session");
	p->joined_now = true;
	return cache_save_identity(p->cache, &p->identity, e);
}

/* --- */

static int open_steps(struct opening *s, struct err *e)
{
	struct peer *p = s->p;
	cache_sweep(s->o->cache_dir, clock_now_ms());
	p->cache = cache_open(s->o->cache_dir, p->invite.session_id, e);
	if (!p->cache)
		return -1;
	/* two of us that start at once must not join twice */
	flock(p->cache->dir, LOCK_EX);
	int r = load_manifest(s, e) < 0 || load_identity(s, e) < 0 ||
		fetch_manifest(s, e) < 0 ||
		(!s->has_identity && join(s, e) < 0) ? -1 : 0;
	flock(p->cache->dir, LOCK_UN);
	if (r == 0)
		prim_pub(p->pub, p->identity.seed);
	return r;
}

struct peer *peer_open(struct invite *v, const struct peer_options *o,
		       struct err *e)
{
	struct peer *p = prim_secret_alloc(sizeof *p);
	struct err own;
	struct opening s = { .p = p, .o = o };

	e = e ? e : &own;
	if (!p) {
		err_set(e, ERR_MEMORY, "out of memory");
		invite_free(v);
		return NULL;
	}
	memset(p, 0, sizeof *p);
	p->invite = *v;
	prim_wipe(v, sizeof *v);
	p->seq = -1;
	p->ids = ids_new();
	s.wire = wire_new(p->invite.base_url, p->invite.session_id, NULL,
			  &p->clock, e);
	if (s.wire)
		wire_set_patience(s.wire, o->connect_ms, o->connect_ms);
	int r = p->ids && s.wire ? open_steps(&s, e) : -1;
	wire_free(s.wire);
	if (r == 0)
		return p;
	peer_free(p);
	return NULL;
}

void peer_free(struct peer *p)
{
	if (!p)
		return;
	people_free(&p->people);
	ids_free(p->ids);
	cache_free(p->cache);
	identity_free(&p->identity);
	manifest_free(&p->manifest);
	buf_free(&p->signed_manifest);
	invite_free(&p->invite);
	prim_secret_free(p);
}

struct wire *peer_wire(const struct peer *p, struct err *e)
{
	return wire_new(p->invite.base_url, p->invite.session_id,
			p->identity.token, (struct clock *)&p->clock, e);
}

int peer_may_post(const struct peer *p, enum item_kind kind,
		  enum item_type type, struct err *e)
{
	struct item_header h = { .kind = kind, .type = type, .size = 4 };
	struct cert c = { .role = p->invite.role };
	if (p->state == PEER_CLOSED)
		return err_set(e, ERR_GONE, "the session is over");
	if (clock_expired(&p->clock, &p->manifest))
		return err_set(e, ERR_GONE, "the session has expired");
	memcpy(h.author, p->pub, PRIM_PUB);
	memcpy(c.pub, p->pub, PRIM_PUB);
	strcpy(h.session_id, p->manifest.session_id);
	h.created_at_ms = clock_sign_ms(&p->clock, &p->manifest);
	return item_check_header(&h, &c, &p->manifest, e);
}

bool peer_heard(struct peer *p, const struct err *e)
{
	bool over = e->code == ERR_AUTH || e->code == ERR_NOT_FOUND ||
		    e->code == ERR_GONE;
	if (p->state == PEER_CLOSED)
		return true;
	if (over || e->code == ERR_NET) {
		p->why = *e;
		p->state = over ? PEER_CLOSED : PEER_OFFLINE;
	}
	return over;
}

bool peer_seen(struct peer *p, const char *item_id)
{
	return ids_add(p->ids, item_id);
}
