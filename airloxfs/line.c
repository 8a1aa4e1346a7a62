/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "airloxfs/line.h"
#include "airloxfs/log.h"
#include "airloxfs/mount.h"
#include "airloxfs/notify.h"
#include "core/host/clock.h"

#define LINE_READ_MAX (128 * 1024)
#define CUT "\n{\"event\":\"cut\"}\n"	/* what was not read is gone */

/* A read that waits: processes that share a descriptor may have several. */
struct parked {
	struct parked *next;
	struct fuse_req *req;
	size_t want;
};

/* A handle's place, and its reads while they wait, in their order. */
struct reader {
	struct line *line;
	struct reader *next;
	uint64_t pos;		/* in all that was ever written */
	bool within;		/* a line: it was given a part of one */
	struct parked *parked;
	struct fuse_pollhandle *ph;	/* to be woken, or NULL */
};

struct line {
	pthread_mutex_t lock;	/* guards all below and the readers */
	struct vault *vault;	/* the lines, or */
	struct buf memory;
	uint64_t base;		/* bytes that were cut off before it */
	struct reader *readers;
	bool ended;
};

static uint64_t size_of(const struct line *l)
{
	return l->vault ? vault_size(l->vault) : l->memory.len;
}

static ssize_t read_at(struct line *l, uint64_t off, void *to, size_t n)
{
	if (l->vault)
		return vault_read(l->vault, off, to, n, NULL);
	if (n > l->memory.len - off)
		n = l->memory.len - (size_t)off;
	memcpy(to, l->memory.data + off, n);
	return (ssize_t)n;
}

struct line *line_new(struct vault *v, struct err *e)
{
	struct line *l = calloc(1, sizeof *l);
	if (!l) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->vault = v;
	return l;
}

void line_free(struct line *l)
{
	if (!l)
		return;
	if (l->vault)
		vault_close(l->vault);
	buf_free(&l->memory);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Answers req with what is there.  False: nothing yet.  Lock held. */
static bool answer(struct line *l, struct reader *r, struct fuse_req *req,
		   size_t want)
{
	if (r->pos < l->base && want >= strlen(CUT)) {
		r->pos = l->base;
		fs_reply_data(req, CUT + !r->within,
			      strlen(CUT) - !r->within);
		r->within = false;
		return true;
	}
	if (r->pos < l->base)
		r->pos = l->base;
	if (r->pos - l->base >= size_of(l)) {
		if (l->ended)
			fs_reply_data(req, NULL, 0);
		return l->ended;
	}
	if (want > LINE_READ_MAX)
		want = LINE_READ_MAX;
	char *to = malloc(want);
	ssize_t n = to ? read_at(l, r->pos - l->base, to, want) : -1;
	if (n < 0) {
		fs_reply_error(req, EIO);
	} else {
		r->pos += (uint64_t)n;
		r->within = n && to[n - 1] != '\n';
		fs_reply_data(req, to, (size_t)n);
	}
	free(to);
	return true;
}

static void wake_all(struct mount *m, struct line *l)
{
	for (struct reader *r = l->readers; r; r = r->next) {
		while (r->parked && answer(l, r, r->parked->req,
					   r->parked->want)) {
			struct parked *p = r->parked;
			r->parked = p->next;
			free(p);
		}
		if (r->ph) {
			notify_poll(m->notify, r->ph);
			r->ph = NULL;
		}
	}
}

/* The oldest lines go; who has not read them goes on with what is left, after
 * a line that says so. */
static void cut(struct line *l)
{
	struct err e;
	uint64_t old = vault_size(l->vault);
	if (log_cut(l->vault, &e) < 0)
		return;
	l->base += old - vault_size(l->vault);
}

void line_append(struct mount *m, struct line *l, struct bytes text)
{
	struct err e;
	int rc = 0;
	pthread_mutex_lock(&l->lock);
	if (l->vault && vault_size(l->vault) > LOG_MAX_BYTES)
		cut(l);
	if (l->vault)
		rc = vault_write(l->vault, vault_size(l->vault), text.p,
				 text.n, &e);
	else
		buf_add(&l->memory, text.p, text.n);
	if (rc == 0)
		wake_all(m, l);
	pthread_mutex_unlock(&l->lock);
}

void line_set(struct mount *m, struct line *l, struct bytes text)
{
	pthread_mutex_lock(&l->lock);
	buf_reset(&l->memory);
	buf_add(&l->memory, text.p, text.n);
	l->ended = true;
	wake_all(m, l);
	pthread_mutex_unlock(&l->lock);
}

bool line_is_read(struct line *l)
{
	pthread_mutex_lock(&l->lock);
	bool is = l->readers != NULL;
	pthread_mutex_unlock(&l->lock);
	return is;
}

void line_end(struct mount *m, struct line *l)
{
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	wake_all(m, l);
	pthread_mutex_unlock(&l->lock);
}

void line_wait(struct line *l, int64_t wait_ms)
{
	for (int64_t until = clock_mono_ms() + wait_ms;;) {
		if (!line_is_read(l) || clock_mono_ms() >= until)
			return;
		struct timespec t = { .tv_nsec = 5000000 };
		nanosleep(&t, NULL);
	}
}

int line_open_at(struct line *l, struct handle *h)
{
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EACCES;
	struct reader *r = calloc(1, sizeof *r);
	if (!r)
		return ENOMEM;
	r->line = l;
	pthread_mutex_lock(&l->lock);
	r->next = l->readers;
	l->readers = r;
	pthread_mutex_unlock(&l->lock);
	h->data = r;
	h->direct = h->stream = true;
	return 0;
}

static int line_open(struct mount *m, struct handle *h)
{
	(void)m;
	return line_open_at(h->node->data, h);
}

void line_release(struct mount *m, struct handle *h)
{
	struct reader *r = h->data, **at = &r->line->readers;
	pthread_mutex_lock(&r->line->lock);
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	pthread_mutex_unlock(&r->line->lock);
	if (r->ph)
		notify_poll(m->notify, r->ph);
	free(r);
}

static int park(struct reader *r, struct fuse_req *req, size_t want)
{
	struct parked *p = calloc(1, sizeof *p), **at = &r->parked;
	if (!p)
		return -1;
	*p = (struct parked){ .req = req, .want = want };
	while (*at)
		at = &(*at)->next;
	*at = p;
	return 0;
}

static bool unpark(struct reader *r, const struct fuse_req *req)
{
	struct parked **at = &r->parked, *p;
	while (*at && (*at)->req != req)
		at = &(*at)->next;
	p = *at;
	if (!p)
		return false;
	*at = p->next;
	free(p);
	return true;
}

/* The reader was interrupted: whoever still has its request answers it. */
static void line_interrupt(struct fuse_req *req, void *arg)
{
	struct line *l = arg;
	bool found = false;
	pthread_mutex_lock(&l->lock);
	for (struct reader *r = l->readers; r && !found; r = r->next)
		found = unpark(r, req);
	pthread_mutex_unlock(&l->lock);
	if (found)
		fs_reply_error(req, EINTR);
}

void line_read(struct mount *m, struct fuse_req *req, struct handle *h,
	       size_t n, uint64_t off)
{
	(void)m, (void)off;
	struct reader *r = h->data;
	struct line *l = r->line;
	fs_on_interrupt(req, line_interrupt, l);
	pthread_mutex_lock(&l->lock);
	if (!answer(l, r, req, n)) {
		if (h->flags & O_NONBLOCK)
			fs_reply_error(req, EAGAIN);
		else if (fs_interrupted(req))
			fs_reply_error(req, EINTR);
		else if (park(r, req, n) < 0)
			fs_reply_error(req, ENOMEM);
	}
	pthread_mutex_unlock(&l->lock);
}

bool line_poll(struct mount *m, struct handle *h, struct fuse_pollhandle *ph)
{
	struct reader *r = h->data;
	pthread_mutex_lock(&r->line->lock);
	bool ready = r->line->ended || r->pos < r->line->base +
		size_of(r->line);
	struct fuse_pollhandle *old = r->ph;
	r->ph = ph ? ph : old;
	pthread_mutex_unlock(&r->line->lock);
	if (ph && old)
		notify_poll(m->notify, old);
	return ready;
}

const struct node_ops line_ops = {
	.open = line_open, .read = line_read, .release = line_release,
	.poll = line_poll,
};
