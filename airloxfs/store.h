/* SPDX-License-Identifier: MIT
 *
 * store: the state directory of one mount (docs/DESIGN.md, state on disk):
 * lock, drafts, outbox, index, log, a sealed copy of the identity.  Nothing
 * in it is plaintext; all of it is ours alone, the shared cache is not here. */
#ifndef AIRLOXFS_STORE_H
#define AIRLOXFS_STORE_H

#include <sys/statvfs.h>

#include "core/host/cache.h"
#include "core/host/journal.h"
#include "core/host/vault.h"
#include "core/invite.h"

struct store {
	char *path;		/* .../<session id>/<role> */
	int dir, drafts;	/* descriptors */
	int lock_fd;
	uint8_t *session_key;	/* own, in locked memory: the invite it came
				 * from is wiped while the peer opens */
	char session_id[SESSION_ID + 1];
};

/* cache_root: --cache-dir or NULL.  Takes the lock for mount_path; ERR_LOCKED
 * where another mount of this session and role holds it: *where is then its
 * mount point (the caller frees) or NULL. */
struct store *store_open(const char *cache_root, const struct invite *v,
			 const char *mount_path, char **where, struct err *e);
void store_close(struct store *s);
/* Takes away what store_open made, if that is all there is. */
void store_discard_empty(struct store *s);

/* A vault in the drafts directory. */
struct vault *store_draft_new(struct store *s, struct err *e);
struct vault *store_draft_open(struct store *s, const char *id, struct err *e);
void store_draft_remove(struct store *s, const char *id);
/* Calls each for every draft on disk. */
void store_drafts(struct store *s, void (*each)(void *arg, const char *id),
		  void *arg);
/* The named vault beside it ("log", "events"); fresh: without its content. */
struct vault *store_vault(struct store *s, const char *name, bool fresh,
			  struct err *e);
struct journal *store_journal(struct store *s, const char *name,
			      int (*each)(void *arg, uint64_t at,
					  struct bytes record, struct err *e),
			      void *arg, uint64_t *cut, struct err *e);

/* A last resort against a lost identity. */
int store_save_identity(struct store *s, const struct identity *id,
			struct err *e);
int store_load_identity(void *store, struct identity *id); /* 0, 1: none */
/* The signed manifest, which is no secret, once more where no sweep goes. */
int store_save_manifest(struct store *s, struct bytes signed_manifest,
			struct err *e);
int store_load_manifest(void *store, struct buf *out);	/* 0, 1: none */

/* Free space where drafts go. */
void store_statfs(struct store *s, struct statvfs *out);
/* Removes the whole state of the session and role (nothing unsent is left).
 * False: another role of the session has a state here still. */
bool store_remove(struct store *s);
/* Root of all states: ${XDG_STATE_HOME:-~/.local/state}/airloxfs, or below
 * the given cache root.  The caller frees. */
char *store_root(const char *cache_root, struct err *e);

#endif
