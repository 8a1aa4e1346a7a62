/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <unistd.h>

#include "airloxfs/coming.h"
#include "core/host/opened.h"

enum verdict { PENDING, GOOD, BAD };

struct coming {
	struct mount *m;
	const struct incoming *inc;
	pthread_t thread;
	bool runs;
	int fd;			/* its own view of the blob */

	pthread_mutex_t lock;	/* guards have and verdict */
	pthread_cond_t more;
	uint64_t have;		/* bytes of the blob that are there */
	enum verdict verdict;	/* of length and signature */

	/* the thread's, until it has ended */
	struct in_new *fresh;
	struct err err;
};

/* For struct opened_tap. */
static int await(void *arg, uint64_t n, struct err *e)
{
	struct coming *f = arg;
	pthread_mutex_lock(&f->lock);
	while (f->verdict == PENDING && (n == 0 || f->have < n))
		pthread_cond_wait(&f->more, &f->lock);
	bool there = f->verdict == GOOD || (n && f->have >= n);
	pthread_mutex_unlock(&f->lock);
	return there ? 0 : err_set(e, ERR_NET, "it did not come whole");
}

static void *coming_thread(void *arg)
{
	struct coming *f = arg;
	const struct in_coming how = { await, f };
	f->fresh = in_verify_coming(f->m, f->inc, f->fd, &how, &f->err);
	return NULL;
}

static void begun(void *arg, int fd)
{
	struct coming *f = arg;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	f->runs = f->fd >= 0 && pthread_create(&f->thread, NULL, coming_thread,
					       f) == 0;
}

static void moved(void *arg, uint64_t done)
{
	struct coming *f = arg;
	pthread_mutex_lock(&f->lock);
	f->have = done;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
}

static void judge(struct coming *f, bool good)
{
	pthread_mutex_lock(&f->lock);
	f->verdict = good ? GOOD : BAD;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
	if (f->runs)
		pthread_join(f->thread, NULL);
	if (f->fd >= 0)
		close(f->fd);
}

int coming_fetch(struct mount *m, struct wire *w, struct incoming *inc,
		 struct in_new **fresh, bool *verified, struct err *e)
{
	struct coming f = { .m = m, .inc = inc, .fd = -1 };
	const struct peer_watch watch = { begun, moved, &f };
	pthread_mutex_init(&f.lock, NULL);
	pthread_cond_init(&f.more, NULL);
	int fd = peer_fetch_watched(m->peer, w, inc, &watch, e);
	judge(&f, fd >= 0);
	*verified = f.runs && fd >= 0;
	*fresh = *verified ? f.fresh : NULL;
	if (*verified && !f.fresh)
		*e = f.err;
	pthread_cond_destroy(&f.more);
	pthread_mutex_destroy(&f.lock);
	return fd;
}
