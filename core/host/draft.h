/* SPDX-License-Identifier: MIT
 *
 * draft: from a file, a text or an event to a sealed item.
 *
 * What travels as what: docs/DESIGN.md, out/.  A file's body comes through a
 * zip_source (read at random, several times), so that it can be a plain file,
 * an encrypted draft or bytes in memory; a 1 GiB body never sits in memory,
 * an image does while it is cleaned. */
#ifndef AIRLOX_HOST_DRAFT_H
#define AIRLOX_HOST_DRAFT_H

#include "core/content.h"
#include "core/host/peer.h"
#include "core/payload.h"

#define DRAFT_TEXT_MAX (4 * 1024 * 1024)
#define DRAFT_IMAGE_MAX (128 * 1024 * 1024)

struct draft {
	enum item_kind kind;
	enum item_type type;
	struct buf front;		/* frame, meta, a wrapping zip's head */
	struct zip_source body;		/* size 0: none */
	struct buf back;		/* a wrapping zip's tail */
	struct buf own;			/* a cleaned image; body reads it */
	struct bytes own_view;
	char *name;			/* as the receiver sees it; NULL: text */
	bool wrapped;
	struct item_ref *refs;		/* owned */
	size_t ref_n;
};

/* The whole payload is front || body || back. */
int64_t draft_size(const struct draft *d);

/* ERR_TYPE, ERR_ROLE, ERR_SIZE by the session; ERR_CONTENT not UTF-8. */
int draft_text(struct draft *d, const struct peer *p, struct bytes text,
	       struct err *e);
/* `name` decides (its last component only; checked, ERR_NAME).  `body` must
 * stay until the draft is sealed, and must not change.  `look` is how images
 * are cleaned and archives looked at: the child of core/host/check.h; NULL: in
 * this process. */
struct draft_look {
	int (*content)(enum item_type type, const char *mime,
		       const struct zip_source *body, struct err *e);
	int (*image)(const char *mime, const struct zip_source *body,
		     const struct zip_sink *sink, struct err *e);
};
int draft_file(struct draft *d, const struct peer *p, struct bytes name,
	       const struct zip_source *body, const struct draft_look *look,
	       struct err *e);
/* What draft_file would make of this name, without its bytes: TYPE_TEXT,
 * PY, MD, ZIP (also for a wrapped one) or IMAGE.  For ERR_TYPE at create. */
enum item_type draft_type(struct bytes name, bool *wrapped);
int draft_event(struct draft *d, const struct peer *p, enum event_kind event,
		const uint8_t *pub, const char *reason,
		const struct item_ref *job, struct err *e);
/* A payload built elsewhere (job, result): front is taken over. */
int draft_meta(struct draft *d, const struct peer *p, enum item_kind kind,
	       struct buf *front, struct err *e);
int draft_add_ref(struct draft *d, const struct item_ref *ref, struct err *e);
void draft_free(struct draft *d);

/* Seals into fd (from offset 0; an empty file, read-write, the caller's).
 * Not synced.  `out` is filled. */
int draft_seal(const struct draft *d, const struct peer *p, int fd,
	       struct sealed *out, struct err *e);

/* Seals into the cache (as the published client keeps what it sent), and posts
 * until the item is there or give_up_ms have passed.  *seq may be 0, see
 * peer_post.  out->blob_fd is closed by sealed_free. */
struct draft_post {
	struct wire *wire;
	int64_t give_up_ms;
	void (*moved)(void *arg, uint64_t done);	/* may be NULL */
	void *moved_arg;
};
int draft_send(const struct draft *d, struct peer *p,
	       const struct draft_post *how, struct sealed *out,
	       uint64_t *seq, struct err *e);

/* A source over a regular file's descriptor; arg is the int it points to. */
int draft_source_fd(struct zip_source *src, const int *fd, struct err *e);

#endif
