/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "relay/blob.h"
#include "relay/digest.h"
#include "relay/loop.h"

#define CHUNK (64u * 1024)
#define HASH_EACH (256u * 1024)		/* not worth a task before */
#define HASH_MOST (8u << 20)		/* then others have their turn */
#define SEND_EACH (4u << 20)

struct digest *digest_new(struct pool *pool, int fd)
{
	struct digest *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->hash = hash_new();
	if (!d->hash) {
		free(d);
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	d->mail.kind = MAIL_HASHED;
	d->pool = pool;
	d->fd = fd;
	d->refs = 1;
	d->wanted = true;
	return d;
}

/* Unlocks. */
static void unref(struct digest *d)
{
	bool last = --d->refs == 0;
	pthread_mutex_unlock(&d->lock);
	if (!last)
		return;
	if (d->fd >= 0)
		close(d->fd);
	hash_free(d->hash);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* A task ends, and perhaps all of it.  Unlocks. */
static void finish(struct digest *d)
{
	bool over = d->ended && d->wanted && !d->hashing && !d->sending &&
		    !d->posted && (d->failed || d->hashed == d->have);
	if (!over) {
		unref(d);
		return;
	}
	d->posted = true;	/* its reference is the mail's from here on */
	pthread_mutex_unlock(&d->lock);
	hash_final(d->hash, d->sha256);
	loop_post(d->loop, &d->mail);
}

static int hash_chunk(struct digest *d, uint64_t at, uint64_t left)
{
	uint8_t chunk[CHUNK];
	size_t n = left < sizeof chunk ? (size_t)left : sizeof chunk;
	ssize_t got;
	do
		got = pread(d->fd, chunk, n, (off_t)(BLOB_HEAD_N + at));
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return -1;
	hash_add(d->hash, chunk, (size_t)got);
	return (int)got;
}

static void hash_some(void *arg)
{
	struct digest *d = arg;
	uint64_t done = 0;
	pthread_mutex_lock(&d->lock);
	while (d->wanted && !d->failed && d->hashed < d->have &&
	       done < HASH_MOST) {
		uint64_t at = d->hashed, left = d->have - at;
		pthread_mutex_unlock(&d->lock);
		int n = hash_chunk(d, at, left);
		pthread_mutex_lock(&d->lock);
		d->failed |= n < 0;
		d->hashed += n < 0 ? 0 : (uint64_t)n;
		done += CHUNK;
	}
	if (d->wanted && !d->failed && d->hashed < d->have &&
	    pool_run(d->pool, hash_some, d) == 0) {
		pthread_mutex_unlock(&d->lock);
		return;
	}
	d->failed |= d->hashed < d->have;
	d->hashing = false;
	finish(d);
}

static void send_some(void *arg)
{
	struct digest *d = arg;
	pthread_mutex_lock(&d->lock);
	uint64_t at = d->sent, end = d->sent = d->have;
	bool wanted = d->wanted;
	pthread_mutex_unlock(&d->lock);
	/* no more than a hint: blob_seal is what counts */
	if (wanted)
		sync_file_range(d->fd, (off_t)(BLOB_HEAD_N + at),
				(off_t)(end - at), SYNC_FILE_RANGE_WRITE);
	pthread_mutex_lock(&d->lock);
	d->sending = false;
	finish(d);
}

/* Under the lock. */
static void start(struct digest *d, uint64_t hash_each, uint64_t send_each)
{
	if (!d->hashing && !d->failed && d->have - d->hashed >= hash_each) {
		d->hashing = pool_run(d->pool, hash_some, d) == 0;
		d->failed = !d->hashing;
		d->refs += d->hashing;
	}
	if (!d->sending && d->have - d->sent >= send_each) {
		d->sending = pool_run(d->pool, send_some, d) == 0;
		d->refs += d->sending;
	}
}

void digest_grow(struct digest *d, uint64_t n)
{
	pthread_mutex_lock(&d->lock);
	d->have += n;
	start(d, HASH_EACH, SEND_EACH);
	pthread_mutex_unlock(&d->lock);
}

void digest_end(struct digest *d)
{
	pthread_mutex_lock(&d->lock);
	d->ended = true;
	start(d, 1, 1);
	d->refs++;
	finish(d);
}

void digest_drop(struct digest *d)
{
	pthread_mutex_lock(&d->lock);
	unref(d);
}

int digest_take(struct digest *d)
{
	int fd = d->fd;
	d->fd = -1;
	return fd;
}

void digest_free(struct digest *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->wanted = false;
	unref(d);
}
