/* SPDX-License-Identifier: MIT
 *
 * proof: whether a record is as it was signed, and by whom. */
#ifndef RUNNER_RECORD_PROOF_H
#define RUNNER_RECORD_PROOF_H

#include "runner/record/signer.h"

#define PROOF_FILE_MAX (256u << 20)	/* bytes of a record that is read */

struct proof {
	struct bytes run, lines;	/* as in the page; borrow the file */
	size_t parts;
	char fingerprint[SIGNER_FINGERPRINT];	/* of the key that signed */
	bool pinned;			/* it is the one that was asked for */
};

/* The whole file.  key: the fingerprint that must have signed, or NULL.
 * 0: unaltered since that signing.  -1: ERR_INVALID (no record, or cut),
 * ERR_SIGNATURE (altered: e names the part, or "the page around them"),
 * ERR_FORBIDDEN (signed by another key). */
int proof_check(struct proof *p, struct bytes file, const char *key,
		struct err *e);

#endif
