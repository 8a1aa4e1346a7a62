/* SPDX-License-Identifier: MIT */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "airloxfs/mount.h"
#include "airloxfs/notify.h"
#include "airloxfs/store.h"

#define FS_THREADS 10		/* at most; a rename that commits holds one.
				 * Idle ones stay: making one for each burst
				 * costs more than it frees */
#define FS_LONG_S 86400.0	/* entries change only through the kernel */
#define FS_XATTR_MAX 65536

struct fs {
	struct fuse_session *se;
	struct mount *m;
	pthread_t main_thread;
	bool began;		/* INIT was seen */
	bool mounted;
};

static struct mount *mount_of(fuse_req_t req) { return fuse_req_userdata(req); }
static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}
static pid_t tid_of(fuse_req_t req) { return fuse_req_ctx(req)->pid; }
static bool from_helper(fuse_req_t req)
{
	return notify_is_helper(mount_of(req)->notify, tid_of(req));
}

void fs_reply_error(struct fuse_req *req, int err) { fuse_reply_err(req, err); }
void fs_reply_data(struct fuse_req *req, const void *p, size_t n)
{
	fuse_reply_buf(req, p, n);
}
void fs_on_interrupt(struct fuse_req *req,
		     void (*gone)(struct fuse_req *req, void *arg), void *arg)
{
	fuse_req_interrupt_func(req, gone, arg);
}
bool fs_interrupted(struct fuse_req *req) { return fuse_req_interrupted(req); }

/* --- attributes and entries; called with the lock --- */

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

static void fill_entry(const struct node *n, struct fuse_entry_param *e)
{
	*e = (struct fuse_entry_param){
		.ino = n->ino, .generation = 1, .entry_timeout = FS_LONG_S,
		.attr_timeout = attr_timeout(n),
	};
	fill_stat(n, &e->attr);
}

static struct node *node_at(struct mount *m, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? m->root : tree_by_ino(m->tree, ino);
}

/* Answers with an entry, and counts the kernel's reference. */
static void reply_entry(fuse_req_t req, struct node *n)
{
	struct mount *m = mount_of(req);
	struct fuse_entry_param e;
	mount_lock(m);
	fill_entry(n, &e);
	n->lookups++;
	mount_unlock(m);
	if (fuse_reply_entry(req, &e) < 0) {
		mount_lock(m);
		n->lookups--;
		tree_settle(m->tree, n);
		mount_unlock(m);
	}
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mount *m = mount_of(req);
	mount_lock(m);
	struct node *dir = node_at(m, parent);
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
	reply_entry(req, n);
	mount_lock(m);
	n->opens--;
	tree_settle(m->tree, n);
	mount_unlock(m);
}

static void forget_one(struct mount *m, fuse_ino_t ino, uint64_t count)
{
	struct node *n = node_at(m, ino);
	if (!n)
		return;
	n->lookups -= count < n->lookups ? count : n->lookups;
	tree_settle(m->tree, n);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	struct mount *m = mount_of(req);
	mount_lock(m);
	forget_one(m, ino, count);
	mount_unlock(m);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count,
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
static struct node *get(fuse_req_t req, fuse_ino_t ino)
{
	struct mount *m = mount_of(req);
	mount_lock(m);
	struct node *n = node_at(m, ino);
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

static void op_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	(void)fi;
	const struct node *n = get(req, ino);
	if (n)
		reply_attr(req, n);
}

static void set_times(struct node *n, const struct stat *st, int to_set)
{
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		clock_gettime(CLOCK_REALTIME, &n->mtime);
	else if (to_set & FUSE_SET_ATTR_MTIME)
		n->mtime = st->st_mtim;
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st,
		       int to_set, struct fuse_file_info *fi)
{
	(void)fi;
	struct mount *m = mount_of(req);
	struct node *n = get(req, ino);
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

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct mount *m = mount_of(req);
	const struct node *n = get(req, ino);
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

/* --- handles --- */

static void handle_free(struct mount *m, struct handle *h)
{
	buf_free(&h->bytes);
	mount_lock(m);
	h->node->opens--;
	tree_settle(m->tree, h->node);
	mount_unlock(m);
	free(h);
}

static struct handle *handle_new(fuse_req_t req, struct node *n, int flags)
{
	struct mount *m = mount_of(req);
	struct handle *h = calloc(1, sizeof *h);
	if (!h)
		return NULL;
	*h = (struct handle){ .node = n, .flags = flags,
			      .opener = tid_of(req) };
	mount_lock(m);
	n->opens++;
	mount_unlock(m);
	return h;
}

static uint32_t open_flags(const struct handle *h)
{
	/* FOPEN_STREAM: without it a second reader of one descriptor waits
	 * for the file position in a state that no signal ends.  libfuse 3.14
	 * has no name for it, so the answer is written here. */
	return (h->direct ? FOPEN_DIRECT_IO : 0u) |
	       (h->stream ? FOPEN_NONSEEKABLE | FOPEN_STREAM : 0u) |
	       (h->keep ? FOPEN_KEEP_CACHE : 0u);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct node *n = get(req, ino);
	if (!n)
		return;
	if (m->stopping) {
		fuse_reply_err(req, ESHUTDOWN);
		return;
	}
	struct handle *h = handle_new(req, n, fi->flags);
	int err = h ? 0 : ENOMEM;
	if (!err && n->ops && n->ops->open)
		err = n->ops->open(m, h);
	if (err) {
		if (h)
			handle_free(m, h);
		fuse_reply_err(req, err);
		return;
	}
	struct fuse_open_out out = { .fh = (uintptr_t)h,
				     .open_flags = open_flags(h) };
	if (fuse_reply_buf(req, (const char *)&out, sizeof out) < 0) {
		if (n->ops && n->ops->release)
			n->ops->release(m, h);
		handle_free(m, h);
	}
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
		    struct fuse_file_info *fi)
{
	(void)ino;
	struct handle *h = handle_of(fi);
	if (h->node->ops && h->node->ops->read)
		h->node->ops->read(mount_of(req), req, h, n, (uint64_t)off);
	else
		fuse_reply_err(req, EACCES);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *p, size_t n,
		     off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	struct mount *m = mount_of(req);
	struct handle *h = handle_of(fi);
	int err = h->node->ops && h->node->ops->write
		? h->node->ops->write(m, h, tid_of(req), p, n, (uint64_t)off)
		: EACCES;
	if (err)
		fuse_reply_err(req, err);
	else
		fuse_reply_write(req, n);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	struct handle *h = handle_of(fi);
	if (h->node->ops && h->node->ops->flush)
		h->node->ops->flush(mount_of(req), req, h, tid_of(req));
	else
		fuse_reply_err(req, 0);
}

static void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
		     struct fuse_file_info *fi)
{
	(void)ino, (void)datasync;
	struct handle *h = handle_of(fi);
	int err = h->node->ops && h->node->ops->fsync
		? h->node->ops->fsync(mount_of(req), h) : 0;
	fuse_reply_err(req, err);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync,
			struct fuse_file_info *fi)
{
	(void)ino, (void)datasync, (void)fi;
	fuse_reply_err(req, 0);
}

static void op_release(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	(void)ino;
	struct mount *m = mount_of(req);
	struct handle *h = handle_of(fi);
	if (h->node->ops && h->node->ops->release)
		h->node->ops->release(m, h);
	handle_free(m, h);
	fuse_reply_err(req, 0);
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		    struct fuse_pollhandle *ph)
{
	(void)ino;
	struct handle *h = handle_of(fi);
	unsigned events = POLLIN | POLLOUT;
	if (h->node->ops && h->node->ops->poll)
		events = h->node->ops->poll(mount_of(req), h, ph) ? POLLIN : 0;
	else if (ph)
		fuse_pollhandle_destroy(ph);
	fuse_reply_poll(req, events);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off,
			 off_t length, struct fuse_file_info *fi)
{
	(void)fi;
	struct mount *m = mount_of(req);
	struct node *n = get(req, ino);
	if (!n)
		return;
	int err = EOPNOTSUPP;
	if (mode == 0 && n->ops && n->ops->truncate) {
		uint64_t end = (uint64_t)off + (uint64_t)length;
		err = end > n->size ? n->ops->truncate(m, n, end) : 0;
	}
	fuse_reply_err(req, err);
}

/* --- directories --- */

static size_t add_entry(fuse_req_t req, char *at, size_t room,
			struct node *n, bool plus)
{
	struct fuse_entry_param e;
	if (!plus) {
		struct stat st = { .st_ino = n->ino, .st_mode = n->mode };
		return fuse_add_direntry(req, at, room, n->name, &st,
					 (off_t)n->cookie);
	}
	fill_entry(n, &e);
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
	const struct node *dir = node_at(m, ino);
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

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
		       struct fuse_file_info *fi)
{
	(void)fi;
	read_dir(req, ino, n, off, false);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t n,
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
	return n;
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		      mode_t mode, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct node *dir = get(req, parent), *n = NULL;
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
	struct handle *h = err ? NULL : handle_new(req, n, fi->flags);
	if (!err && !h)
		err = ENOMEM;
	if (!err && !ours && n->ops->open)
		err = n->ops->open(m, h);
	if (err) {
		if (h)
			handle_free(m, h);
		fuse_reply_err(req, err);
		return;
	}
	struct fuse_entry_param e;
	mount_lock(m);
	fill_entry(n, &e);
	n->lookups++;
	mount_unlock(m);
	fi->fh = (uintptr_t)h;
	fi->direct_io = h->direct;
	fi->keep_cache = h->keep;
	if (fuse_reply_create(req, &e, fi) == 0)
		return;
	if (!ours && n->ops->release)
		n->ops->release(m, h);
	mount_lock(m);
	n->lookups--;
	mount_unlock(m);
	handle_free(m, h);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode)
{
	struct mount *m = mount_of(req);
	struct node *dir = get(req, parent), *n = NULL;
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
		reply_entry(req, n);
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

static void drop(struct mount *m, struct node *n)
{
	if (!n)
		return;
	mount_lock(m);
	n->opens--;
	tree_settle(m->tree, n);
	mount_unlock(m);
}

static void take_away(struct mount *m, struct node *n)
{
	mount_lock(m);
	tree_unlink(m->tree, n);
	mount_unlock(m);
}

static void remove_entry(fuse_req_t req, fuse_ino_t parent, const char *name,
			 bool is_dir)
{
	struct mount *m = mount_of(req);
	struct node *dir = get(req, parent);
	if (!dir)
		return;
	struct node *n = child(m, dir, name);
	int err = EPERM;
	if (!n)
		err = ENOENT;
	else if (tree_is_dir(n) != is_dir)
		err = is_dir ? ENOTDIR : EISDIR;
	else if (from_helper(req))
		take_away(m, n), err = 0;
	else if (is_dir && dir->ops && dir->ops->rmdir)
		err = dir->ops->rmdir(m, dir, n);
	else if (!is_dir && dir->ops && dir->ops->unlink)
		err = dir->ops->unlink(m, dir, n);
	drop(m, n);
	fuse_reply_err(req, err);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, false);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_entry(req, parent, name, true);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		      fuse_ino_t to, const char *to_name, unsigned flags)
{
	struct mount *m = mount_of(req);
	struct node *dir = get(req, parent);
	if (!dir)
		return;
	struct node *dir2 = get(req, to);
	if (!dir2)
		return;
	struct node *n = child(m, dir, name);
	int err = EPERM;
	if (!n)
		err = ENOENT;
	else if (dir->ops && dir->ops->rename && dir2->ops == dir->ops)
		err = dir->ops->rename(m, n, dir2, to_name, flags,
				       tid_of(req));
	drop(m, n);
	fuse_reply_err(req, err);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
		    const char *name)
{
	(void)ino, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
		       const char *name)
{
	(void)target, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode, dev_t dev)
{
	(void)parent, (void)name, (void)mode, (void)dev;
	fuse_reply_err(req, EPERM);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	(void)ino;
	struct statvfs st = { .f_bsize = 4096, .f_frsize = 4096,
			      .f_namemax = 255 };
	store_statfs(mount_of(req)->store, &st);
	fuse_reply_statfs(req, &st);
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

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
			size_t room)
{
	struct node *n = get(req, ino);
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

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t room)
{
	struct node *n = get(req, ino);
	if (!n)
		return;
	cleanup_buf struct buf b = { 0 };
	if (n->ops && n->ops->listxattr)
		n->ops->listxattr(mount_of(req), n, &b);
	reply_sized(req, &b, room);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
			const char *value, size_t n, int flags)
{
	struct node *at = get(req, ino);
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

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct node *n = get(req, ino);
	if (!n)
		return;
	fuse_reply_err(req, n->ops && n->ops->removexattr
			? n->ops->removexattr(mount_of(req), n, name)
			: EOPNOTSUPP);
}

/* --- the session --- */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct mount *m = userdata;
	conn->want |= conn->capable &
		(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS |
		 FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_READ |
		 FUSE_CAP_PARALLEL_DIROPS);
	conn->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE |
				  FUSE_CAP_SPLICE_READ |
				  FUSE_CAP_SPLICE_WRITE |
				  FUSE_CAP_SPLICE_MOVE |
				  FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS);
	m->fs->began = true;
}

static const struct fuse_lowlevel_ops operations = {
	.init = op_init, .lookup = op_lookup, .forget = op_forget,
	.forget_multi = op_forget_multi, .getattr = op_getattr,
	.setattr = op_setattr, .readlink = op_readlink, .open = op_open,
	.read = op_read, .write = op_write, .flush = op_flush,
	.fsync = op_fsync, .fsyncdir = op_fsyncdir, .release = op_release,
	.poll = op_poll, .fallocate = op_fallocate, .readdir = op_readdir,
	.readdirplus = op_readdirplus, .create = op_create,
	.mkdir = op_mkdir, .unlink = op_unlink, .rmdir = op_rmdir,
	.rename = op_rename, .link = op_link, .symlink = op_symlink,
	.mknod = op_mknod, .statfs = op_statfs, .getxattr = op_getxattr,
	.listxattr = op_listxattr, .setxattr = op_setxattr,
	.removexattr = op_removexattr,
	/* left out: access (default_permissions), lseek and copy_file_range
	 * (the kernel does them), locks (local ones are enough), opendir */
};

struct fs *fs_new(struct mount *m, const char *options, struct err *e)
{
	struct fs *fs = calloc(1, sizeof *fs);
	if (!fs) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	fs->m = m;
	m->fs = fs;
	char *argv[] = { "airloxfs", "-o", (char *)options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	fs->se = fuse_session_new(&args, &operations, sizeof operations, m);
	fuse_opt_free_args(&args);
	if (!fs->se) {
		err_set(e, ERR_USAGE, "the mount options were not accepted: "
			"see airloxfs mount --help");
		m->fs = NULL;
		free(fs);
		return NULL;
	}
	return fs;
}

/* libfuse and fusermount3 print; and the fusermount3 that auto_unmount leaves
 * behind keeps our stderr for as long as the mount lives.  So that what they
 * say becomes our sentence, and nothing is printed behind the user's back,
 * stderr is a file in memory meanwhile. */
static int catch_stderr(int *saved)
{
	int mem = memfd_create("airloxfs-stderr", MFD_CLOEXEC);
	*saved = mem < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (*saved < 0 || dup2(mem, STDERR_FILENO) < 0) {
		if (mem >= 0)
			close(mem);
		return -1;
	}
	return mem;
}

static void what_was_said(int mem, int saved, char said[200])
{
	ssize_t n = mem < 0 ? 0 : pread(mem, said, 199, 0);
	said[n > 0 ? n : 0] = 0;
	said[strcspn(said, "\n")] = 0;
	if (mem >= 0) {
		dup2(saved, STDERR_FILENO);
		close(mem);
	}
	if (saved >= 0)
		close(saved);
}

int fs_mount(struct fs *fs, const char *dir, struct err *e)
{
	char said[200];
	int saved, mem = catch_stderr(&saved);
	fs->mounted = fuse_session_mount(fs->se, dir) == 0;
	what_was_said(mem, saved, said);
	if (fs->mounted)
		return 0;
	return err_set(e, ERR_NO_FUSE, "cannot mount on this machine: %s; "
		       "without FUSE, `airloxfs send`, `items` and `watch` "
		       "still work", said);
}

/* Until INIT was answered nothing may touch the mount; so the first request
 * is served here, and then whoever waits is told. */
static int first_request(struct fs *fs)
{
	struct fuse_buf b = { .mem = NULL };
	while (!fs->began && !fuse_session_exited(fs->se)) {
		int n = fuse_session_receive_buf(fs->se, &b);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		fuse_session_process_buf(fs->se, &b);
	}
	free(b.mem);
	return fs->began ? 0 : -1;
}

static void woken(int sig) { (void)sig; }

int fs_loop(struct fs *fs, void (*ready)(struct mount *m), struct err *e)
{
	fs->main_thread = pthread_self();
	struct sigaction wake = { .sa_handler = woken };
	sigaction(SIGUSR1, &wake, NULL);
	if (first_request(fs) < 0)
		return err_set(e, ERR_NO_FUSE, "the kernel ended the mount "
			       "before it began: see the kernel's log");
	ready(fs->m);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	if (!config)
		return err_set(e, ERR_MEMORY, "out of memory");
	fuse_loop_cfg_set_clone_fd(config, 0);
	fuse_loop_cfg_set_max_threads(config, FS_THREADS);
	fuse_loop_cfg_set_idle_threads(config, FS_THREADS);
	int rc = fuse_session_loop_mt(fs->se, config);
	fuse_loop_cfg_destroy(config);
	return rc < 0 ? err_set(e, ERR_SYS, "serving the mount failed") : 0;
}

void fs_stop(struct fs *fs)
{
	fuse_session_exit(fs->se);
	pthread_kill(fs->main_thread, SIGUSR1);
}

void fs_unmount(struct fs *fs)
{
	if (fs && fs->mounted)
		fuse_session_unmount(fs->se);
	if (fs)
		fs->mounted = false;
}

void fs_free(struct fs *fs)
{
	if (!fs)
		return;
	fuse_session_destroy(fs->se);
	free(fs);
}
