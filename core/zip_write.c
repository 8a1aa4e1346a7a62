/* SPDX-License-Identifier: MIT
 *
 * Archives we make: entries stored, so that a range of an entry is a range of
 * the archive, and nothing about the writer in them (no time, no owner). */
#include <errno.h>
#include <string.h>

#include "core/zip_parts.h"

#define VERSION 20		/* 2.0: directories, deflate */
#define MADE_BY (3 << 8 | VERSION)	/* on a Unix: modes in the records */
#define NO_TIME 0
#define NO_DATE 0x21		/* 1980-01-01, the first there is */

static void add_u16(struct buf *b, uint16_t v)
{
	buf_add(b, (const uint8_t[]){ (uint8_t)v, (uint8_t)(v >> 8) }, 2);
}

static void add_u32(struct buf *b, uint32_t v)
{
	add_u16(b, (uint16_t)v);
	add_u16(b, (uint16_t)(v >> 16));
}

/* Version needed to file name length: what both headers share. */
static void add_common(struct buf *b, const struct zip_record *en,
		       uint32_t crc, uint32_t size)
{
	add_u16(b, VERSION);
	add_u16(b, en->flags);
	add_u16(b, ZIP_STORED);
	add_u16(b, NO_TIME);
	add_u16(b, NO_DATE);
	add_u32(b, crc);
	add_u32(b, size);
	add_u32(b, size);
	add_u16(b, (uint16_t)en->path.len);
	add_u16(b, 0);
}

void zip_put_local(struct buf *b, const struct zip_record *en)
{
	bool follows = en->flags & ZIP_FLAG_DESCRIPTOR;

	add_u32(b, ZIP_LOCAL_SIG);
	add_common(b, en, follows ? 0 : en->crc,
		   follows ? 0 : (uint32_t)en->size);
	buf_add(b, en->path.data, en->path.len);
}

void zip_put_central(struct buf *b, const struct zip_record *en)
{
	add_u32(b, ZIP_CENTRAL_SIG);
	add_u16(b, MADE_BY);
	add_common(b, en, en->crc, (uint32_t)en->size);
	add_u16(b, 0);				/* comment */
	add_u16(b, 0);				/* disk */
	add_u16(b, 0);				/* internal attributes */
	add_u32(b, en->mode << 16);
	add_u32(b, (uint32_t)en->offset);
	buf_add(b, en->path.data, en->path.len);
}

void zip_put_end(struct buf *b, size_t n, uint64_t at, uint64_t size)
{
	add_u32(b, ZIP_END_SIG);
	add_u32(b, 0);				/* disks */
	add_u16(b, (uint16_t)n);
	add_u16(b, (uint16_t)n);
	add_u32(b, (uint32_t)size);
	add_u32(b, (uint32_t)at);
	add_u16(b, 0);				/* comment */
}

/* --- a file as an archive --- */

static struct zip_record wrap_entry(struct bytes name, struct zip_wrap w)
{
	struct zip_record en = {
		.size = w.size, .crc = w.crc, .mode = 0100644,
		.flags = ZIP_FLAG_UTF8,
	};
	buf_add(&en.path, name.p, name.n);
	return en;
}

uint64_t zip_wrap_extra(struct bytes name)
{
	return ZIP_LOCAL_BYTES + ZIP_CENTRAL_BYTES + ZIP_END_BYTES +
	       2 * (uint64_t)name.n;
}

void zip_wrap_head(struct buf *out, struct bytes name, struct zip_wrap w)
{
	struct zip_record en = wrap_entry(name, w);

	zip_put_local(out, &en);
	out->failed |= en.path.failed;
	buf_free(&en.path);
}

void zip_wrap_tail(struct buf *out, struct bytes name, struct zip_wrap w)
{
	struct zip_record en = wrap_entry(name, w);

	zip_put_central(out, &en);
	zip_put_end(out, 1, ZIP_LOCAL_BYTES + name.n + w.size,
		ZIP_CENTRAL_BYTES + name.n);
	out->failed |= en.path.failed;
	buf_free(&en.path);
}

static bool has_at(const struct zip_source *src, uint64_t at,
		   const struct buf *want)
{
	cleanup_free uint8_t *got = malloc(want->len);

	return !want->failed && got &&
	       zip_read(src, at, got, want->len, NULL) == 0 &&
	       memcmp(got, want->data, want->len) == 0;
}

bool zip_wrap_matches(const struct zip_source *src,
		      const struct zip_entry *entry)
{
	struct bytes name = bytes_str(entry->path);
	struct zip_wrap w = { entry->size, entry->crc };
	cleanup_buf struct buf head = { 0 }, tail = { 0 };

	if (!entry->stored || entry->is_dir || strchr(entry->path, '/') ||
	    src->size != entry->size + zip_wrap_extra(name))
		return false;
	zip_wrap_head(&head, name, w);
	zip_wrap_tail(&tail, name, w);
	return has_at(src, 0, &head) &&
	       has_at(src, head.len + entry->size, &tail);
}

/* --- a tree as an archive --- */

struct zip_writer {
	struct zip_sink sink;
	struct zip_record *v;
	size_t n, cap;
	uint64_t at, total;	/* bytes written; bytes of content */
};

struct zip_writer *zip_writer_new(struct zip_sink sink)
{
	struct zip_writer *w = calloc(1, sizeof *w);

	if (w)
		w->sink = sink;
	return w;
}

void zip_writer_free(struct zip_writer *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		buf_free(&w->v[i].path);
	free(w->v);
	free(w);
}

uint64_t zip_writer_size(const struct zip_writer *w) { return w->at; }

static int put(struct zip_writer *w, const void *p, size_t n, struct err *e)
{
	errno = 0;
	if (n && w->sink.take(w->sink.arg, p, n)) {
		if (!errno)
			errno = EIO;
		return err_sys(e, "cannot write the archive");
	}
	w->at += n;
	return 0;
}

static int put_buf(struct zip_writer *w, const struct buf *b, struct err *e)
{
	if (b->failed)
		return err_set(e, ERR_MEMORY, "out of memory");
	return put(w, b->data, b->len, e);
}

static struct zip_record *entry_new(struct zip_writer *w, struct err *e)
{
	if (w->n == ZIP_MAX_ENTRIES) {
		err_set(e, ERR_SIZE, "more than %d files for one archive",
			ZIP_MAX_ENTRIES);
		return NULL;
	}
	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		struct zip_record *v = realloc(w->v, cap * sizeof *v);
		if (!v) {
			err_set(e, ERR_MEMORY, "out of memory");
			return NULL;
		}
		w->v = v;
		w->cap = cap;
	}
	struct zip_record *en = &w->v[w->n++];
	*en = (struct zip_record){ .offset = w->at };
	return en;
}

int zip_writer_begin(struct zip_writer *w, struct bytes path, bool is_dir,
		     bool is_exec, struct err *e)
{
	struct zip_record *en = entry_new(w, e);
	cleanup_buf struct buf head = { 0 };

	if (!en)
		return -1;
	buf_add(&en->path, path.p, path.n);
	if (is_dir)
		buf_add_byte(&en->path, '/');
	en->mode = is_dir ? 0040755 : is_exec ? 0100755 : 0100644;
	en->flags = ZIP_FLAG_UTF8 | (is_dir ? 0 : ZIP_FLAG_DESCRIPTOR);
	zip_put_local(&head, en);
	head.failed |= en->path.failed;
	return put_buf(w, &head, e);
}

int zip_writer_data(struct zip_writer *w, const void *p, size_t n,
		    struct err *e)
{
	struct zip_record *en = &w->v[w->n - 1];

	if (n > ZIP_MAX_ENTRY_BYTES - en->size)
		return err_set(e, ERR_SIZE, "a file is over 512 MiB");
	if (n > ZIP_MAX_TOTAL_BYTES - w->total)
		return err_set(e, ERR_SIZE, "the files are over 1 GiB");
	en->crc = zip_crc32(en->crc, p, n);
	en->size += n;
	w->total += n;
	return put(w, p, n, e);
}

int zip_writer_end(struct zip_writer *w, struct err *e)
{
	const struct zip_record *en = &w->v[w->n - 1];
	cleanup_buf struct buf b = { 0 };

	if (!(en->flags & ZIP_FLAG_DESCRIPTOR))
		return 0;
	add_u32(&b, ZIP_DESCRIPTOR_SIG);
	add_u32(&b, en->crc);
	add_u32(&b, (uint32_t)en->size);
	add_u32(&b, (uint32_t)en->size);
	return put_buf(w, &b, e);
}

int zip_writer_finish(struct zip_writer *w, struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	uint64_t at = w->at;

	for (size_t i = 0; i < w->n; i++)
		zip_put_central(&b, &w->v[i]);
	zip_put_end(&b, w->n, at, b.len);
	return put_buf(w, &b, e);
}
