/* SPDX-License-Identifier: MIT
 *
 * Blobs, in and out.  What streams in is hashed on its way, and has its name
 * in the cache only once length and signature are right. */
#include <fcntl.h>
#include <string.h>

#include "core/host/peer.h"
#include "core/seal.h"

#define CHUNK (128 * 1024)
#define WRITE_EARLY ((uint64_t)8 << 20)
#define DELAY_FIRST_MS 250
#define DELAY_MAX_MS 30000

struct fetching {
	int fd;
	struct hash *hash;
	uint64_t done;
	uint64_t sent;		/* to the disk: its sync has less to wait for */
	const struct peer_watch *watch;
	struct err err;
};

static int take(void *arg, const void *p, size_t n)
{
	struct fetching *f = arg;
	if (file_put_at(f->fd, p, n, f->done, &f->err) < 0)
		return -1;
	hash_add(f->hash, p, n);
	f->done += n;
	if (f->done - f->sent >= WRITE_EARLY) {
		sync_file_range(f->fd, (off_t)f->sent,
				(off_t)(f->done - f->sent),
				SYNC_FILE_RANGE_WRITE);
		f->sent = f->done;
	}
	if (f->watch->moved)
		f->watch->moved(f->watch->arg, f->done);
	return 0;
}

static uint64_t blob_size(const struct incoming *in)
{
	return (uint64_t)in->env.header.size + BLOB_OVERHEAD;
}

static int verify(struct incoming *in, struct hash *h, int64_t n,
		  struct err *e)
{
	uint8_t sum[HASH_SIZE];
	hash_final(h, sum);
	if (blob_verify(&in->env, sum, n, e) < 0)
		return -1;
	memcpy(in->ref.sha256, sum, sizeof sum);
	in->verified = true;
	return 0;
}

static int hash_file(struct hash *h, int fd, uint64_t n, struct err *e)
{
	cleanup_free uint8_t *chunk = malloc(CHUNK);
	if (!chunk)
		return err_set(e, ERR_MEMORY, "out of memory");
	for (uint64_t at = 0; at < n;) {
		size_t m = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
		if (file_get_at(fd, chunk, m, at, e) < 0)
			return -1;
		hash_add(h, chunk, m);
		at += m;
	}
	return 0;
}

/* 0, or -1 with ERR_NOT_FOUND where there is none that is whole. */
static int from_cache(struct peer *p, struct incoming *in, struct hash *h,
		      int *out, struct err *e)
{
	const char *id = in->env.header.id;
	struct err own;
	int fd = cache_open_blob(p->cache, id, e);
	if (fd < 0)
		return -1;
	int64_t n = file_size(fd, &own);
	if (n == (int64_t)blob_size(in) &&
	    hash_file(h, fd, (uint64_t)n, &own) == 0 &&
	    verify(in, h, n, &own) == 0) {
		*out = fd;
		return 0;
	}
	close(fd);
	cache_remove_blob(p->cache, id);
	return err_set(e, ERR_NOT_FOUND, "the cached blob of item %s is "
		       "damaged", id);
}

static int from_relay(struct peer *p, struct wire *w, struct incoming *in,
		      struct fetching *f, struct err *e)
{
	const char *id = in->env.header.id;
	struct cache_stage s;
	if (cache_stage(p->cache, &s, e) < 0)
		return -1;
	f->fd = s.fd;
	if (f->watch->begun)
		f->watch->begun(f->watch->arg, s.fd);
	int r = wire_blob_get(w, id, blob_size(in), take, f, e);
	if (r < 0 && f->err.code)
		*e = f->err;
	else if (r < 0 && (e->code == ERR_GONE || e->code == ERR_NOT_FOUND))
		err_set(e, ERR_NOT_FOUND, "the relay no longer has it");
	if (r == 0)
		r = verify(in, f->hash, (int64_t)f->done, e);
	if (r == 0)
		r = cache_keep(p->cache, &s, id, e);
	if (r == 0)
		return s.fd;
	cache_drop(p->cache, &s);
	close(s.fd);
	return -1;
}

int peer_fetch(struct peer *p, struct wire *w, struct incoming *in,
	       void (*moved)(void *arg, uint64_t done), void *arg,
	       struct err *e)
{
	const struct peer_watch watch = { NULL, moved, arg };
	return peer_fetch_watched(p, w, in, &watch, e);
}

int peer_fetch_watched(struct peer *p, struct wire *w, struct incoming *in,
		       const struct peer_watch *watch, struct err *e)
{
	struct err own;
	struct fetching f = { .watch = watch };
	int fd = -1;

	e = e ? e : &own;
	f.hash = hash_new();
	if (!f.hash)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (from_cache(p, in, f.hash, &fd, e) < 0 && e->code == ERR_NOT_FOUND &&
	    w) {
		hash_free(f.hash);
		f.hash = hash_new();
		fd = f.hash ? from_relay(p, w, in, &f, e) :
			err_set(e, ERR_MEMORY, "out of memory");
	}
	hash_free(f.hash);
	return fd;
}

int peer_ack(struct wire *w, const char *item_id, struct err *e)
{
	struct err own;
	e = e ? e : &own;
	if (wire_ack(w, item_id, e) == 0 || e->code == ERR_NOT_FOUND ||
	    e->code == ERR_GONE)
		return 0;
	return -1;
}

/* --- out --- */

void sealed_free(struct sealed *s)
{
	buf_free(&s->envelope);
	if (s->owns_fd)
		close(s->blob_fd);
	*s = (struct sealed){ .blob_fd = -1 };
}

int peer_post(struct wire *w, const struct sealed *s, uint64_t *seq,
	      void (*moved)(void *arg, uint64_t done), void *arg,
	      struct err *e)
{
	const struct wire_upload u = {
		.envelope = buf_bytes(&s->envelope), .blob_fd = s->blob_fd,
		.blob_n = s->blob_n, .moved = moved, .moved_arg = arg,
	};
	struct err own;
	e = e ? e : &own;
	*seq = 0;
	if (wire_post_item(w, &u, seq, e) == 0 || e->code == ERR_DUPLICATE)
		return 0;
	return -1;
}

bool peer_may_retry(const struct err *e)
{
	return e->code == ERR_NET || e->code == ERR_RATE ||
	       (e->code == ERR_FULL && e->http);
}

int64_t peer_delay_ms(unsigned n, int64_t retry_after_ms)
{
	int64_t top = DELAY_FIRST_MS;
	while (n-- && top < DELAY_MAX_MS)
		top *= 2;
	if (top > DELAY_MAX_MS)
		top = DELAY_MAX_MS;
	int64_t ms = prim_random_below((uint32_t)top + 1);
	return ms < retry_after_ms ? retry_after_ms + ms : ms;
}
