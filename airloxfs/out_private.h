/* SPDX-License-Identifier: MIT
 *
 * What the files of the out room share, and nobody else. */
#ifndef AIRLOXFS_OUT_PRIVATE_H
#define AIRLOXFS_OUT_PRIVATE_H

#include "airloxfs/out.h"
#include "airloxfs/store.h"

struct out {
	struct mount *m;
	size_t strange;		/* drafts on disk that could not be placed */
	_Atomic bool doubt;	/* the relay may have something that is called
				 * failed: withdrawn, or lost from the outbox */
};

/* out_attr.c; the encoding with f->lock */
void out_encode(struct mount *m, const struct outgoing *f, struct buf *out);
/* path below out/ into `path`, mode and mtime into the stat. */
int out_decode(struct outgoing *f, struct bytes record, struct buf *path,
	       struct stat *st, struct err *e);
void out_drop_xattrs(struct outgoing *f);
int out_getxattr(struct mount *m, struct node *n, const char *name,
		 struct buf *out);
void out_listxattr(struct mount *m, struct node *n, struct buf *out);
int out_setxattr(struct mount *m, struct node *n, const char *name,
		 struct bytes value, int flags);
int out_removexattr(struct mount *m, struct node *n, const char *name);

/* out_tree.c; the path below out/, with the mount's lock */
void out_path(const struct mount *m, const struct node *n, struct buf *out);
void out_file_free(struct node *n);
int out_expire(struct mount *m, struct node *n);

#endif
