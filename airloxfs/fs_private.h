/* SPDX-License-Identifier: MIT
 *
 * fs, inside: the session (fs.c), what the kernel asks about nodes (fs_attr.c),
 * open files (fs_file.c) and directories (fs_dir.c).  Only these four and
 * notify include libfuse. */
#ifndef AIRLOXFS_FS_PRIVATE_H
#define AIRLOXFS_FS_PRIVATE_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "airloxfs/mount.h"
#include "airloxfs/notify.h"

static inline struct mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}
static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}
static inline pid_t tid_of(fuse_req_t req) { return fuse_req_ctx(req)->pid; }
static inline bool from_helper(fuse_req_t req)
{
	return notify_is_helper(mount_of(req)->notify, tid_of(req));
}

/* With the lock held. */
void fs_fill_entry(const struct node *n, struct fuse_entry_param *e);
/* With the lock held; NULL: not there. */
struct node *fs_node_at(struct mount *m, fuse_ino_t ino);
/* Answers with an entry, and counts the kernel's reference. */
void fs_reply_entry(fuse_req_t req, struct node *n);
/* The node behind an inode number (the kernel holds a lookup reference for as
 * long as it asks), or NULL, and ESTALE was answered. */
struct node *fs_get(fuse_req_t req, fuse_ino_t ino);
void fs_handle_free(struct mount *m, struct handle *h);
/* Holds the node; NULL: memory. */
struct handle *fs_handle_new(fuse_req_t req, struct node *n, int flags);

/* fs_attr.c */
void fs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count);
void fs_op_forget_multi(fuse_req_t req, size_t count,
			struct fuse_forget_data *v);
void fs_op_getattr(fuse_req_t req, fuse_ino_t ino,
		   struct fuse_file_info *fi);
void fs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st,
		   int to_set, struct fuse_file_info *fi);
void fs_op_readlink(fuse_req_t req, fuse_ino_t ino);
void fs_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		    size_t room);
void fs_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t room);
void fs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		    const char *value, size_t n, int flags);
void fs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* fs_file.c */
void fs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
		struct fuse_file_info *fi);
void fs_op_write(fuse_req_t req, fuse_ino_t ino, const char *p, size_t n,
		 off_t off, struct fuse_file_info *fi);
void fs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
		 struct fuse_file_info *fi);
void fs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync,
		    struct fuse_file_info *fi);
void fs_op_release(fuse_req_t req, fuse_ino_t ino,
		   struct fuse_file_info *fi);
void fs_op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		struct fuse_pollhandle *ph);
void fs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off,
		     off_t length, struct fuse_file_info *fi);

/* fs_dir.c */
void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
		   struct fuse_file_info *fi);
void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t n,
		       off_t off, struct fuse_file_info *fi);
void fs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		  mode_t mode, struct fuse_file_info *fi);
void fs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode);
void fs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		  fuse_ino_t to, const char *to_name, unsigned flags);
void fs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
		const char *name);
void fs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
		   const char *name);
void fs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode, dev_t dev);
void fs_op_statfs(fuse_req_t req, fuse_ino_t ino);

#endif
