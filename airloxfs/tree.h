/* SPDX-License-Identifier: MIT
 *
 * tree: the table of files.  A node is a file or directory: name, mode and
 * the handlers that serve it (struct node_ops).  The tree holds no content.
 *
 * All of it is guarded by the mount's lock (mount.h): every function here is
 * called with it held. */
#ifndef AIRLOXFS_TREE_H
#define AIRLOXFS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct node_ops;

struct node {
	uint64_t ino;
	struct node *parent;	/* NULL: the root, or removed */
	char *name;
	mode_t mode;		/* type and permission bits */
	uid_t uid;
	gid_t gid;
	uint64_t size;
	struct timespec mtime;
	const struct node_ops *ops;
	void *data;		/* the ops' own */
	const char *target;	/* of a symlink; owned */

	bool hidden;		/* waits for the helper's create: nobody may
				 * see it before (see notify.h) */
	uint64_t cookie;	/* of its place in the parent, rising */
	uint64_t lookups;	/* the kernel's references */
	unsigned opens;		/* handles on it */
	struct dir *dir;	/* a directory's children */
	struct node *hash_next;	/* in the parent's table */
	struct node *ino_next;	/* in the tree's table */
};

struct tree;

struct tree *tree_new(void);	/* with a root, inode 1 */
void tree_free(struct tree *t);	/* calls ops->free of every node */
struct node *tree_root(struct tree *t);
struct node *tree_by_ino(struct tree *t, uint64_t ino);	/* or NULL */

/* A new child, or NULL where the name is taken or memory is out.  mode's type
 * decides whether it is a directory. */
struct node *tree_add(struct tree *t, struct node *dir, const char *name,
		      mode_t mode, const struct node_ops *ops, void *data);
/* By name; a hidden one too. */
struct node *tree_find(const struct node *dir, const char *name);
/* Takes it out of its directory; it lives on while the kernel or a handle
 * refers to it. */
void tree_unlink(struct tree *t, struct node *n);
/* Moves; the caller has unlinked what was at the target.  -1: memory. */
int tree_rename(struct tree *t, struct node *n, struct node *dir,
		const char *name);
/* Frees it where nothing refers to it any more. */
void tree_settle(struct tree *t, struct node *n);
/* Lets go of one that was held by a count in `opens`. */
void tree_drop(struct tree *t, struct node *n);

/* The first child whose cookie is greater than `after`, hidden ones left
 * out; NULL at the end.  Stable while others come and go. */
struct node *tree_next(const struct node *dir, uint64_t after);
struct node *tree_last(const struct node *dir);	/* a hidden one too */
size_t tree_count(const struct node *dir);
bool tree_is_dir(const struct node *n);

#endif
