/* SPDX-License-Identifier: MIT
 *
 * people: the participants that this client has verified, and the names they
 * are shown under.  Who is not here does not exist. */
#ifndef AIRLOX_HOST_PEOPLE_H
#define AIRLOX_HOST_PEOPLE_H

#include "core/cert.h"

struct participant {
	struct join join;	/* verified: cert.pub, cert.role, names, ... */
	char fingerprint[KEY_FINGERPRINT];
	char *shown;		/* display name, or NAME+<8 hex>: unique */
	char *shown_runner;	/* the same of a runner's name, else NULL */
	uint64_t seq;		/* of the event that named it first */
	bool left, revoked;
	struct buf raw;		/* the signed join, as posted */
	struct buf key[4];		/* private: folded names */
};

struct people {
	struct participant **v;	/* in order of arrival; never moves or goes */
	size_t n, cap;
};

/* Parses and verifies a signed join; the first of a key stays.  NULL: e says
 * why it does not exist.  A name is the first comer's (after clear_fold); a
 * later equal one, and one that is the word of a role its holder has not, is
 * shown with "+" and 8 hex digits of its fingerprint. */
struct participant *people_add(struct people *p, struct bytes signed_join,
			       uint64_t seq, const struct manifest *m,
			       struct err *e);
struct participant *people_find(const struct people *p,
				const uint8_t pub[PRIM_PUB]);
/* By base64url key, else by shown name or shown runner name; NULL and
 * ERR_NOT_FOUND, or ERR_CONFLICT (more than one). */
struct participant *people_named(const struct people *p, struct bytes name,
				 struct err *e);
/* A runner that has not left: by base64url key, else by shown runner name;
 * ERR_CONFLICT also where another one that has not left chose the same name:
 * then only its key, or NAME+<8 hex>, says which. */
struct participant *people_runner(const struct people *p, struct bytes which,
				  struct err *e);
void people_free(struct people *p);

#endif
