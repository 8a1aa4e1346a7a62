/* SPDX-License-Identifier: MIT
 *
 * store_compact: a sealed segment written anew without what was dropped.
 * The new file takes the old one's name by rename, so a crash leaves one or
 * the other, which say the same.  Order, nonce and REC_CLOSED records stay;
 * a blob that left is not copied. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "relay/store_parts.h"

#define SMALL (64u * 1024)	/* not worth the while */

uint32_t store_sparse(struct store *st)
{
	uint32_t number = 0;
	pthread_mutex_lock(&st->lock);
	for (size_t i = 0; i + 1 < st->seg_n && !number; i++) {
		const struct segment *s = &st->seg[i];
		if (s->dead > SMALL && s->dead > s->size / 2)
			number = s->number;
	}
	pthread_mutex_unlock(&st->lock);
	return number;
}

static int compare(const void *a, const void *b)
{
	const struct store_kept *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

const struct store_kept *store_kept_at(const struct store_kept *kept,
				       size_t n, uint32_t at)
{
	const struct store_kept key = { .at = at };
	return n ? bsearch(&key, kept, n, sizeof key, compare) : NULL;
}

static void put_u32be(uint8_t *p, uint32_t v)
{
	for (int i = 3; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

/* Adds the record at p to out, with its blob or without. */
static void add_copy(struct buf *out, const uint8_t *p, uint32_t body_n,
		     uint32_t blob_n, bool blob, uint32_t nonce)
{
	uint8_t head[HEAD_N];
	memcpy(head, p, HEAD_N);
	put_u32be(head + HEAD_BLOB_AT, blob ? blob_n : 0);
	put_u32be(head + HEAD_CRC_AT, nonce ^ store_crc(head, HEAD_CRC_AT));
	buf_add(out, head, HEAD_N);
	buf_add(out, p + HEAD_N, body_n + (blob ? blob_n : 0));
	while (out->len % 8 && !buf_failed(out))
		buf_add_byte(out, 0);
}

/* What is kept of the segment at p[0..n), and where it is then. */
static int copy_records(struct buf *out, const uint8_t *p, uint32_t n,
			struct store_kept *kept, size_t kept_n)
{
	uint32_t nonce = load_u32be(p + SEG_MARK_N);
	size_t found = 0;
	buf_add(out, p, SEG_HEAD_N);
	for (uint32_t at = SEG_HEAD_N; at + HEAD_N <= n;) {
		uint32_t body_n = load_u32be(p + at + HEAD_BODY_AT);
		uint32_t blob_n = load_u32be(p + at + HEAD_BLOB_AT);
		if (load_u32be(p + at) != STORE_MAGIC || body_n > n - at ||
		    blob_n > n - at - body_n)
			return -1;
		struct store_kept *k = found < kept_n &&
				       kept[found].at == at ?
				       &kept[found++] : NULL;
		if (k)
			k->to = (uint32_t)out->len;
		if (k || p[at + HEAD_TYPE_AT] == REC_CLOSED)
			add_copy(out, p + at, body_n, blob_n, k && k->blob,
				 nonce);
		at += store_record_size(body_n, blob_n);
	}
	return found == kept_n && !buf_failed(out) ? 0 : -1;
}

static int write_new(struct store *st, const char *name,
		     const struct buf *out)
{
	int fd = st->dirfd < 0 ? memfd_create(name, MFD_CLOEXEC) :
		 openat(st->dirfd, name,
			O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (store_write_all(fd, out->data, out->len, 0) < 0 ||
	    (st->dirfd >= 0 && fdatasync(fd) < 0)) {
		int why = errno;
		close(fd);
		if (st->dirfd >= 0)
			unlinkat(st->dirfd, name, 0);
		errno = why;
		return -1;
	}
	return fd;
}

static struct segment *by_number(struct store *st, uint32_t number)
{
	for (size_t i = 0; i + 1 < st->seg_n; i++)
		if (st->seg[i].number == number)
			return &st->seg[i];
	return NULL;
}

int store_compact_write(struct store *st, struct store_job *job,
			struct store_kept *kept, size_t n, struct err *e)
{
	cleanup_buf struct buf out = { 0 };
	pthread_mutex_lock(&st->lock);
	struct segment *s = by_number(st, job->number);
	int old = s ? s->fd : -1;
	uint32_t size = s ? s->size : 0;
	if (s)
		s->dead = 0;	/* not again soon, should this fail */
	pthread_mutex_unlock(&st->lock);
	if (old < 0)
		return err_set(e, ERR_SYS, "no such log segment");
	if (n)
		qsort(kept, n, sizeof *kept, compare);
	uint8_t *p = mmap(NULL, size, PROT_READ, MAP_SHARED, old, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "cannot read the log");
	int rc = copy_records(&out, p, size, kept, n);
	munmap(p, size);
	if (rc < 0)
		return err_set(e, ERR_SYS, "log segment %08x is not as it "
			       "should be", job->number);
	job->fd = write_new(st, STORE_NEW, &out);
	job->size = (uint32_t)out.len;
	job->live = (uint32_t)n;
	return job->fd < 0 ?
	       err_sys(e, "cannot write a log segment anew") : 0;
}

int store_compact_swap(struct store *st, const struct store_job *job,
		       uint32_t *gen, struct err *e)
{
	char name[SEG_NAME];
	store_segment_name(name, job->number);
	pthread_mutex_lock(&st->lock);
	struct segment *s = by_number(st, job->number);
	int rc = s && (st->dirfd < 0 ||
		       renameat(st->dirfd, STORE_NEW, st->dirfd, name) == 0) ?
		 0 : err_sys(e, "cannot put a log segment in its place");
	close(rc < 0 ? job->fd : s->fd);
	if (rc == 0) {
		s->fd = job->fd;
		s->size = job->size;
		s->live = job->live;
		s->dead = 0;
		*gen = ++s->gen;
	}
	pthread_mutex_unlock(&st->lock);
	return rc;
}

/* The rename, and whatever else the directory was told. */
void store_sync_names(struct store *st)
{
	if (st->dirfd >= 0)
		fsync(st->dirfd);
}
