/* SPDX-License-Identifier: MIT
 *
 * peer: a participant's side of one session: the brain that mount and CLI
 * share.  It believes the manifest, certificates and signatures, and of the
 * relay's word only what those cannot say.
 *
 * Threads: `people`, `seq` and `state` belong to the thread that calls
 * peer_apply.  All else is fixed once peer_open has returned, so peer_wire,
 * peer_fetch, peer_post and the rooms `draft` and `opened` may be used from
 * any thread, each with a struct wire of its own. */
#ifndef AIRLOX_HOST_PEER_H
#define AIRLOX_HOST_PEER_H

#include "core/host/cache.h"
#include "core/host/people.h"
#include "core/host/wire.h"
#include "core/invite.h"

struct ids;

enum peer_state {
	PEER_ONLINE,	/* the relay answered when it was last asked */
	PEER_OFFLINE,	/* it did not; the cached identity stands */
	PEER_CLOSED	/* over for us: closed, expired, revoked, 401 */
};

struct peer_options {
	const char *cache_dir;	/* NULL: the default, see cache_open */
	const char *name;	/* NULL: the role's word */
	const char *description; /* NULL: none */
	enum client_kind kind;
	const struct runner_info *runner; /* kind KIND_RUNNER, else NULL */
	int connect_ms;		/* patience at opening; 0: 10 s */
	/* A last resort against a lost identity: called where the cache has
	 * none; fills id and returns 0, or 1.  May be NULL. */
	int (*restore)(void *arg, struct identity *id);
	/* The same for the manifest (verified like any other): a session that
	 * has ended is swept from the cache, what was unsent is not. */
	int (*restore_manifest)(void *arg, struct buf *signed_manifest);
	void *restore_arg;
};

struct peer {
	struct invite invite;		/* ours; holds the session key */
	struct manifest manifest;
	struct buf signed_manifest;
	struct cache *cache;
	struct identity identity;
	uint8_t pub[PRIM_PUB];		/* of identity.seed */
	struct clock clock;
	bool joined_now;		/* identity was made by this opening */

	_Atomic enum peer_state state;	/* read by any thread */
	struct err why;			/* offline or closed: because */
	struct people people;
	int64_t seq;			/* newest event applied, -1 at first */
	struct ids *ids;		/* private: items seen */
};

/* Loads or fetches the manifest and verifies it (the role key must match; one
 * that differs from the cached one is refused: ERR_CONFLICT), loads or makes
 * the identity, joins.  Takes over *v (emptied), also on failure.  With a
 * cached identity no relay is needed: state says PEER_OFFLINE, or PEER_CLOSED
 * where it answered 404 or 410.  A saved token goes only to the relay that
 * issued it. */
struct peer *peer_open(struct invite *v, const struct peer_options *o,
		       struct err *e);
void peer_free(struct peer *p);		/* wipes */

/* A connection of this peer for one thread. */
struct wire *peer_wire(const struct peer *p, struct err *e);

/* Whether the session lets this role post this: ERR_ROLE, ERR_TYPE, ERR_TIME,
 * ERR_GONE. */
int peer_may_post(const struct peer *p, enum item_kind kind,
		  enum item_type type, struct err *e);

/* --- what comes in --- */

/* An item whose envelope and author were verified, but not yet its blob. */
struct incoming {
	uint64_t seq;
	struct buf raw;		/* the envelope as posted */
	struct envelope env;	/* borrows raw */
	struct cert author;
	char *author_shown;
	bool mine;
	bool verified;		/* blob length and signature: peer_fetch */
	struct item_ref ref;	/* id; sha256 once verified */
};
void incoming_free(struct incoming *in);

enum news_kind {
	NEWS_NOTHING,	/* a keepalive, an old or unknown event */
	NEWS_LIVE,	/* without a seq: shown, never logged */
	NEWS_PARTICIPANT,
	NEWS_ITEM,
	NEWS_REJECTED,	/* a participant or an item: why */
	NEWS_EVICTED, NEWS_WANT, NEWS_RESEEDED,	/* id; want: pub */
	NEWS_LEFT,	/* who */
	NEWS_REVOKED,	/* role; us: state is PEER_CLOSED */
	NEWS_JOB,	/* id, word (state), has_pub, pub (runner), reason */
	NEWS_CLOSED,	/* reason */
	NEWS_BEHIND	/* the relay's seq jumped or went back; ignored: why */
};

struct news {
	enum news_kind kind;
	uint64_t seq;
	uint64_t gap;			/* seqs that were skipped before it */
	struct participant *who;	/* PARTICIPANT, LEFT, ITEM's author,
					 * WANT's asker; may be NULL */
	struct incoming *item;		/* ITEM: the caller's to free */
	char id[ITEM_ID + 1];		/* ITEM, REJECTED item (or ""), ... */
	enum role role;			/* REVOKED */
	char word[24];
	bool has_pub;
	uint8_t pub[PRIM_PUB];
	char *reason;			/* JOB, CLOSED: a peer's text or NULL */
	struct err why;			/* REJECTED, BEHIND */
};

/* Applies an event: -1 only when out of memory.  Sequence numbers go forward
 * only; a jump of more than 10,000 is ignored.  news_free when done. */
int peer_apply(struct peer *p, const struct event *ev, struct news *n,
	       struct err *e);
void news_free(struct news *n);

/* For a journal: an item that was applied in an earlier life.  False if it
 * was known.  (An id that comes twice is rejected.) */
bool peer_seen(struct peer *p, const char *item_id);

/* Tells the peer what a failed call means for the session: 401, 404 and 410
 * of the session (not of a blob) close it, ERR_NET makes it offline.  True if
 * now closed. */
bool peer_heard(struct peer *p, const struct err *e);

/* The blob, from the cache or else from the relay into it; returned is its
 * descriptor (read-only).  Length and signature are verified while it streams
 * in; it is durable, and may be acknowledged, once the caller has called
 * cache_settle (one for many).  ERR_NOT_FOUND: evicted (404 or 410); ERR_INVALID, ERR_SIGNATURE: reject the item.  A cached
 * blob that is damaged is removed and fetched again.  `moved` may be NULL. */
int peer_fetch(struct peer *p, struct wire *w, struct incoming *in,
	       void (*moved)(void *arg, uint64_t done), void *arg,
	       struct err *e);
/* The same, watched: `begun` is told the descriptor that it streams into, whose
 * first `done` bytes are there when `moved` says so.  Neither is called where
 * the cache has it.  Each may be NULL. */
struct peer_watch {
	void (*begun)(void *arg, int fd);
	void (*moved)(void *arg, uint64_t done);
	void *arg;
};
int peer_fetch_watched(struct peer *p, struct wire *w, struct incoming *in,
		       const struct peer_watch *watch, struct err *e);
/* Wraps ack: 404 and 410 are fine. */
int peer_ack(struct wire *w, const char *item_id, struct err *e);

/* --- what goes out --- */

/* An item that is ready: id, bytes and signature are fixed.  The blob is the
 * whole of blob_fd, which sealed_free closes where owns_fd is set. */
struct sealed {
	char id[ITEM_ID + 1];
	struct buf envelope;
	int blob_fd;
	bool owns_fd;
	uint64_t blob_n;
	struct item_ref ref;
	enum item_kind kind;
	enum item_type type;
};
void sealed_free(struct sealed *s);

/* Posts once.  *seq 0 where the relay had it already from us (ERR_DUPLICATE
 * counts as success).  ERR_NET, ERR_RATE and ERR_FULL may be retried. */
int peer_post(struct wire *w, const struct sealed *s, uint64_t *seq,
	      void (*moved)(void *arg, uint64_t done), void *arg,
	      struct err *e);
bool peer_may_retry(const struct err *e);
/* How long to wait before attempt `n` (0 the first retry): 0-250 ms, doubling
 * to 30 s, with jitter; never below what the relay asked. */
int64_t peer_delay_ms(unsigned n, int64_t retry_after_ms);
#endif
