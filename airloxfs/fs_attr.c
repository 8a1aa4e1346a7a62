/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/fs_private.h"

#define FS_LONG_S 86400.0	/* entries change only through the kernel */
#define FS_XATTR_MAX 65536

/* --- attributes and entries --- */

static void fill_stat(const struct node *n, struct stat *st)
{
	*st = (struct stat){
		.st_ino = n->ino, .st_mode = n->mode, .st_uid = n->uid,
		.st_gid = n->gid, .st_size = (off_t)n->size,
		.st_nlink = tree_is_dir(n) ? 2 : 1, .st_mtim = n->mtime,
		.st_ctim = n->mtime, .st_atim = n->mtime,
		.st_blksize = 65536,
		.st_blocks = (blkcnt_t)((n->size + 511) / 512),
	};
}

static double attr_timeout(const struct node *n)
{
	return n->ops ? n->ops->timeout_s : FS_LONG_S;
}

void fs_fill_entry(const struct node *n, struct fuse_entry_param *e)
{
	*e = (struct fuse_entry_param){
		.ino = n->ino, .generation = 1, .entry_timeout = FS_LONG_S,
		.attr_timeout = attr_timeout(n),
	};
	fill_stat(n, &e->attr);
}

struct node *fs_node_at(struct mount *m, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? m->root : tree_by_ino(m->tree, ino);
}

/* Answers with an entry, and counts the kernel's reference. */
void fs_reply_entry(fuse_req_t req, struct node *n)
{
	struct mount *m = mount_of(req);
	struct fuse_entry_param e;
	mount_lock(m);
	fs_fill_entry(n, &e);
	n->lookups++;
	mount_unlock(m);
	if (fuse_reply_entry(req, &e) < 0) {
		mount_lock(m);
		n->lookups--;
		tree_settle(m->tree, n);
		mount_unlock(m);
	}
}

void fs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mount *m = mount_of(req);
	mount_lock(m);
	struct node *dir = fs_node_at(m, parent);
	struct node *n = dir && dir->dir ? tree_find(dir, name) : NULL;
	if (n && n->hidden)
		n = NULL;
	if (!n) {
		mount_unlock(m);
		fuse_reply_err(req, ENOENT);
		return;
	}
	n->opens++;
	mount_unlock(m);
	fs_reply_entry(req, n);
	mount_drop(m, n);
}

static void forget_one(struct mount *m, fuse_ino_t ino, uint64_t count)
{
	struct node *n = fs_node_at(m, ino);
	if (!n)
		return;
	n->lookups -= count < n->lookups ? count : n->lookups;
	tree_settle(m->tree, n);
}

void fs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	struct mount *m = mount_of(req);
	mount_lock(m);
	forget_one(m, ino, count);
	mount_unlock(m);
	fuse_reply_none(req);
}

void fs_op_forget_multi(fuse_req_t req, size_t count,
			struct fuse_forget_data *v)
{
	struct mount *m = mount_of(req);
	mount_lock(m);
	for (size_t i = 0; i < count; i++)
		forget_one(m, v[i].ino, v[i].nlookup);
	mount_unlock(m);
	fuse_reply_none(req);
}

/* The node behind an inode number, held against being freed by the request
 * itself: the kernel holds a lookup reference for as long as it asks. */
struct node *fs_get(fuse_req_t req, fuse_ino_t ino)
{
	struct mount *m = mount_of(req);
	mount_lock(m);
	struct node *n = fs_node_at(m, ino);
	mount_unlock(m);
	if (!n)
		fuse_reply_err(req, ESTALE);
	return n;
}

static void reply_attr(fuse_req_t req, const struct node *n)
{
	struct mount *m = mount_of(req);
	struct stat st;
	bool made = n->ops && n->ops->size;
	uint64_t size = made ? n->ops->size(m, n) : 0;
	mount_lock(m);
	fill_stat(n, &st);
	mount_unlock(m);
	if (made)
		st.st_size = (off_t)size;
	fuse_reply_attr(req, &st, attr_timeout(n));
}

void fs_op_getattr(fuse_req_t req, fuse_ino_t ino,
		   struct fuse_file_info *fi)
{
	(void)fi;
	const struct node *n = fs_get(req, ino);
	if (n)
		reply_attr(req, n);
}

int fs_truncate_nothing(struct mount *m, struct node *n, uint64_t size)
{
	(void)m, (void)n, (void)size;
	return 0;
}

static void set_times(struct node *n, const struct stat *st, int to_set)
{
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		clock_gettime(CLOCK_REALTIME, &n->mtime);
	else if (to_set & FUSE_SET_ATTR_MTIME)
		n->mtime = st->st_mtim;
}

void fs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st,
		   int to_set, struct fuse_file_info *fi)
{
	(void)fi;
	struct mount *m = mount_of(req);
	struct node *n = fs_get(req, ino);
	if (!n)
		return;
	bool ours = from_helper(req);
	const struct node_ops *ops = n->ops;
	int err = 0;
	if (to_set & FUSE_SET_ATTR_SIZE)
		err = ops && ops->truncate
			? ops->truncate(m, n, (uint64_t)st->st_size) : EPERM;
	else if (!ours && (!ops || !ops->changed))
		err = EPERM;
	if (err) {
		fuse_reply_err(req, err);
		return;
	}
	mount_lock(m);
	if (to_set & FUSE_SET_ATTR_MODE && !ours)
		n->mode = (n->mode & S_IFMT) | (st->st_mode & 07777);
	if (to_set & FUSE_SET_ATTR_UID)
		n->uid = st->st_uid;
	if (to_set & FUSE_SET_ATTR_GID)
		n->gid = st->st_gid;
	set_times(n, st, to_set);
	mount_unlock(m);
	if (!ours && ops && ops->changed)
		ops->changed(m, n);
	reply_attr(req, n);
}

void fs_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct mount *m = mount_of(req);
	const struct node *n = fs_get(req, ino);
	if (!n)
		return;
	mount_lock(m);
	char *target = n->target ? strdup(n->target) : NULL;
	mount_unlock(m);
	if (target)
		fuse_reply_readlink(req, target);
	else
		fuse_reply_err(req, EINVAL);
	free(target);
}

/* --- extended attributes --- */

static void reply_sized(fuse_req_t req, const struct buf *b, size_t room)
{
	if (b->failed)
		fuse_reply_err(req, ENOMEM);
	else if (room == 0)
		fuse_reply_xattr(req, b->len);
	else if (b->len > room)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, (const char *)b->data, b->len);
}

void fs_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		    size_t room)
{
	struct node *n = fs_get(req, ino);
	if (!n)
		return;
	cleanup_buf struct buf b = { 0 };
	int err = n->ops && n->ops->getxattr
		? n->ops->getxattr(mount_of(req), n, name, &b) : ENODATA;
	if (err)
		fuse_reply_err(req, err);
	else
		reply_sized(req, &b, room);
}

void fs_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t room)
{
	struct node *n = fs_get(req, ino);
	if (!n)
		return;
	cleanup_buf struct buf b = { 0 };
	if (n->ops && n->ops->listxattr)
		n->ops->listxattr(mount_of(req), n, &b);
	reply_sized(req, &b, room);
}

void fs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		    const char *value, size_t n, int flags)
{
	struct node *at = fs_get(req, ino);
	if (!at)
		return;
	struct bytes v = { (const uint8_t *)value, n };
	int err = EOPNOTSUPP;
	if (n > FS_XATTR_MAX)
		err = E2BIG;
	else if (at->ops && at->ops->setxattr)
		err = at->ops->setxattr(mount_of(req), at, name, v, flags);
	fuse_reply_err(req, err);
}

void fs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct node *n = fs_get(req, ino);
	if (!n)
		return;
	fuse_reply_err(req, n->ops && n->ops->removexattr
			? n->ops->removexattr(mount_of(req), n, name)
			: EOPNOTSUPP);
}
