/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "core/host/file.h"
#include "core/host/vault_parts.h"
#include "core/prim.h"

#define SECTOR VAULT_SECTOR
#define BATCH 64			/* sectors in one pwrite */

static bool is_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

int vault_set_length(struct vault *v, uint64_t sectors, struct err *e)
{
	if (ftruncate(v->fd, (off_t)vault_place(sectors)) < 0)
		return err_sys(e, "cannot resize a draft");
	v->sectors = sectors;
	return 0;
}

/* Plaintext of sectors of the file. */
static int get(struct vault *v, uint64_t first, uint8_t *to, size_t count,
	       struct err *e)
{
	if (file_get_at(v->fd, to, count * SECTOR, vault_place(first), e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++, to += SECTOR)
		if (!is_zero(to, SECTOR) &&
		    aead_xts_open(v->xts, first + i, to, to, 1) < 0)
			return err_set(e, ERR_MEMORY, "cannot decrypt");
	return 0;
}

/* Makes sectors of the file zero; what is past its end is zero. */
static int put_zero(struct vault *v, uint64_t first, uint64_t count,
		    struct err *e)
{
	static const uint8_t zero[AEAD_SECTOR];

	if (first >= v->sectors)
		return 0;
	if (count > v->sectors - first)
		count = v->sectors - first;
	if (fallocate(v->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)vault_place(first), (off_t)(count * SECTOR)) == 0)
		return 0;
	for (; count; count--, first++)	/* a file system without holes */
		if (file_put_at(v->fd, zero, SECTOR, vault_place(first), e) < 0)
			return -1;
	return 0;
}

static int put_run(struct vault *v, uint64_t first, const uint8_t *from,
		   size_t count, struct err *e)
{
	uint8_t one[AEAD_SECTOR], *out = one;

	if (count > 1) {
		if (!v->batch)
			v->batch = malloc(BATCH * SECTOR);
		out = v->batch;
	}
	if (!out || aead_xts_seal(v->xts, first, out, from, count) < 0)
		return err_set(e, ERR_MEMORY, "no memory to encrypt a draft");
	if (file_put_at(v->fd, out, count * SECTOR, vault_place(first), e) < 0)
		return -1;
	if (first + count > v->sectors)
		v->sectors = first + count;
	return 0;
}

static int put(struct vault *v, uint64_t first, const uint8_t *from,
	       size_t count, struct err *e)
{
	while (count) {
		bool zero = is_zero(from, SECTOR);
		size_t run = 1;
		while (run < count && (zero || run < BATCH) &&
		       is_zero(from + run * SECTOR, SECTOR) == zero)
			run++;
		if (zero ? put_zero(v, first, run, e) < 0
			 : put_run(v, first, from, run, e) < 0)
			return -1;
		first += run;
		from += run * SECTOR;
		count -= run;
	}
	return 0;
}

/* n bytes within one sector.  A sector that starts at the length or past it
 * is zero, whatever the file has there. */
static int put_part(struct vault *v, uint64_t sector, size_t in,
		    const uint8_t *from, size_t n, struct err *e)
{
	uint8_t plain[AEAD_SECTOR] = { 0 };
	int r = 0;
	bool all = in == 0 && sector * SECTOR + n >= v->size;

	if (sector < v->sectors && !all)
		r = get(v, sector, plain, 1, e);
	if (r == 0) {
		memcpy(plain + in, from, n);
		r = put(v, sector, plain, 1, e);
	}
	prim_wipe(plain, sizeof plain);
	return r;
}

static int clean_tail(struct vault *v, struct err *e)
{
	static const uint8_t zero[AEAD_SECTOR];
	uint64_t end = vault_sectors_of(v->size);
	size_t in = v->size % SECTOR;

	if (!v->stale_tail)
		return 0;
	if (put_zero(v, end, UINT64_MAX, e) < 0 ||
	    (in && put_part(v, end - 1, in, zero, SECTOR - in, e) < 0))
		return -1;
	v->stale_tail = false;
	return 0;
}

static int get_part(struct vault *v, uint64_t sector, size_t in, uint8_t *to,
		    size_t n, struct err *e)
{
	uint8_t plain[AEAD_SECTOR];
	int r = get(v, sector, plain, 1, e);

	if (r == 0)
		memcpy(to, plain + in, n);
	prim_wipe(plain, sizeof plain);
	return r;
}

/* How many of n bytes at off are a part of one sector; 0: whole sectors. */
static size_t part_of(uint64_t off, size_t n)
{
	size_t in = off % SECTOR, left = SECTOR - in;

	if (in == 0 && n >= SECTOR)
		return 0;
	return n < left ? n : left;
}

ssize_t vault_read(struct vault *v, uint64_t off, void *to, size_t n,
		   struct err *e)
{
	uint8_t *p = to;

	if (off >= v->size)
		return 0;
	if (n > v->size - off)
		n = (size_t)(v->size - off);
	if (n > SSIZE_MAX)
		n = SSIZE_MAX;
	for (size_t left = n, step; left; left -= step) {
		uint64_t sector = off / SECTOR;
		step = part_of(off, left);
		if (step) {
			if (get_part(v, sector, off % SECTOR, p, step, e) < 0)
				return -1;
		} else {
			step = left - left % SECTOR;
			if (get(v, sector, p, step / SECTOR, e) < 0)
				return -1;
		}
		off += step;
		p += step;
	}
	return (ssize_t)n;
}

static int write_all(struct vault *v, uint64_t off, const uint8_t *p, size_t n,
		     struct err *e)
{
	for (size_t step; n; n -= step) {
		uint64_t sector = off / SECTOR;
		step = part_of(off, n);
		if (step) {
			if (put_part(v, sector, off % SECTOR, p, step, e) < 0)
				return -1;
		} else {
			step = n - n % SECTOR;
			if (put(v, sector, p, step / SECTOR, e) < 0)
				return -1;
		}
		off += step;
		p += step;
	}
	if (v->sectors < vault_sectors_of(off))
		return vault_set_length(v, vault_sectors_of(off), e);
	return 0;
}

/* After a write that failed: what it left past the length, if only a piece of
 * a sector, is freed now, or before the length grows. */
static void give_back(struct vault *v)
{
	int64_t size = file_size(v->fd, NULL);

	v->stale_tail = true;
	if (size > (int64_t)vault_place(v->sectors))
		vault_set_length(v, vault_sectors_of((uint64_t)size) -
				 VAULT_SLOTS, NULL);
	clean_tail(v, NULL);
}

int vault_write(struct vault *v, uint64_t off, const void *from, size_t n,
		struct err *e)
{
	if (n == 0)
		return 0;
	if (off > VAULT_BYTES_MAX || n > VAULT_BYTES_MAX - off)
		return err_set(e, ERR_SIZE, "too far into a draft");
	bool grows = off + n > v->size;
	if (grows && clean_tail(v, e) < 0)
		return -1;
	if (write_all(v, off, from, n, e) < 0) {
		give_back(v);
		return -1;
	}
	if (grows) {
		v->size = off + n;
		v->head_stale = true;
	}
	return 0;
}

int vault_truncate(struct vault *v, uint64_t size, struct err *e)
{
	uint64_t old = v->size;

	if (size > VAULT_BYTES_MAX)
		return err_set(e, ERR_SIZE, "too large for a draft");
	if (size > old && (clean_tail(v, e) < 0 ||
			   (vault_sectors_of(size) > v->sectors &&
			    vault_set_length(v, vault_sectors_of(size), e) < 0)))
		return -1;
	if (size == old)
		return 0;
	v->size = size;
	v->head_stale = true;
	if (size > old)
		return 0;
	if (vault_flush_header(v, e) < 0) {
		v->size = old;
		return -1;
	}
	v->stale_tail = true;
	clean_tail(v, NULL);	/* or before it grows again */
	return 0;
}
