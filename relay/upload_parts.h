/* SPDX-License-Identifier: MIT
 *
 * upload's inside: what upload.c (bytes coming in) and upload_end.c (what
 * becomes of them) share.  Nobody else includes it. */
#ifndef RELAY_UPLOAD_PARTS_H
#define RELAY_UPLOAD_PARTS_H

#include "relay/aim.h"
#include "relay/digest.h"
#include "relay/route.h"

struct upload {
	bool put;
	struct aim *target;		/* of a job */
	struct buf head;		/* length and envelope */
	struct envelope env;
	bool has_env;
	char id[ITEM_ID + 1];
	uint8_t want[HASH_SIZE];	/* PUT: the signed hash */
	uint64_t expected, have;
	bool in_blob;
	struct buf small;
	/* or a large one; take_blob writes to fd, which is the digest's */
	struct blob blob;
	struct digest *digest;
	int fd;
	uint64_t booked;		/* in session.coming */
};

/* It is not on its way any more. */
void upload_unbook(struct conn *c);

#endif
