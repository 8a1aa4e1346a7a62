/* SPDX-License-Identifier: MIT
 *
 * Items of the index opened again, for who needs more of them than in/ shows:
 * jobs, results, events, and the files that a result names. */
#include <stdlib.h>
#include <string.h>

#include "airloxfs/in_private.h"
#include "core/host/cache.h"
#include "core/host/check.h"

void in_again_free(struct in_again *a)
{
	opened_free(a->opened);
	incoming_free(a->inc);
	if (a->fd >= 0)
		close(a->fd);
	*a = (struct in_again){ .fd = -1 };
}

/* Archives were looked at when they came. */
static int trust(enum item_type type, const char *mime,
		 const struct zip_source *body, struct err *e)
{
	(void)type, (void)mime, (void)body, (void)e;
	return 0;
}

static int open_blob(struct mount *m, const char *id, struct err *e)
{
	int fd = cache_open_blob(m->peer->cache, id, e);
	if (fd >= 0 || in_restore(m, id, e) < 0)
		return fd;
	return cache_open_blob(m->peer->cache, id, e);
}

int in_again(struct mount *m, const char *id, struct in_again *a,
	     struct err *e)
{
	cleanup_buf struct buf raw = { 0 };
	uint64_t seq;
	*a = (struct in_again){ .fd = -1 };
	if (in_envelope(m, id, &seq, &raw) < 0)
		return err_set(e, ERR_NOT_FOUND, "no item %s is here", id);
	a->inc = in_incoming(m, seq, buf_bytes(&raw));
	a->fd = a->inc ? open_blob(m, id, e) : -1;
	if (a->fd >= 0)
		a->opened = opened_new(m->peer, a->inc, a->fd, trust, NULL, e);
	if (a->opened)
		return 0;
	if (!a->inc)
		err_set(e, ERR_POLICY, "its author is not known");
	in_again_free(a);
	return -1;
}

bool in_has(struct mount *m, const char *id)
{
	struct in *in = m->in;
	pthread_mutex_lock(&in->lock);
	const struct in_item *i = in_find(in, id);
	bool has = i && i->at;
	pthread_mutex_unlock(&in->lock);
	return has;
}

static bool is_wanted(struct mount *m, const char *id,
		      bool (*want)(void *arg, const struct item_header *h),
		      void *arg)
{
	cleanup_buf struct buf raw = { 0 };
	struct envelope v;
	uint64_t seq;
	if (in_envelope(m, id, &seq, &raw) < 0 ||
	    envelope_parse(&v, buf_bytes(&raw), NULL) < 0)
		return false;
	bool is = want(arg, &v.header);
	envelope_free(&v);
	return is;
}

void in_each_signed(struct mount *m,
		    bool (*want)(void *arg, const struct item_header *h),
		    void (*each)(void *arg, const struct incoming *inc,
				 const struct opened *o), void *arg)
{
	struct in *in = m->in;
	while (in->signed_first) {
		struct in_signed *s = in->signed_first;
		struct in_again a;
		struct err e;
		in->signed_first = s->next;
		if (is_wanted(m, s->id, want, arg)) {
			if (in_again(m, s->id, &a, &e) == 0)
				each(arg, a.inc, a.opened);
			else
				mount_log(m, "item %s cannot be opened again: "
					  "%s", s->id, e.why);
			in_again_free(&a);
		}
		free(s);
	}
	in->signed_last = NULL;
}
