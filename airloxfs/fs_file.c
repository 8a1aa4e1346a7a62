/* SPDX-License-Identifier: MIT */
#include "airloxfs/fs_private.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>

#include "core/host/vault.h"

#define READ_MAX (1024 * 1024)

void fs_handle_free(struct mount *m, struct handle *h)
{
	buf_free(&h->bytes);
	mount_drop(m, h->node);
	free(h);
}

struct handle *fs_handle_new(fuse_req_t req, struct node *n, int flags)
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
	       (h->keep ? FOPEN_KEEP_CACHE : 0u) |
	       (h->node->ops && h->node->ops->flush ? 0u : FOPEN_NOFLUSH);
}

void fs_reply_vault(struct fuse_req *req, pthread_mutex_t *lock,
		    struct vault *const *v, size_t n, uint64_t off)
{
	struct err e;
	if (n > READ_MAX)
		n = READ_MAX;
	char *to = malloc(n);
	ssize_t got = to ? 0 : -1;
	pthread_mutex_lock(lock);
	if (to && *v)
		got = vault_read(*v, off, to, n, &e);
	pthread_mutex_unlock(lock);
	if (got < 0)
		fs_reply_error(req, EIO);
	else
		fs_reply_data(req, to, (size_t)got);
	free(to);
}

void fs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct node *n = fs_get(req, ino);
	if (!n)
		return;
	if (m->stopping) {
		fuse_reply_err(req, ESHUTDOWN);
		return;
	}
	struct handle *h = fs_handle_new(req, n, fi->flags);
	int err = h ? 0 : ENOMEM;
	if (!err && n->ops && n->ops->open)
		err = n->ops->open(m, h);
	if (err) {
		if (h)
			fs_handle_free(m, h);
		fuse_reply_err(req, err);
		return;
	}
	struct fuse_open_out out = { .fh = (uintptr_t)h,
				     .open_flags = open_flags(h) };
	if (fuse_reply_buf(req, (const char *)&out, sizeof out) < 0) {
		if (n->ops && n->ops->release)
			n->ops->release(m, h);
		fs_handle_free(m, h);
	}
}

void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t n, off_t off,
		struct fuse_file_info *fi)
{
	(void)ino;
	struct handle *h = handle_of(fi);
	if (h->node->ops && h->node->ops->read)
		h->node->ops->read(mount_of(req), req, h, n, (uint64_t)off);
	else
		fuse_reply_err(req, EACCES);
}

void fs_op_write(fuse_req_t req, fuse_ino_t ino, const char *p, size_t n,
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

void fs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	struct handle *h = handle_of(fi);
	if (h->node->ops && h->node->ops->flush)
		h->node->ops->flush(mount_of(req), req, h, tid_of(req));
	else
		fuse_reply_err(req, 0);
}

void fs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
		 struct fuse_file_info *fi)
{
	(void)ino, (void)datasync;
	struct handle *h = handle_of(fi);
	int err = h->node->ops && h->node->ops->fsync
		? h->node->ops->fsync(mount_of(req), h) : 0;
	fuse_reply_err(req, err);
}

void fs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync,
		    struct fuse_file_info *fi)
{
	(void)ino, (void)datasync, (void)fi;
	fuse_reply_err(req, 0);
}

void fs_op_release(fuse_req_t req, fuse_ino_t ino,
		   struct fuse_file_info *fi)
{
	(void)ino;
	struct mount *m = mount_of(req);
	struct handle *h = handle_of(fi);
	if (h->node->ops && h->node->ops->release)
		h->node->ops->release(m, h);
	fs_handle_free(m, h);
	fuse_reply_err(req, 0);
}

void fs_op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
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

void fs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off,
		     off_t length, struct fuse_file_info *fi)
{
	(void)fi;
	struct mount *m = mount_of(req);
	struct node *n = fs_get(req, ino);
	if (!n)
		return;
	int err = EOPNOTSUPP;
	if (mode == 0 && n->ops && n->ops->truncate) {
		uint64_t end = (uint64_t)off + (uint64_t)length;
		err = end > n->size ? n->ops->truncate(m, n, end) : 0;
	}
	fuse_reply_err(req, err);
}
