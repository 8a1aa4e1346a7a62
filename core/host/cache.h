/* SPDX-License-Identifier: MIT
 *
 * cache: the directory we share with the published client
 * (docs/PROTOCOL.md, section 8): manifest.json, identity-<role>.json,
 * blobs/<item id>.  Ciphertext only; the session key is never here.  Both
 * programs read what the other wrote.  Its events.jsonl is not ours. */
#ifndef AIRLOX_HOST_CACHE_H
#define AIRLOX_HOST_CACHE_H

#include "core/host/file.h"
#include "core/host/rest.h"
#include "core/item.h"

struct cache {
	int dir, blobs;		/* descriptors */
	char *path;		/* of dir, for messages */
};

struct identity {
	uint8_t seed[PRIM_SEED];
	enum role role;
	char token[REST_TOKEN_MAX + 1];
	char *base_url;		/* the relay that issued the token; may be
				 * NULL in files of an early client */
};

/* root: --cache-dir, else AIRLOX_CACHE_DIR (main hands it over), else NULL for
 * ${XDG_CACHE_HOME:-~/.cache}/airlox.  Created where missing, 0700. */
struct cache *cache_open(const char *root, const char *session_id,
			 struct err *e);
void cache_free(struct cache *c);
char *cache_root(const char *root, struct err *e);	/* caller frees */

/* 0, 1 where there is none, -1. */
int cache_load_manifest(struct cache *c, struct buf *out, struct err *e);
int cache_save_manifest(struct cache *c, struct bytes signed_manifest,
			struct err *e);
int cache_load_identity(struct cache *c, enum role role, struct identity *id,
			struct err *e);
int cache_save_identity(struct cache *c, const struct identity *id,
			struct err *e);
void identity_free(struct identity *id);	/* wipes */

/* A blob's descriptor, read-only; ERR_NOT_FOUND. */
int cache_open_blob(struct cache *c, const char *item_id, struct err *e);
/* Writing one: stage gives a file without a name; keep gives it its name,
 * and a read-only view through the same descriptor; settle makes what was kept
 * durable, many at a time; drop removes a staged one.  None closes fd. */
struct cache_stage {
	int fd;
	char tmp[FILE_TMP];
};
int cache_stage(struct cache *c, struct cache_stage *s, struct err *e);
int cache_keep(struct cache *c, struct cache_stage *s, const char *item_id,
	       struct err *e);
int cache_settle(struct cache *c, const int *fds, size_t n, struct err *e);
void cache_drop(struct cache *c, struct cache_stage *s);
void cache_remove_blob(struct cache *c, const char *item_id);
uint64_t cache_used(const struct cache *c);	/* bytes of all blobs */
/* Removes blobs that `may` allows, the oldest first, until n bytes are gone;
 * how many were. */
uint64_t cache_make_room(struct cache *c, uint64_t n,
			 bool (*may)(void *arg, const char *item_id),
			 void *arg);

/* Of one role that is over: its identity goes.  False: another role of ours
 * has one here still. */
bool cache_leave(struct cache *c, enum role role);
/* The whole directory: the session is over. */
int cache_remove(const char *root, const char *session_id, struct err *e);
/* Directories of sessions whose manifest says they are over. */
void cache_sweep(const char *root, int64_t now_ms);

#endif
