/* SPDX-License-Identifier: MIT
 *
 * An archive that is a view: headers in memory, bodies where they are. */
#include <string.h>

#include "core/zip_parts.h"

struct part {
	struct zip_record en;
	struct buf head;	/* the local header, at en.offset */
	struct zip_source body;
};

struct zip_bundle {
	struct part *v;
	size_t n, cap;
	struct buf tail;
	uint64_t end, total;	/* where the tail begins; bytes of content */
};

struct zip_bundle *zip_bundle_new(void)
{
	return calloc(1, sizeof(struct zip_bundle));
}

void zip_bundle_free(struct zip_bundle *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++) {
		buf_free(&b->v[i].head);
		buf_free(&b->v[i].en.path);
	}
	buf_free(&b->tail);
	free(b->v);
	free(b);
}

static struct part *part_new(struct zip_bundle *b, struct err *e)
{
	if (b->n == ZIP_MAX_ENTRIES) {
		err_set(e, ERR_SIZE, "more than %d files for one archive",
			ZIP_MAX_ENTRIES);
		return NULL;
	}
	if (b->n == b->cap) {
		size_t cap = b->cap ? 2 * b->cap : 64;
		struct part *v = realloc(b->v, cap * sizeof *v);
		if (!v) {
			err_set(e, ERR_MEMORY, "out of memory");
			return NULL;
		}
		b->v = v;
		b->cap = cap;
	}
	struct part *p = &b->v[b->n++];
	*p = (struct part){ .en = { .offset = b->end,
				    .flags = ZIP_FLAG_UTF8 } };
	return p;
}

static int read_crc(struct zip_record *en, const struct zip_source *body,
		    struct err *e)
{
	uint8_t chunk[16 * 1024];

	while (en->size < body->size) {
		size_t n = body->size - en->size < sizeof chunk ?
			   (size_t)(body->size - en->size) : sizeof chunk;
		if (zip_read(body, en->size, chunk, n, e) < 0)
			return -1;
		en->crc = zip_crc32(en->crc, chunk, n);
		en->size += n;
	}
	explicit_bzero(chunk, sizeof chunk);
	return 0;
}

int zip_bundle_add(struct zip_bundle *b, struct bytes path,
		   const struct zip_source *body, bool is_exec, struct err *e)
{
	if (body->size > ZIP_MAX_ENTRY_BYTES)
		return err_set(e, ERR_SIZE, "a file is over 512 MiB");
	if (body->size > ZIP_MAX_TOTAL_BYTES - b->total)
		return err_set(e, ERR_SIZE, "the files are over 1 GiB");
	struct part *p = part_new(b, e);
	if (!p)
		return -1;
	buf_add(&p->en.path, path.p, path.n);
	p->en.mode = is_exec ? 0100755 : 0100644;
	if (read_crc(&p->en, body, e) < 0)
		return -1;
	zip_put_local(&p->head, &p->en);
	p->body = *body;
	b->total += body->size;
	b->end += p->head.len + body->size;
	return p->en.path.failed || p->head.failed ?
		err_set(e, ERR_MEMORY, "out of memory") : 0;
}

/* What of [off, off + n) lies in the piece_n bytes at `at`: from memory, or
 * from the body where mem is NULL. */
static int read_piece(const struct zip_source *body, const uint8_t *mem,
		      uint64_t at, uint64_t piece_n, uint64_t off, uint8_t *to,
		      size_t n)
{
	uint64_t from = off > at ? off : at;
	uint64_t end = off + n < at + piece_n ? off + n : at + piece_n;

	if (from >= end)
		return 0;
	if (mem) {
		memcpy(to + (from - off), mem + (from - at),
		       (size_t)(end - from));
		return 0;
	}
	return body->read(body->arg, from - at, to + (from - off),
			  (size_t)(end - from));
}

/* The last part that begins at or before off. */
static size_t part_at(const struct zip_bundle *b, uint64_t off)
{
	size_t low = 0, high = b->n;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;
		if (b->v[mid].en.offset <= off)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static int bundle_read(void *arg, uint64_t off, void *to, size_t n)
{
	const struct zip_bundle *b = arg;
	size_t i = part_at(b, off);

	for (; i < b->n && b->v[i].en.offset < off + n; i++) {
		const struct part *p = &b->v[i];
		if (read_piece(NULL, p->head.data, p->en.offset, p->head.len, off,
			       to, n) < 0 ||
		    read_piece(&p->body, NULL, p->en.offset + p->head.len,
			       p->body.size, off, to, n) < 0)
			return -1;
	}
	return read_piece(NULL, b->tail.data, b->end, b->tail.len, off, to, n);
}

int zip_bundle_source(struct zip_bundle *b, struct zip_source *out,
		      struct err *e)
{
	buf_reset(&b->tail);
	for (size_t i = 0; i < b->n; i++)
		zip_put_central(&b->tail, &b->v[i].en);
	zip_put_end(&b->tail, b->n, b->end, b->tail.len);
	if (b->tail.failed)
		return err_set(e, ERR_MEMORY, "out of memory");
	*out = (struct zip_source){ bundle_read, b, b->end + b->tail.len };
	return 0;
}
