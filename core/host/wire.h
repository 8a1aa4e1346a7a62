/* SPDX-License-Identifier: MIT
 *
 * wire: one function for an endpoint of the relay (docs/PROTOCOL.md, section
 * 7), but for jobs and runners, which have a room of their own (wire_job.h).
 * A struct wire belongs to one thread, as its struct rest does. */
#ifndef AIRLOX_HOST_WIRE_H
#define AIRLOX_HOST_WIRE_H

#include "core/host/rest.h"
#include "core/item.h"
#include "core/sse.h"

struct wire;

/* token NULL: none yet. */
struct wire *wire_new(const char *base_url, const char *session_id,
		      const char *token, struct clock *clock, struct err *e);
void wire_free(struct wire *w);
int wire_set_token(struct wire *w, const char *token, struct err *e);
/* How long a call may wait: for a connection, and without a byte moving.
 * 0 keeps the default (10 s, 30 s). */
void wire_set_patience(struct wire *w, int connect_ms, int stall_ms);
/* From now on an item's frame follows its request's head, as a large one
 * always does, instead of leaving with it: where the network fails, whoever
 * answers a connection and drops it has had nothing of the item. */
void wire_set_apart(struct wire *w, bool apart);
/* Ends each later call after so long, 0 never. */
void wire_set_total(struct wire *w, int total_ms);
void wire_abort(struct wire *w);	/* any thread; sticky, see rest_abort */
void wire_resume(struct wire *w);
struct rest *wire_rest(struct wire *w);
/* "/v1/sessions/{sid}" tail */
void wire_path(const struct wire *w, struct buf *out, const char *tail);
/* Any call below the session's path: what the functions here are made of. */
int wire_call(struct wire *w, struct rest_call *c, const char *tail,
	      struct err *e);
/* After a failed call: the relay's "error" word ("" if none), and the
 * milliseconds it asked us to wait (-1 if it did not). */
const char *wire_word(const struct wire *w);
int64_t wire_retry_after_ms(const struct wire *w);

int wire_health(struct wire *w, struct err *e);
int wire_create(struct wire *w, struct bytes signed_manifest, struct err *e);
int wire_manifest(struct wire *w, struct buf *signed_manifest, struct err *e);
/* The token into a buffer, wiped by whoever owns it. */
int wire_join(struct wire *w, struct bytes signed_join,
	      char token[REST_TOKEN_MAX + 1], struct err *e);

/* Blocks, calling `on` for each event and comment, until the relay ends the
 * stream (0), `on` says -1, the connection is lost or silent for 45 s, or
 * wire_abort.  after < 0: from the beginning.  *delivered counts what came.
 * 1: nothing of the stream came through, as if a proxy kept it back, and the
 * relay was asked for a list instead. */
int wire_stream(struct wire *w, int64_t after,
		int (*on)(void *arg, const struct event *ev, struct err *e),
		void *arg, uint64_t *delivered, struct err *e);

/* The same for any stream below the session's path. */
int wire_listen(struct wire *w, const char *tail, int64_t after,
		int (*on)(void *arg, const struct event *ev, struct err *e),
		void *arg, uint64_t *delivered, struct err *e);

/* One GET of the events after `after`, at most 64 MiB of them: for commands
 * that want what is there now and go.  *count is how many came; 0 is the
 * end. */
int wire_events(struct wire *w, int64_t after,
		int (*on)(void *arg, const struct event *ev, struct err *e),
		void *arg, uint64_t *count, struct err *e);

/* Posts u32 length, envelope, blob (blob_n bytes of fd from offset 0).
 * wire_post_item gives the seq; `moved` (may be NULL) hears of progress.
 * wire_post_frame is the same for any path and extra headers. */
struct wire_upload {
	struct bytes envelope;
	int blob_fd;
	uint64_t blob_n;
	void (*moved)(void *arg, uint64_t done);
	void *moved_arg;
};
int wire_post_item(struct wire *w, const struct wire_upload *u,
		   uint64_t *seq, struct err *e);
int wire_post_frame(struct wire *w, const char *tail,
		    const char *const header[2], const struct wire_upload *u,
		    struct buf *answer, struct err *e);
/* Exactly n bytes to `take` (-1 stops), else ERR_PROTO. */
int wire_blob_get(struct wire *w, const char *item_id, uint64_t n,
		  int (*take)(void *arg, const void *p, size_t n), void *arg,
		  struct err *e);
int wire_blob_put(struct wire *w, const char *item_id, int fd, uint64_t n,
		  struct err *e);
int wire_ack(struct wire *w, const char *item_id, struct err *e);
/* ERR_EXISTS where the blob is there (409 present). */
int wire_want(struct wire *w, const char *item_id, struct err *e);
int wire_revoke(struct wire *w, enum role role, struct err *e);
int wire_leave(struct wire *w, struct err *e);
int wire_close(struct wire *w, struct err *e);
int wire_audit(struct wire *w,
	       int (*take)(void *arg, const void *p, size_t n), void *arg,
	       struct err *e);

#endif
