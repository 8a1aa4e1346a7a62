/* SPDX-License-Identifier: MIT
 *
 * opened: a received blob, verified to the end and readable by range.
 *
 * opened_new reads the blob once: length, signature (unless peer_fetch just
 * verified it), the AEAD's tag, the payload's form, header policy, content,
 * in the protocol's order.  The plaintext is not kept: opened_read decrypts
 * again what it is asked for.  A file that somebody changed on the disk after
 * that gives wrong bytes to opened_read and ERR_SIGNATURE to opened_copy; the
 * mount holds its own chunk tags against it. */
#ifndef AIRLOX_HOST_OPENED_H
#define AIRLOX_HOST_OPENED_H

#include "core/aead.h"
#include "core/content.h"
#include "core/host/peer.h"
#include "core/payload.h"

struct opened {
	struct payload payload;		/* of u.file: mime, name */
	struct buf meta;		/* what payload borrows */
	uint64_t body_off;		/* of the body, within the plaintext */
	uint64_t body_n;
	struct zip_source body;		/* over the plaintext body */
	struct item_ref ref;

	int fd;				/* borrowed */
	uint8_t key[AEAD_KEY];
	uint8_t nonce[12];
};

/* `content` looks at the body: check_content (core/host/check.h), or NULL for
 * content_check in this process.  cipher (may be NULL) sees every byte of the
 * blob in order, for an index. */
/* More of it, for who wants to see it pass. */
struct opened_tap {
	const struct zip_sink *cipher;	/* each byte of the blob, in order */
	const struct zip_sink *plain;	/* each of the plaintext: nothing of it
					 * is to be believed before opened_tapped
					 * has returned */
	/* A blob that is still coming in, its length and signature verified by
	 * another: waits until its first n bytes are there, with n 0 until they
	 * are verified (and in->ref is set).  -1: they will not be. */
	int (*await)(void *arg, uint64_t n, struct err *e);
	void *await_arg;
};
typedef int opened_content_fn(enum item_type type, const char *mime,
			      const struct zip_source *body, struct err *e);
struct opened *opened_new(const struct peer *p, const struct incoming *in,
			  int fd, opened_content_fn *content,
			  const struct zip_sink *cipher, struct err *e);
struct opened *opened_tapped(const struct peer *p, const struct incoming *in,
			     int fd, opened_content_fn *content,
			     const struct opened_tap *tap, struct err *e);
int opened_read(struct opened *o, uint64_t off, void *to, size_t n,
		struct err *e);
/* The body to fd, verified once more while it is copied. */
int opened_copy(struct opened *o, const struct incoming *in, int to_fd,
		struct err *e);
void opened_free(struct opened *o);	/* wipes; fd stays open */

#endif
