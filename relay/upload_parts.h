/* SPDX-License-Identifier: MIT
 *
 * upload's inside: what upload.c (bytes coming in) and upload_end.c (what
 * becomes of them) share.  Nobody else includes it. */
#ifndef RELAY_UPLOAD_PARTS_H
#define RELAY_UPLOAD_PARTS_H

#include "relay/aim.h"
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
	uint64_t sent;			/* to the disk: its sync has less to
					 * wait for */
	bool in_blob;
	struct hash *hash;		/* of a large one */
	struct buf small;
	struct blob blob;
	int fd;
};

#endif
