/* SPDX-License-Identifier: MIT
 *
 * store_load: the whole log, read at start; a torn tail is cut off. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "relay/store_parts.h"

static int check_seg_head(const uint8_t *p, const char *name, struct err *e)
{
	if (memcmp(p, store_mark, SEG_MARK_N) != 0)
		return err_set(e, ERR_SYS, "log segment %s was written by "
			       "another version", name);
	if (load_u32be(p + SEG_CRC_AT) != store_crc(p, SEG_CRC_AT))
		return err_set(e, ERR_SYS, "the head of log segment %s is "
			       "damaged; restore it from a copy, or start "
			       "with another data directory", name);
	return 0;
}

struct rec_head {
	enum rec_type type;
	uint32_t body_n, blob_n, tag, batch, body_crc;
};

static bool parse_head(struct rec_head *h, const uint8_t *p, uint32_t nonce)
{
	if (load_u32be(p) != STORE_MAGIC ||
	    load_u32be(p + 28) != (nonce ^ store_crc(p, 28)))
		return false;
	*h = (struct rec_head){ (enum rec_type)p[5], load_u32be(p + 8),
				load_u32be(p + 12), load_u32be(p + 16),
				load_u32be(p + 20), load_u32be(p + 24) };
	return true;
}

/* The segment as memory, for the time of reading it. */
struct image {
	uint8_t *p;
	uint32_t n, nonce;
};

static bool head_at(const struct image *im, uint32_t at, struct rec_head *h)
{
	return im->n - at >= HEAD_N && parse_head(h, im->p + at, im->nonce);
}

/* Where the last batch begins: the highest a valid header names.  Steps over
 * whatever is not a record, so that a damaged header cannot hide later
 * batches. */
static uint32_t last_batch(const struct image *im)
{
	uint32_t best = SEG_HEAD_N;
	struct rec_head h;
	for (uint32_t at = SEG_HEAD_N; at + HEAD_N <= im->n;) {
		if (!head_at(im, at, &h)) {
			at += 8;
			continue;
		}
		if (h.batch > best && h.batch <= at)
			best = h.batch;
		uint64_t next = (uint64_t)at + HEAD_N + h.body_n + h.blob_n;
		at = next > im->n ? im->n : store_padded((uint32_t)next);
	}
	return best;
}

static int load_records(struct segment *s, const struct image *im, bool last,
			const struct store_reader *rd, uint32_t *end,
			struct err *e)
{
	uint32_t tail = last ? last_batch(im) : im->n, at = SEG_HEAD_N;
	while (at < im->n) {
		struct rec_head h;
		bool ok = head_at(im, at, &h) &&
			  h.body_n <= im->n - at - HEAD_N &&
			  h.blob_n <= im->n - at - HEAD_N - h.body_n;
		if (!ok && at >= tail)
			break;
		if (!ok)
			return err_set(e, ERR_SYS, "log segment %08x is "
				       "damaged at byte %u; restore it from a "
				       "copy, or start with another data "
				       "directory",
				       s->number, at);
		if (im->p[at + 4] != STORE_VERSION)
			return err_set(e, ERR_SYS, "log segment %08x was "
				       "written by another version",
				       s->number);
		const uint8_t *body = im->p + at + HEAD_N;
		struct store_rec r = { h.type, h.tag, { body, h.body_n },
				       { body + h.body_n, h.blob_n },
				       { s->number, at, h.body_n, h.blob_n,
					 0 } };
		bool intact = store_crc(body, h.body_n) == h.body_crc;
		if (!intact && at >= tail)
			break;
		int rc = rd->take(rd->arg, &r, intact, at >= tail, e);
		if (rc < 0)
			return -1;
		if (rc > 0)
			break;
		if (intact && h.type != REC_CLOSED)
			s->live++;
		if (!intact)
			s->dead += store_record_size(h.body_n, h.blob_n);
		at += store_record_size(h.body_n, h.blob_n);
	}
	*end = at < im->n ? at : im->n;
	return 0;
}

/* Whether a crash came before the head of a segment was durable. */
static bool is_blank(int fd, uint32_t size)
{
	static const uint8_t zeros[SEG_HEAD_N];
	uint8_t head[SEG_HEAD_N];
	return size < SEG_HEAD_N ||
	       (size == SEG_HEAD_N &&
		store_read_all(fd, head, SEG_HEAD_N, 0) == 0 &&
		memcmp(head, zeros, SEG_HEAD_N) == 0);
}

static int load_segment(struct store *st, uint32_t number, bool last,
			const struct store_reader *rd, uint64_t *dropped,
			struct err *e)
{
	char name[16];
	struct stat sb;
	store_segment_name(name, number);
	int fd = openat(st->dirfd, name, (st->look ? O_RDONLY : O_RDWR) |
			O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &sb) < 0)
		return err_sys(e, "cannot open log segment %s", name);
	if (sb.st_size > (off_t)STORE_SEGMENT_MAX * 2)
		return err_set(e, ERR_SYS, "log segment %s is too large", name);
	uint32_t size = (uint32_t)sb.st_size;
	if (last && st->look && is_blank(fd, size)) {
		close(fd);
		return 0;
	}
	if (last && is_blank(fd, size)) {
		/* made, and never written to */
		if (store_write_head(fd) < 0)
			return err_sys(e, "cannot repair %s", name);
		size = SEG_HEAD_N;
	}
	uint8_t *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, "cannot read log segment %s", name);
	int rc = check_seg_head(p, name, e);
	uint32_t end = size;
	if (rc == 0)
		rc = store_push_segment(st, number, fd, size, e);
	if (rc == 0)
		rc = load_records(&st->seg[st->seg_n - 1],
				  &(struct image){ p, size, load_u32be(
						   p + SEG_MARK_N) },
				  last, rd, &end, e);
	munmap(p, size);
	if (rc == 0 && end < size) {
		*dropped += size - end;
		st->seg[st->seg_n - 1].size = end;
		if (st->look)
			return 0;
		if (ftruncate(fd, end) < 0 || fsync(fd) < 0)
			return err_sys(e, "cannot repair %s", name);
	}
	return rc;
}

static int segment_range(struct store *st, uint32_t *first, uint32_t *end,
			 struct err *e)
{
	char name[16];
	int fd = openat(st->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_sys(e, "cannot list the log");
	*first = UINT32_MAX;
	*end = 0;
	for (struct dirent *de; (de = readdir(d));) {
		unsigned v;
		if (sscanf(de->d_name, "%8x.log", &v) != 1)
			continue;
		store_segment_name(name, v);
		if (strcmp(name, de->d_name) != 0)
			continue;
		*first = v < *first ? v : *first;
		*end = v + 1 > *end ? v + 1 : *end;
	}
	closedir(d);
	return 0;
}

int store_load(struct store *st, const struct store_reader *rd,
	       uint64_t *dropped, struct err *e)
{
	uint32_t first = 0, end = 0;
	*dropped = 0;
	if (st->dirfd < 0)
		return 0;
	if (segment_range(st, &first, &end, e) < 0)
		return -1;
	if (!st->look)
		unlinkat(st->dirfd, STORE_NEW, 0);
	for (uint32_t i = first; i < end; i++)
		if (load_segment(st, i, i + 1 == end, rd, dropped, e) < 0)
			return -1;
	return 0;
}
