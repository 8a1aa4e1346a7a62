/* SPDX-License-Identifier: MIT
 *
 * invite: the link that admits (docs/PROTOCOL.md, section 4).  It is a
 * secret: no error quotes it. */
#ifndef AIRLOX_INVITE_H
#define AIRLOX_INVITE_H

#include "core/session.h"

struct invite {
	char *base_url;			/* as written, no trailing "/" */
	char session_id[SESSION_ID + 1];
	enum role role;
	struct session_keys keys;	/* for an owner: derived */
};

int invite_parse(struct invite *v, struct bytes url, struct err *e);
/* The link for `role` of the session whose owner seed is given. */
int invite_build(struct buf *out, const char *base_url,
		 const uint8_t owner_seed[PRIM_SEED], enum role role,
		 struct err *e);
void invite_free(struct invite *v);	/* wipes */

/* A relay's base URL alone: https, or http to this machine; the same rules.
 * `out` gets it without trailing slashes. */
int invite_base(struct buf *out, struct bytes url, struct err *e);

/* Hosts to which http is allowed too: exact names with commas between, as
 * whoever runs the program says; NULL: none but this machine.  For a main,
 * before there are threads; the text must stay. */
void invite_allow_plain(const char *hosts);
/* Whether this base is one of those. */
bool invite_is_plain(const char *base_url);

#endif
