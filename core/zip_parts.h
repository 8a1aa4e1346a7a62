/* SPDX-License-Identifier: MIT
 *
 * zip_parts: what the files of the zip room share, and nobody else includes.
 *
 * zip_end.c finds the directory, zip.c reads the records, zip_name.c the names
 * in them, zip_data.c the entries' bytes; zip_write.c and zip_bundle.c make
 * archives. */
#ifndef AIRLOX_ZIP_PARTS_H
#define AIRLOX_ZIP_PARTS_H

#include "core/zip.h"

/* Sizes without the variable parts; signatures as little-endian numbers. */
#define ZIP_LOCAL_BYTES 30
#define ZIP_CENTRAL_BYTES 46
#define ZIP_END_BYTES 22
#define ZIP_END64_BYTES 56
#define ZIP_LOCATOR_BYTES 20
#define ZIP_DESCRIPTOR_BYTES 16

#define ZIP_LOCAL_SIG 0x04034b50u
#define ZIP_CENTRAL_SIG 0x02014b50u
#define ZIP_END_SIG 0x06054b50u
#define ZIP_END64_SIG 0x06064b50u
#define ZIP_LOCATOR_SIG 0x07064b50u
#define ZIP_DESCRIPTOR_SIG 0x08074b50u

#define ZIP_FLAG_ENCRYPTED 0x2041u	/* plain, strong, masked headers */
#define ZIP_FLAG_PATCH 0x0020u
#define ZIP_FLAG_DESCRIPTOR 0x0008u
#define ZIP_FLAG_UTF8 0x0800u
#define ZIP_STORED 0
#define ZIP_DEFLATED 8

static inline uint16_t zip_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t zip_u32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[1] << 8 | p[0];
}
static inline uint64_t zip_u64(const uint8_t *p)
{
	return (uint64_t)zip_u32(p + 4) << 32 | zip_u32(p);
}

/* Reads within the source or says "cut short". */
int zip_read(const struct zip_source *src, uint64_t off, void *to, size_t n,
	     struct err *e);

struct zip_directory {
	uint64_t base;		/* bytes before what offsets count from */
	uint64_t at, size;	/* of the central directory */
	uint64_t n;		/* entries */
};

/* Finds the end record and, by it, the directory; reads no entry. */
int zip_end_find(const struct zip_source *src, struct zip_directory *d,
		 struct err *e);

/* A name as its flags say it: UTF-8, or code page 437. */
int zip_name_decode(struct buf *out, struct bytes raw, bool utf8,
		    struct err *e);

/* What an archive of ours says of an entry. */
struct zip_record {
	struct buf path;	/* a directory's ends in a slash; owned */
	uint64_t offset;	/* of its local header */
	uint64_t size;
	uint32_t crc, mode;
	uint16_t flags;
};
void zip_put_local(struct buf *b, const struct zip_record *en);
void zip_put_central(struct buf *b, const struct zip_record *en);
/* n records of `size` bytes, beginning at `at`. */
void zip_put_end(struct buf *b, size_t n, uint64_t at, uint64_t size);

/* True when the source is zip_wrap_head || data || zip_wrap_tail. */
bool zip_wrap_matches(const struct zip_source *src,
		      const struct zip_entry *entry);

#endif
