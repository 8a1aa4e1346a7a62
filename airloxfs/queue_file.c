/* SPDX-License-Identifier: MIT
 *
 * What whoever serves a job writes beside out/: its output, and how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "airloxfs/queue_private.h"
#include "airloxfs/text.h"
#include "core/progress.h"

#define SMALL_MAX (16 * 1024)	/* bytes of exit, reason, peak_mem_mb */

static struct queue_room *room(struct mount *m) { return m->queue; }

/* With q->lock: whether it may still be written to. */
static bool is_open(const struct qjob *j)
{
	return j->state >= Q_OPEN && j->state < Q_ENDING;
}

/* --- stdout, stderr --- */

static struct kept *kept_of(const struct node *n)
{
	struct qjob *j = n->data;
	return &j->std[n->ops == &queue_stderr_ops ? PROGRESS_STDERR
						   : PROGRESS_STDOUT];
}

static int std_open(struct mount *m, struct handle *h)
{
	struct queue_room *q = room(m);
	struct kept *k = kept_of(h->node);
	const struct qjob *j = h->node->data;
	h->direct = true;
	pthread_mutex_lock(&q->lock);
	if (h->flags & O_TRUNC && is_open(j))
		kept_reset(k);
	if ((h->flags & O_ACCMODE) != O_WRONLY)
		kept_read(k, &h->bytes);
	pthread_mutex_unlock(&q->lock);
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

static int std_write(struct mount *m, struct handle *h, pid_t tid,
		     const void *p, size_t n, uint64_t off)
{
	(void)tid, (void)off;
	struct queue_room *q = room(m);
	struct kept *k = kept_of(h->node);
	const struct qjob *j = h->node->data;
	pthread_mutex_lock(&q->lock);
	int err = is_open(j) ? 0 : EROFS;
	if (!err) {
		kept_add(k, p, n);
		err = k->failed ? ENOMEM : 0;
	}
	if (!err && j->state == Q_CLAIMED)
		pthread_cond_signal(&q->print);
	pthread_mutex_unlock(&q->lock);
	return err;
}

static int std_truncate(struct mount *m, struct node *n, uint64_t size)
{
	struct queue_room *q = room(m);
	const struct qjob *j = n->data;
	pthread_mutex_lock(&q->lock);
	int err = is_open(j) ? 0 : EROFS;
	if (!err && size == 0)
		kept_reset(kept_of(n));
	pthread_mutex_unlock(&q->lock);
	return err;
}

static uint64_t std_size(struct mount *m, const struct node *n)
{
	cleanup_buf struct buf b = { 0 };
	struct queue_room *q = room(m);
	pthread_mutex_lock(&q->lock);
	kept_read(kept_of(n), &b);
	pthread_mutex_unlock(&q->lock);
	return b.len;
}

static void no_change(struct mount *m, struct node *n) { (void)m, (void)n; }

const struct node_ops queue_stdout_ops = {
	.open = std_open, .read = text_read, .write = std_write,
	.truncate = std_truncate, .changed = no_change, .size = std_size,
	.free = queue_node_free,
};
const struct node_ops queue_stderr_ops = {
	.open = std_open, .read = text_read, .write = std_write,
	.truncate = std_truncate, .changed = no_change, .size = std_size,
	.free = queue_node_free,
};

/* --- exit, reason, peak_mem_mb --- */

static struct buf *small_of(const struct node *n)
{
	struct qjob *j = n->data;
	return n->ops == &queue_exit_ops ? &j->exit :
	       n->ops == &queue_reason_ops ? &j->reason : &j->peak;
}

static int small_open(struct mount *m, struct handle *h)
{
	struct queue_room *q = room(m);
	struct buf *b = small_of(h->node);
	h->direct = true;
	pthread_mutex_lock(&q->lock);
	if (h->flags & O_TRUNC && is_open(h->node->data))
		buf_reset(b);
	buf_add(&h->bytes, b->data, b->len);
	pthread_mutex_unlock(&q->lock);
	return buf_failed(&h->bytes) ? ENOMEM : 0;
}

/* With the lock: as long as `size`, with NULs where it grows. */
static int resize(struct buf *b, uint64_t size)
{
	if (size > SMALL_MAX)
		return EFBIG;
	if (size > b->len) {
		uint8_t *p = buf_room(b, (size_t)size - b->len);
		if (!p)
			return ENOMEM;
		memset(p, 0, (size_t)size - b->len);
	}
	b->len = (size_t)size;
	return 0;
}

static int small_write(struct mount *m, struct handle *h, pid_t tid,
		       const void *p, size_t n, uint64_t off)
{
	(void)tid;
	struct queue_room *q = room(m);
	struct buf *b = small_of(h->node);
	pthread_mutex_lock(&q->lock);
	int err = !is_open(h->node->data) ? EROFS
		: off > SMALL_MAX ? EFBIG : 0;
	if (!err && off + n > b->len)
		err = resize(b, off + n);
	if (!err && n)
		memcpy(b->data + off, p, n);
	pthread_mutex_unlock(&q->lock);
	return err;
}

static int small_truncate(struct mount *m, struct node *n, uint64_t size)
{
	struct queue_room *q = room(m);
	pthread_mutex_lock(&q->lock);
	int err = is_open(n->data) ? resize(small_of(n), size) : EROFS;
	pthread_mutex_unlock(&q->lock);
	return err;
}

static uint64_t small_size(struct mount *m, const struct node *n)
{
	struct queue_room *q = room(m);
	pthread_mutex_lock(&q->lock);
	uint64_t size = small_of(n)->len;
	pthread_mutex_unlock(&q->lock);
	return size;
}

#define SMALL_OPS { \
	.open = small_open, .read = text_read, .write = small_write, \
	.truncate = small_truncate, .changed = no_change, \
	.size = small_size, .free = queue_node_free, \
}
const struct node_ops queue_exit_ops = SMALL_OPS;
const struct node_ops queue_reason_ops = SMALL_OPS;
const struct node_ops queue_peak_ops = SMALL_OPS;
