/* SPDX-License-Identifier: MIT */
#include "airloxfs/fs_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "airloxfs/store.h"

static size_t add_entry(fuse_req_t req, char *at, size_t room,
			struct node *n, bool plus)
{
	struct fuse_entry_param e;
	if (!plus) {
		struct stat st = { .st_ino = n->ino, .st_mode = n->mode };
		return fuse_add_direntry(req, at, room, n->name, &st,
					 (off_t)n->cookie);
	}
	fs_fill_entry(n, &e);
	size_t used = fuse_add_direntry_plus(req, at, room, n->name, &e,
					     (off_t)n->cookie);
	if (used <= room)
		n->lookups++;
	return used;
}

/* Cookies are the children's own numbers: an entry that was there before and
 * is there after is given exactly once, whatever comes and goes meanwhile. */
static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
		     bool plus)
{
	struct mount *m = mount_of(req);
	char *to = malloc(n);
	size_t used = 0;
	if (!to) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	mount_lock(m);
	const struct node *dir = fs_node_at(m, ino);
	uint64_t after = (uint64_t)off;
	struct node *k;
	while (dir && dir->dir && (k = tree_next(dir, after))) {
		size_t more = add_entry(req, to + used, n - used, k, plus);
		if (more > n - used)
			break;
		used += more;
		after = k->cookie;
	}
	mount_unlock(m);
	fuse_reply_buf(req, to, used);
	free(to);
}

void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
		   struct fuse_file_info *fi)
{
	(void)fi;
	read_dir(req, ino, n, off, false);
}

void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t n,
		       off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	read_dir(req, ino, n, off, true);
}

/* The helper's create (or mkdir) of a name that waits: the entry appears. */
static struct node *reveal(struct mount *m, struct node *dir, const char *name)
{
	mount_lock(m);
	struct node *n = tree_find(dir, name);
	if (n && n->hidden)
		n->hidden = false;
	else
		n = NULL;
	mount_unlock(m);
	if (n && n->ops && n->ops->shown)
		n->ops->shown(m, n);
	return n;
}

void fs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		  mode_t mode, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct node *dir = fs_get(req, parent), *n = NULL;
	if (!dir)
		return;
	bool ours = from_helper(req);
	int err = EPERM;
	if (ours) {
		n = reveal(m, dir, name);
		err = n ? 0 : ENOENT;
	} else if (m->stopping) {
		err = ESHUTDOWN;
	} else if (dir->ops && dir->ops->create) {
		err = dir->ops->create(m, dir, name, mode, fi->flags, &n);
	}
	struct handle *h = err ? NULL : fs_handle_new(req, n, fi->flags);
	if (!err && !h)
		err = ENOMEM;
	if (!err && !ours && n->ops->open)
		err = n->ops->open(m, h);
	if (err) {
		if (h)
			fs_handle_free(m, h);
		fuse_reply_err(req, err);
		return;
	}
	struct fuse_entry_param e;
	mount_lock(m);
	fs_fill_entry(n, &e);
	n->lookups++;
	mount_unlock(m);
	fi->fh = (uintptr_t)h;
	fi->direct_io = h->direct;
	fi->keep_cache = h->keep;
	fi->noflush = ours;	/* watchers wake a round trip sooner */
	if (fuse_reply_create(req, &e, fi) == 0)
		return;
	if (!ours && n->ops->release)
		n->ops->release(m, h);
	mount_lock(m);
	n->lookups--;
	mount_unlock(m);
	fs_handle_free(m, h);
}

void fs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode)
{
	struct mount *m = mount_of(req);
	struct node *dir = fs_get(req, parent), *n = NULL;
	if (!dir)
		return;
	int err = EPERM;
	if (from_helper(req)) {
		n = reveal(m, dir, name);
		err = n ? 0 : ENOENT;
	} else if (dir->ops && dir->ops->mkdir) {
		err = dir->ops->mkdir(m, dir, name, mode, &n);
	}
	if (err)
		fuse_reply_err(req, err);
	else
		fs_reply_entry(req, n);
}

static struct node *child(struct mount *m, struct node *dir, const char *name)
{
	mount_lock(m);
	struct node *n = dir->dir ? tree_find(dir, name) : NULL;
	if (n && n->hidden)
		n = NULL;
	if (n)
		n->opens++;	/* held through the handler */
	mount_unlock(m);
	return n;
}

static int take_away(struct mount *m, struct node *n)
{
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
	return 0;
}

static void remove_entry(fuse_req_t req, fuse_ino_t parent, const char *name,
			 bool is_dir)
{
	struct mount *m = mount_of(req);
	struct node *dir = fs_get(req, parent);
	if (!dir)
		return;
	struct node *n = child(m, dir, name);
	int err = EPERM;
	if (!n)
		err = ENOENT;
	else if (tree_is_dir(n) != is_dir)
		err = is_dir ? ENOTDIR : EISDIR;
	else if (from_helper(req))
		err = n->ops && n->ops->expire ? n->ops->expire(m, n)
					       : take_away(m, n);
	else if (is_dir && dir->ops && dir->ops->rmdir)
		err = dir->ops->rmdir(m, dir, n);
	else if (!is_dir && dir->ops && dir->ops->unlink)
		err = dir->ops->unlink(m, dir, n);
	if (n)
		mount_drop(m, n);
	fuse_reply_err(req, err);
}

void fs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, false);
}

void fs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, true);
}

void fs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		  fuse_ino_t to, const char *to_name, unsigned flags)
{
	struct mount *m = mount_of(req);
	struct node *dir = fs_get(req, parent);
	if (!dir)
		return;
	struct node *dir2 = fs_get(req, to);
	if (!dir2)
		return;
	struct node *n = child(m, dir, name);
	int err = EPERM;
	if (!n)
		err = ENOENT;
	else if (dir->ops && dir->ops->rename && dir2->ops == dir->ops)
		err = dir->ops->rename(m, n, dir2, to_name, flags,
				       tid_of(req));
	if (n)
		mount_drop(m, n);
	fuse_reply_err(req, err);
}

void fs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
		const char *name)
{
	(void)ino, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

void fs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
		   const char *name)
{
	(void)target, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

void fs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode, dev_t dev)
{
	(void)parent, (void)name, (void)mode, (void)dev;
	fuse_reply_err(req, EPERM);
}

void fs_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	(void)ino;
	struct statvfs st = { .f_bsize = 4096, .f_frsize = 4096,
			      .f_namemax = 255 };
	store_statfs(mount_of(req)->store, &st);
	fuse_reply_statfs(req, &st);
}
