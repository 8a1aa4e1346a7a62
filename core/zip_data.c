/* SPDX-License-Identifier: MIT
 *
 * The bytes of an entry, held to what its record declared. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "core/zip_parts.h"

#define CHUNK_BYTES ((size_t)65536)

/* One entry on its way out. */
struct flow {
	const struct zip_source *src;
	struct zip_sink sink;
	uint64_t at, left;	/* compressed bytes in the archive */
	uint64_t declared, given;
	uint32_t crc;
	uint8_t in[CHUNK_BYTES], out[CHUNK_BYTES];
};

uint32_t zip_crc32(uint32_t crc, const void *p, size_t n)
{
	return (uint32_t)crc32_z(crc, p, n);
}

/* Fills f->in; the number of bytes, 0 at the end, -1 on error. */
static ssize_t flow_fill(struct flow *f, struct err *e)
{
	size_t n = f->left < CHUNK_BYTES ? (size_t)f->left : CHUNK_BYTES;

	if (n && zip_read(f->src, f->at, f->in, n, e))
		return -1;
	f->at += n;
	f->left -= n;
	return (ssize_t)n;
}

static int flow_give(struct flow *f, const uint8_t *p, size_t n,
		     struct err *e)
{
	if (n > f->declared - f->given)
		return err_set(e, ERR_CONTENT,
			       "zip: an entry is longer than it declares");
	f->crc = zip_crc32(f->crc, p, n);
	f->given += n;
	errno = 0;
	if (n && f->sink.take && f->sink.take(f->sink.arg, p, n)) {
		if (!errno)
			errno = EIO;
		return err_sys(e, "cannot write an archive's entry");
	}
	return 0;
}

static int flow_stored(struct flow *f, struct err *e)
{
	ssize_t n;

	while ((n = flow_fill(f, e)) > 0)
		if (flow_give(f, f->in, (size_t)n, e))
			return -1;
	return n < 0 ? -1 : 0;
}

/* Everything inflate makes of what it holds now. */
static int inflate_some(struct flow *f, z_stream *z, int *state,
			struct err *e)
{
	do {
		z->next_out = f->out;
		z->avail_out = CHUNK_BYTES;
		*state = inflate(z, Z_NO_FLUSH);
		if (*state == Z_MEM_ERROR)
			return err_set(e, ERR_MEMORY, "out of memory");
		if (*state != Z_OK && *state != Z_STREAM_END &&
		    *state != Z_BUF_ERROR)
			return err_set(e, ERR_CONTENT,
				       "zip: an entry's data is damaged");
		if (flow_give(f, f->out, CHUNK_BYTES - z->avail_out, e))
			return -1;
	} while (*state == Z_OK && (z->avail_in || !z->avail_out));
	return 0;
}

static int flow_inflate(struct flow *f, struct err *e)
{
	z_stream z = { 0 };
	int state = Z_OK, r = 0;
	ssize_t n = 0;

	if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
		return err_set(e, ERR_MEMORY, "out of memory");
	while (r == 0 && state != Z_STREAM_END && (n = flow_fill(f, e)) > 0) {
		z.next_in = f->in;
		z.avail_in = (uInt)n;
		r = inflate_some(f, &z, &state, e);
	}
	inflateEnd(&z);
	if (r || n < 0)
		return -1;
	if (state != Z_STREAM_END)
		return err_set(e, ERR_CONTENT,
			       "zip: an entry's data is cut short");
	return 0;
}

int zip_extract_entry(const struct zip_source *src,
		      const struct zip_entry *entry, struct zip_sink sink,
		      struct err *e)
{
	if (entry->is_dir)
		return 0;
	cleanup_free struct flow *f = malloc(sizeof *f);
	if (!f)
		return err_set(e, ERR_MEMORY, "out of memory");
	f->src = src;
	f->sink = sink;
	f->at = entry->data_offset;
	f->left = entry->compressed_size;
	f->declared = entry->size;
	f->given = 0;
	f->crc = 0;
	int r = entry->stored ? flow_stored(f, e) : flow_inflate(f, e);
	if (r == 0 && f->given != f->declared)
		r = err_set(e, ERR_CONTENT,
			    "zip: an entry is shorter than it declares");
	if (r == 0 && f->crc != entry->crc)
		r = err_set(e, ERR_CONTENT,
			    "zip: an entry's checksum is wrong");
	explicit_bzero(f, sizeof *f);
	return r;
}

int zip_verify(const struct zip_source *src, const struct zip_list *list,
	       struct err *e)
{
	for (size_t i = 0; i < list->n; i++)
		if (zip_extract_entry(src, &list->v[i],
				      (struct zip_sink){ 0 }, e))
			return -1;
	return 0;
}
