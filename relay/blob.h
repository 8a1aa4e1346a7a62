/* SPDX-License-Identifier: MIT
 *
 * blob: ciphertext too large for the log, one file each in DIR/blobs, named
 * by a random number that the log's record holds.  A file that no record
 * names is a left-over of a crash and goes at the next start.
 *
 *	file: "airlox-blob" version(1) 00000000, ciphertext
 *
 * Without a directory a blob is memory, held by its descriptor. */
#ifndef RELAY_BLOB_H
#define RELAY_BLOB_H

#include "core/buf.h"
#include "core/err.h"

#define BLOB_HEAD_N 16

struct blob {
	uint64_t name;		/* 0: none */
	int fd;			/* memory; -1 for a file */
};

struct blobs;

struct blobs *blobs_open(int dirfd, struct err *e);
void blobs_close(struct blobs *bs);
void blobs_look_only(struct blobs *bs);	/* nothing is removed */
int blob_check_head(int fd);		/* 0, or -1: another version's */
/* Removes each file that keep() does not know. */
int blobs_sweep(struct blobs *bs, bool (*keep)(void *arg, uint64_t name),
		void *arg, size_t *removed, struct err *e);

/* A new one, open for writing in *fd, its head written. */
int blob_create(struct blobs *bs, struct blob *b, int *fd, struct err *e);
/* Makes content and name durable, and closes fd.  Slow: on the pool. */
int blob_seal(struct blobs *bs, struct blob *b, int fd, struct err *e);
/* A descriptor to read it by (the caller's): ciphertext at BLOB_HEAD_N. */
int blob_open(struct blobs *bs, const struct blob *b, struct err *e);
bool blob_exists(struct blobs *bs, const struct blob *b);
void blob_remove(struct blobs *bs, struct blob *b);

#endif
