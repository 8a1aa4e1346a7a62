/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "core/prim.h"
#include "relay/store_parts.h"

#define AHEAD (1u << 20)	/* reserved in one go */
#define SPARSE_MIN (8u << 20)
#define AHEAD_MIN (256u << 10)	/* of it, for what frees space */
const uint8_t store_mark[SEG_MARK_N] = "airlox-log\0\1";

static uint32_t crc_table[256];

static void crc_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
		crc_table[i] = c;
	}
}

uint32_t store_crc(const uint8_t *p, size_t n)
{
	uint32_t c = ~0u;
	while (n--)
		c = crc_table[(c ^ *p++) & 0xff] ^ (c >> 8);
	return ~c;
}

uint32_t store_record_size(uint32_t body_n, uint32_t blob_n)
{
	return store_padded(HEAD_N + body_n + blob_n);
}

void store_segment_name(char name[16], uint32_t number)
{
	snprintf(name, 16, "%08x.log", number);
}

static struct segment *segment_of(struct store *st, uint32_t number)
{
	uint32_t first = st->seg_n ? st->seg[0].number : 0;
	if (number < first || number - first >= st->seg_n)
		return NULL;
	return &st->seg[number - first];
}

int store_write_all(int fd, const uint8_t *p, size_t n, off_t at)
{
	while (n) {
		ssize_t w = pwrite(fd, p, n, at);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return -1;
		p += w, n -= (size_t)w, at += w;
	}
	return 0;
}

int store_read_all(int fd, uint8_t *p, size_t n, off_t at)
{
	while (n) {
		ssize_t r = pread(fd, p, n, at);
		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			errno = EIO;
		if (r <= 0)
			return -1;
		p += r, n -= (size_t)r, at += r;
	}
	return 0;
}

int store_write_head(int fd)
{
	uint8_t head[SEG_HEAD_N] = { 0 };
	memcpy(head, store_mark, SEG_MARK_N);
	prim_random(head + SEG_MARK_N, 4);
	uint32_t crc = store_crc(head, SEG_CRC_AT);
	for (int i = 0; i < 4; i++)
		head[SEG_CRC_AT + i] = (uint8_t)(crc >> (24 - 8 * i));
	return store_write_all(fd, head, SEG_HEAD_N, 0);
}

int store_push_segment(struct store *st, uint32_t number, int fd,
			uint32_t size, struct err *e)
{
	if (st->seg_n == st->seg_cap) {
		size_t cap = st->seg_cap ? st->seg_cap * 2 : 16;
		struct segment *p = realloc(st->seg, cap * sizeof *p);
		if (!p)
			return err_set(e, ERR_MEMORY, "out of memory");
		st->seg = p;
		st->seg_cap = cap;
	}
	uint8_t head[SEG_HEAD_N];
	if (store_read_all(fd, head, SEG_HEAD_N, 0) < 0)
		return err_sys(e, "cannot read the log");
	st->seg[st->seg_n++] = (struct segment){
		.number = number, .nonce = load_u32be(head + SEG_MARK_N),
		.fd = fd, .size = size };
	return 0;
}

static int segment_open(struct store *st, uint32_t number, struct err *e)
{
	char name[16];
	store_segment_name(name, number);
	int fd = st->dirfd < 0 ?
		 memfd_create(name, MFD_CLOEXEC) :
		 openat(st->dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			0600);
	if (fd < 0)
		return err_sys(e, "cannot create log segment %s", name);
	bool ok = store_write_head(fd) == 0 &&
		  (st->dirfd < 0 || (fsync(fd) == 0 && fsync(st->dirfd) == 0));
	if (!ok) {
		err_sys(e, "cannot create log segment %s", name);
		if (st->dirfd >= 0)
			unlinkat(st->dirfd, name, 0);
		close(fd);
		return -1;
	}
	pthread_mutex_lock(&st->lock);
	int rc = store_push_segment(st, number, fd, SEG_HEAD_N, e);
	pthread_mutex_unlock(&st->lock);
	if (rc < 0)
		close(fd);
	return rc;
}

struct store *store_open(int dirfd, struct err *e)
{
	struct store *st = calloc(1, sizeof *st);
	if (!st) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	crc_init();
	pthread_mutex_init(&st->lock, NULL);
	st->dirfd = -1;
	if (dirfd < 0)
		return st;
	if (mkdirat(dirfd, "log", 0700) < 0 && errno != EEXIST) {
		err_sys(e, "cannot make log in the data directory");
		store_close(st);
		return NULL;
	}
	st->dirfd = openat(dirfd, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (st->dirfd < 0) {
		err_sys(e, "cannot open log in the data directory");
		store_close(st);
		return NULL;
	}
	return st;
}

void store_close(struct store *st)
{
	if (!st)
		return;
	for (size_t i = 0; i < st->seg_n; i++)
		close(st->seg[i].fd);
	if (st->dirfd >= 0)
		close(st->dirfd);
	free(st->seg);
	buf_free(&st->batch);
	pthread_mutex_destroy(&st->lock);
	free(st);
}

static void add_record(struct buf *b, const struct store_rec *r,
		       const struct segment *s)
{
	size_t at = b->len;
	buf_add_u32be(b, STORE_MAGIC);
	buf_add(b, (const uint8_t[]){ STORE_VERSION, (uint8_t)r->type, 0, 0 },
		4);
	buf_add_u32be(b, (uint32_t)r->body.n);
	buf_add_u32be(b, (uint32_t)r->blob.n);
	buf_add_u32be(b, r->tag);
	buf_add_u32be(b, s->size);
	buf_add_u32be(b, store_crc(r->body.p, r->body.n));
	if (!buf_failed(b))
		buf_add_u32be(b, s->nonce ^
			      store_crc(b->data + at, HEAD_N - 4));
	buf_add(b, r->body.p, r->body.n);
	buf_add(b, r->blob.p, r->blob.n);
	while (b->len % 8 && !buf_failed(b))
		buf_add_byte(b, 0);
}

/* The newest segment, which never goes; zero when there is none. */
static struct segment newest(struct store *st)
{
	struct segment s = { 0 };
	pthread_mutex_lock(&st->lock);
	if (st->seg_n)
		s = st->seg[st->seg_n - 1];
	pthread_mutex_unlock(&st->lock);
	return s;
}

/* The segment that takes the next `need` bytes.  On a full disk the old one
 * goes on beyond its size. */
static int current(struct store *st, size_t need, struct segment *s,
		   struct err *e)
{
	*s = newest(st);
	/* one that is mostly of ended sessions is sealed early, so that it
	 * can be compacted */
	bool sparse = s->size > SPARSE_MIN && s->dead > s->size / 2;
	if (s->number && s->size + need <= STORE_SEGMENT_MAX && !sparse)
		return 0;
	if (segment_open(st, s->number + 1, e) < 0)
		return s->number && s->size < STORE_SEGMENT_MAX / 2 * 3 ?
		       0 : -1;
	if (s->number && ftruncate(s->fd, s->size) < 0)
		return err_sys(e, "cannot write the log");
	*s = newest(st);
	return 0;
}

int store_room(struct store *st, size_t n, struct err *e)
{
	struct segment s;
	if (current(st, n, &s, e) < 0)
		return -1;
	uint64_t end = s.size + n + AHEAD_MIN;
	if (end <= s.ahead)
		return 0;
	end += AHEAD;
	if (fallocate(s.fd, FALLOC_FL_KEEP_SIZE, s.size,
		      (off_t)(end - s.size)) < 0 && errno != EOPNOTSUPP)
		return err_sys(e, "cannot reserve space for the log");
	pthread_mutex_lock(&st->lock);
	st->seg[st->seg_n - 1].ahead = end;
	pthread_mutex_unlock(&st->lock);
	return 0;
}

int64_t store_free(struct store *st)
{
	struct statvfs v;
	if (st->dirfd < 0 || fstatvfs(st->dirfd, &v) < 0)
		return -1;
	return (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

int store_probe(struct store *st)
{
	uint8_t some[4096] = "probe";
	if (st->dirfd < 0)
		return 0;
	int fd = openat(st->dirfd, "probe", O_WRONLY | O_CREAT | O_CLOEXEC,
			0600);
	if (fd < 0)
		return -1;
	int rc = store_write_all(fd, some, sizeof some, 0);
	if (rc == 0)
		rc = fdatasync(fd);
	unlinkat(st->dirfd, "probe", 0);
	return close(fd) < 0 ? -1 : rc;
}

static void count_batch(struct store *st, const struct store_rec *recs,
			size_t n)
{
	pthread_mutex_lock(&st->lock);
	struct segment *s = &st->seg[st->seg_n - 1];
	s->size += (uint32_t)st->batch.len;
	for (size_t i = 0; i < n; i++)
		if (recs[i].type != REC_CLOSED)
			s->live++;
	pthread_mutex_unlock(&st->lock);
}

/* What a failed write left and could not be cut off goes before anything is
 * written behind it: a later start would take it for a record. */
static int cut_torn(struct store *st, struct err *e)
{
	struct segment s = newest(st);
	if (st->torn && ftruncate(s.fd, s.size) < 0)
		return err_sys(e, "cannot write the log");
	st->torn = false;
	return 0;
}

int store_append(struct store *st, struct store_rec *recs, size_t n,
		 struct err *e)
{
	size_t need = 0;
	for (size_t i = 0; i < n; i++)
		need += store_record_size((uint32_t)recs[i].body.n,
				    (uint32_t)recs[i].blob.n);
	struct segment s;
	if (cut_torn(st, e) < 0 || current(st, need, &s, e) < 0)
		return -1;
	buf_reset(&st->batch);
	for (size_t i = 0; i < n; i++) {
		recs[i].loc = (struct rec_loc){
			s.number, s.size + (uint32_t)st->batch.len,
			(uint32_t)recs[i].body.n, (uint32_t)recs[i].blob.n,
			s.gen };
		add_record(&st->batch, &recs[i], &s);
	}
	if (buf_failed(&st->batch))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (store_write_all(s.fd, st->batch.data, st->batch.len, s.size) < 0 ||
	    (st->dirfd >= 0 && fdatasync(s.fd) < 0)) {
		err_sys(e, "cannot write the log");
		/* What was written of it must not be read at the next start;
		 * cutting it off also gives the reserve back. */
		pthread_mutex_lock(&st->lock);
		st->seg[st->seg_n - 1].ahead = 0;
		pthread_mutex_unlock(&st->lock);
		st->torn = ftruncate(s.fd, s.size) < 0;
		return -1;
	}
	count_batch(st, recs, n);
	return 0;
}

static int read_part(struct store *st, const struct rec_loc *loc,
		     uint32_t skip, uint32_t n, struct buf *out, struct err *e)
{
	pthread_mutex_lock(&st->lock);
	struct segment *s = segment_of(st, loc->segment);
	int fd = s ? s->fd : -1;
	pthread_mutex_unlock(&st->lock);
	uint8_t *to = buf_room(out, n);
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (store_read_all(fd, to, n, (off_t)loc->at + HEAD_N + skip) < 0)
		return err_sys(e, "cannot read the log");
	out->len += n;
	return 0;
}

int store_read(struct store *st, const struct rec_loc *loc, struct buf *out,
	       struct err *e)
{
	return read_part(st, loc, 0, loc->body_n, out, e);
}

int store_blob(struct store *st, const struct rec_loc *loc, struct buf *out,
	       struct err *e)
{
	return read_part(st, loc, loc->body_n, loc->blob_n, out, e);
}

/* Where holes are not supported, zeros are written over it instead. */
static void punch(int fd, off_t at, uint32_t n)
{
	static const uint8_t zeros[4096];
	if (n == 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				at, n) == 0)
		return;
	while (n) {
		uint32_t k = n < sizeof zeros ? n : sizeof zeros;
		if (store_write_all(fd, zeros, k, at) < 0)
			return;
		at += k, n -= k;
	}
}

/* The segment of a record that is where loc says; under the lock. */
static struct segment *own_segment(struct store *st, const struct rec_loc *loc)
{
	struct segment *s = segment_of(st, loc->segment);
	return s && s->gen == loc->gen && !st->look ? s : NULL;
}

void store_punch(struct store *st, const struct rec_loc *loc)
{
	pthread_mutex_lock(&st->lock);
	struct segment *s = own_segment(st, loc);
	if (s) {
		punch(s->fd, (off_t)loc->at + HEAD_N + loc->body_n,
		      loc->blob_n);
		s->dead += loc->blob_n;
	}
	pthread_mutex_unlock(&st->lock);
}

static void remove_dead(struct store *st)
{
	while (st->seg_n > 1 && st->seg[0].live == 0) {
		char name[16];
		store_segment_name(name, st->seg[0].number);
		close(st->seg[0].fd);
		if (st->dirfd >= 0)
			unlinkat(st->dirfd, name, 0);
		memmove(st->seg, st->seg + 1, --st->seg_n * sizeof *st->seg);
	}
}

void store_drop(struct store *st, const struct rec_loc *loc)
{
	pthread_mutex_lock(&st->lock);
	struct segment *s = own_segment(st, loc);
	if (s) {
		punch(s->fd, (off_t)loc->at + HEAD_N,
		      loc->body_n + loc->blob_n);
		s->dead += store_record_size(loc->body_n, loc->blob_n);
	}
	if (s && s->live && --s->live == 0)
		remove_dead(st);
	pthread_mutex_unlock(&st->lock);
}

void store_look_only(struct store *st) { st->look = true; }
