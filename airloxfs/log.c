/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/log.h"
#include "airloxfs/mount.h"
#include "airloxfs/notify.h"

#define LOG_CHUNK (64 * 1024)

struct log {
	pthread_mutex_t lock;	/* guards the vault */
	struct vault *vault;
};

struct log *log_new(struct vault *v, struct err *e)
{
	struct log *l = calloc(1, sizeof *l);
	if (!l) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->vault = v;
	return l;
}

void log_free(struct log *l)
{
	if (!l)
		return;
	vault_sync(l->vault, NULL);
	vault_close(l->vault);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

int log_cut(struct vault *v, struct err *e)
{
	uint64_t size = vault_size(v);
	if (size <= LOG_KEEP_BYTES)
		return 0;
	uint64_t from = size - LOG_KEEP_BYTES, to = 0;
	cleanup_free char *chunk = malloc(LOG_CHUNK);
	if (!chunk)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (bool first = true; from < size; first = false) {
		ssize_t n = vault_read(v, from, chunk, LOG_CHUNK, e);
		if (n <= 0)
			return -1;
		char *line = first ? memchr(chunk, '\n', (size_t)n) : NULL;
		size_t skip = line ? (size_t)(line - chunk) + 1 : 0;
		if (vault_write(v, to, chunk + skip, (size_t)n - skip, e) < 0)
			return -1;
		from += (uint64_t)n;
		to += (uint64_t)n - skip;
	}
	return vault_truncate(v, to, e);
}

uint64_t log_size(struct log *l)
{
	pthread_mutex_lock(&l->lock);
	uint64_t size = vault_size(l->vault);
	pthread_mutex_unlock(&l->lock);
	return size;
}

void log_append(struct mount *m, struct log *l, struct bytes text)
{
	struct err e;
	pthread_mutex_lock(&l->lock);
	bool cut = vault_size(l->vault) > LOG_MAX_BYTES;
	int rc = cut ? log_cut(l->vault, &e) : 0;
	if (rc == 0)
		rc = vault_write(l->vault, vault_size(l->vault), text.p,
				 text.n, &e);
	uint64_t size = vault_size(l->vault);
	pthread_mutex_unlock(&l->lock);
	if (rc < 0)
		return;
	mount_lock(m);
	struct node *n = m->root ? tree_find(m->root, "log") : NULL;
	if (n && (cut || n->size < size))
		n->size = size;
	mount_unlock(m);
	if (n && m->notify)
		notify_post(m->notify, NOTIFY_TOUCH, "log");
}

static int log_open(struct mount *m, struct handle *h)
{
	(void)m;
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EACCES;
	h->direct = true;
	return 0;
}

static void log_read(struct mount *m, struct fuse_req *req, struct handle *h,
		     size_t n, uint64_t off)
{
	(void)m;
	struct log *l = h->node->data;
	fs_reply_vault(req, &l->lock, &l->vault, n, off);
}

const struct node_ops log_ops = { .open = log_open, .read = log_read };
