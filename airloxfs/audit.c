/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "airloxfs/audit.h"
#include "airloxfs/store.h"
#include "airloxfs/wait.h"
#include "core/host/clock.h"

#define AUDIT_REST_MS 1000	/* between two fetches, or ten times as long */
#define AUDIT_REST_FACTOR 10	/* as the last one took */

struct audit {
	struct mount *m;
	pthread_t thread;
	struct wire *wire;
	pthread_mutex_t lock;	/* guards all below */
	pthread_cond_t more;
	bool stale, ending;
	struct vault *shown;	/* the newest whole one */
};

static int take(void *arg, const void *p, size_t n)
{
	struct vault *v = arg;
	struct err e;
	return vault_write(v, vault_size(v), p, n, &e);
}

static void fetch(struct audit *a)
{
	struct err e;
	struct vault *fresh = store_vault(a->m->store, "audit", true, &e);
	if (!fresh) {
		mount_failed(a->m, &e);
		return;
	}
	if (wire_audit(a->wire, take, fresh, &e) < 0) {
		vault_close(fresh);
		return;		/* the old one stays; the stream says why */
	}
	pthread_mutex_lock(&a->lock);
	struct vault *old = a->shown;
	a->shown = fresh;
	pthread_mutex_unlock(&a->lock);
	vault_close(old);
}

static void rest(struct audit *a, int64_t ms)
{
	int64_t until = clock_mono_ms() + ms;
	pthread_mutex_lock(&a->lock);
	while (!a->ending && wait_until(&a->more, &a->lock, until))
		;
	pthread_mutex_unlock(&a->lock);
}

static void *audit_thread(void *arg)
{
	struct audit *a = arg;
	for (;;) {
		pthread_mutex_lock(&a->lock);
		while (!a->ending && !a->stale)
			pthread_cond_wait(&a->more, &a->lock);
		bool ending = a->ending;
		a->stale = false;
		pthread_mutex_unlock(&a->lock);
		if (ending)
			return NULL;
		int64_t began = clock_mono_ms();
		fetch(a);
		int64_t took = (clock_mono_ms() - began) * AUDIT_REST_FACTOR;
		rest(a, took > AUDIT_REST_MS ? took : AUDIT_REST_MS);
	}
}

struct audit *audit_new(struct mount *m, struct err *e)
{
	struct audit *a = calloc(1, sizeof *a);
	if (!a) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	a->m = m;
	a->stale = true;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->more, NULL);
	a->wire = peer_wire(m->peer, e);
	if (a->wire && pthread_create(&a->thread, NULL, audit_thread, a) == 0)
		return a;
	wire_free(a->wire);
	free(a);
	return NULL;
}

void audit_stale(struct mount *m)
{
	struct audit *a = m->audit;
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stale = true;
	pthread_cond_signal(&a->more);
	pthread_mutex_unlock(&a->lock);
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->ending = true;
	pthread_cond_signal(&a->more);
	pthread_mutex_unlock(&a->lock);
	wire_abort(a->wire);
	pthread_join(a->thread, NULL);
	wire_free(a->wire);
	vault_close(a->shown);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->more);
	free(a);
}

static int audit_open(struct mount *m, struct handle *h)
{
	(void)m;
	if ((h->flags & O_ACCMODE) != O_RDONLY)
		return EACCES;
	h->direct = true;
	return 0;
}

static void audit_read(struct mount *m, struct fuse_req *req,
		       struct handle *h, size_t n, uint64_t off)
{
	(void)h;
	struct audit *a = m->audit;
	if (a)
		fs_reply_vault(req, &a->lock, &a->shown, n, off);
	else			/* the session was over before we began */
		fs_reply_data(req, NULL, 0);
}

static uint64_t audit_size(struct mount *m, const struct node *n)
{
	(void)n;
	if (!m->audit)
		return 0;
	pthread_mutex_lock(&m->audit->lock);
	uint64_t size = m->audit->shown ? vault_size(m->audit->shown) : 0;
	pthread_mutex_unlock(&m->audit->lock);
	return size;
}

const struct node_ops audit_ops = { .open = audit_open, .read = audit_read,
				    .size = audit_size };
