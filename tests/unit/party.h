/* SPDX-License-Identifier: MIT
 *
 * A session for unit tests: fixed seeds, an execute or relay manifest, one
 * participant a role with its certificate. */
#ifndef TESTS_UNIT_PARTY_H
#define TESTS_UNIT_PARTY_H

#include "core/cert.h"
#include "core/session.h"
#include "tests/unit/tap.h"

struct party {
	uint8_t owner[32];
	struct session_keys keys;	/* the owner's */
	struct manifest m;
	struct buf manifest;		/* signed */
	uint8_t seed[ROLES][32];	/* of the participants */
	struct cert cert[ROLES];
	struct buf signed_cert[ROLES];
};

#define PARTY_BEGIN INT64_C(1790539572182)

static inline void party_fields(struct party *p, enum mode mode)
{
	uint8_t seed[32];

	memset(p->owner, 0x11, 32);
	session_from_owner(&p->keys, p->owner);
	for (int i = 0; i < ROLES; i++) {
		session_role_seed(seed, p->owner, (enum role)i);
		prim_pub(p->m.pub[i], seed);
	}
	key_session_id(p->m.session_id, p->m.pub[ROLE_OWNER]);
	p->m.mode = mode;
	p->m.created_at_ms = PARTY_BEGIN;
	p->m.expires_at_ms = PARTY_BEGIN + 3600000;
	p->m.max_item_bytes = 131072;
	for (int i = 0; i < TYPE_NONE; i++) {
		p->m.allowed[i] = true;
		p->m.order[p->m.allowed_n++] = (enum item_type)i;
	}
	if (mode != MODE_EXECUTE)
		return;
	p->m.job = (struct job_limits){ .runtime = "python3.12",
		.timeout_s = 60, .memory_mb = 512, .approve_runners = true };
	p->m.job.packages = calloc(1, sizeof(char *));
	p->m.job.packages[p->m.job.package_n++] = strdup("numpy");
}

static inline void party_begin(struct party *p, enum mode mode)
{
	uint8_t seed[32];
	struct err e = { 0 };

	*p = (struct party){ 0 };
	if (prim_init() < 0)
		exit(1);
	party_fields(p, mode);
	if (manifest_build(&p->manifest, &p->m, p->owner, &e) < 0)
		ok(false, "the manifest: %s", e.why);
	for (int i = 0; i < ROLES; i++) {
		memset(p->seed[i], 0x20 + i, 32);
		p->cert[i].role = (enum role)i;
		p->cert[i].issued_at_ms = PARTY_BEGIN + i;
		prim_pub(p->cert[i].pub, p->seed[i]);
		session_role_seed(seed, p->owner, (enum role)i);
		if (cert_build(&p->signed_cert[i], &p->cert[i], &p->m, seed,
			       &e) < 0)
			ok(false, "a certificate: %s", e.why);
	}
}

static inline void party_end(struct party *p)
{
	manifest_free(&p->m);
	buf_free(&p->manifest);
	for (int i = 0; i < ROLES; i++)
		buf_free(&p->signed_cert[i]);
}

/* Replaces the first `from` in the text; false if it is not there. */
static inline bool party_edit(struct buf *b, const char *from, const char *to)
{
	char *text = buf_cstr(b), *at = text ? strstr(text, from) : NULL;
	struct buf out = { 0 };

	if (!at)
		return false;
	buf_add(&out, text, (size_t)(at - text));
	buf_add_str(&out, to);
	buf_add_str(&out, at + strlen(from));
	buf_free(b);
	*b = out;
	return true;
}

#endif
