/* SPDX-License-Identifier: MIT
 *
 * manifest: what a session is and allows, signed by its owner
 * (docs/PROTOCOL.md, section 3). */
#ifndef AIRLOX_MANIFEST_H
#define AIRLOX_MANIFEST_H

#include "core/key.h"
#include "core/type.h"

enum mode { MODE_RELAY, MODE_EXECUTE };

#define MANIFEST_TTL_MAX_MS (INT64_C(30) * 24 * 3600 * 1000)
#define MANIFEST_ITEM_MAX (INT64_C(1) << 30)
#define MANIFEST_MAX (64 * 1024)	/* bytes of a signed manifest */
#define MANIFEST_FOREVER INT64_MAX	/* expires_at_ms null */

struct job_limits {
	char runtime[32];	/* "python3.12" */
	int64_t timeout_s, memory_mb;
	bool network, return_out, approve_runners;
	char **packages;	/* normalised, in the manifest's order */
	size_t package_n;
};

struct manifest {
	char session_id[SESSION_ID + 1];
	uint8_t pub[ROLES][PRIM_PUB];	/* by enum role; owner_pub first */
	enum mode mode;
	int64_t created_at_ms, expires_at_ms;
	bool allowed[TYPE_NONE];	/* by enum item_type */
	enum item_type order[TYPE_NONE]; /* as written, allowed_n of them */
	size_t allowed_n;
	int64_t max_item_bytes;
	struct job_limits job;		/* execute mode */
};

/* Parses and verifies a signed manifest.  ERR_INVALID or ERR_SIGNATURE. */
int manifest_parse(struct manifest *m, struct bytes signed_manifest,
		   struct err *e);
/* Fills v1 of a manifest's text, signed by the owner.  The fields are checked
 * by the same rules first. */
int manifest_build(struct buf *out, const struct manifest *m,
		   const uint8_t owner_seed[PRIM_SEED], struct err *e);
void manifest_free(struct manifest *m);

/* A package name, normalised: lowercase, runs of -_. become one "-".  `out`
 * gets it; -1 if it is none. */
int manifest_package(struct buf *out, struct bytes name);
/* Whether the allow-list has this (not yet normalised) name. */
bool manifest_has_package(const struct manifest *m, struct bytes name);

#endif
