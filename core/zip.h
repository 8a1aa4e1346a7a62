/* SPDX-License-Identifier: MIT
 *
 * zip: archives, read strictly and written plainly (docs/PROTOCOL.md, section
 * 6, ZIP; PKWARE's APPNOTE 6.3.10).
 *
 * The reader goes by the central directory and insists that every local
 * header tells the same story, that no two entries share bytes, and that the
 * limits hold by what the records claim; zip_verify and zip_extract_entry
 * then hold the data to the claims.  Neither memory nor a descriptor is
 * presumed: a source is read at random, a sink takes bytes in order. */
#ifndef AIRLOX_ZIP_H
#define AIRLOX_ZIP_H

#include "core/buf.h"
#include "core/err.h"

#define ZIP_MAX_ENTRIES 10000
#define ZIP_MAX_ENTRY_BYTES ((uint64_t)512 << 20)
#define ZIP_MAX_TOTAL_BYTES ((uint64_t)1 << 30)
#define ZIP_MAX_RATIO 100
#define ZIP_RATIO_FLOOR ((uint64_t)1 << 20)

/* Reads exactly n bytes at off (off + n <= size, always): 0, or -1. */
struct zip_source {
	int (*read)(void *arg, uint64_t off, void *to, size_t n);
	void *arg;
	uint64_t size;
};

/* Takes n bytes, in order: 0, or -1 to stop. */
struct zip_sink {
	int (*take)(void *arg, const void *p, size_t n);
	void *arg;
};

struct zip_entry {
	char *path;		/* UTF-8, checked, no trailing slash */
	uint64_t size, compressed_size;
	uint64_t data_offset;	/* of its first byte in the archive */
	uint32_t crc;
	bool is_dir, stored, is_exec;	/* is_exec: the owner's x bit */
};

struct zip_list {
	struct zip_entry *v;	/* in the central directory's order */
	size_t n;
	uint64_t total;		/* sum of the sizes */
	bool wrap;		/* see zip_is_wrap */
};

/* A source over bytes in memory: arg points to a struct bytes that stays. */
struct zip_source zip_source_bytes(struct bytes *file);

/* Every rule of the protocol.  ERR_INVALID, or what the source gave (ERR_SYS).
 * On failure *out is empty.  The caller frees with zip_list_free. */
int zip_check(const struct zip_source *src, struct zip_list *out,
	      struct err *e);
void zip_list_free(struct zip_list *list);

/* Hands the entry's content to the sink: never more than entry->size bytes,
 * and success means exactly that many with the right CRC.  ERR_CONTENT when
 * the data is broken, ERR_SYS when the source or the sink fails. */
int zip_extract_entry(const struct zip_source *src,
		      const struct zip_entry *entry, struct zip_sink sink,
		      struct err *e);

/* All entries through zip_extract_entry, to nowhere. */
int zip_verify(const struct zip_source *src, const struct zip_list *list,
	       struct err *e);

/* --- a file of any type as "a stored zip of one entry" ---
 * archive = head || the file's bytes || tail.  The same name and bytes give
 * the same archive. */
#define ZIP_WRAP_MAX_BYTES (30 + 46 + 22 + 2 * 255)

struct zip_wrap {
	uint64_t size;		/* at most ZIP_MAX_ENTRY_BYTES */
	uint32_t crc;		/* zip_crc32 of the file */
};
/* What an archive of a file named `name` has more than the file. */
uint64_t zip_wrap_extra(struct bytes name);
void zip_wrap_head(struct buf *out, struct bytes name, struct zip_wrap w);
void zip_wrap_tail(struct buf *out, struct bytes name, struct zip_wrap w);

/* The archive that list was read from is, byte for byte but for the content,
 * what zip_wrap_* make: its one entry is v[0], readable by range at
 * data_offset. */
bool zip_is_wrap(const struct zip_list *list);

/* CRC-32 of ZIP; start with 0 and hand the result back in for more bytes. */
uint32_t zip_crc32(uint32_t crc, const void *p, size_t n);

/* --- several entries, stored, written as a stream ---
 * Sizes need not be known before: they follow the data.  Paths are checked
 * by the caller (name_check_entry).  After a failure only zip_writer_free is
 * of use. */
struct zip_writer;

struct zip_writer *zip_writer_new(struct zip_sink sink);
/* A directory has no data: begin, then end. */
int zip_writer_begin(struct zip_writer *w, struct bytes path, bool is_dir,
		     bool is_exec, struct err *e);
int zip_writer_data(struct zip_writer *w, const void *p, size_t n,
		    struct err *e);
int zip_writer_end(struct zip_writer *w, struct err *e);
/* Writes the central directory.  Then free. */
int zip_writer_finish(struct zip_writer *w, struct err *e);
uint64_t zip_writer_size(const struct zip_writer *w); /* bytes so far */
void zip_writer_free(struct zip_writer *w);

/* --- several files, stored, as an archive that is never written down ---
 * Headers are in memory, the bodies stay where they are: they are read at
 * zip_bundle_add for their CRC and must not change until the bundle is freed.
 * Paths are checked by the caller, as for a writer. */
struct zip_bundle;

struct zip_bundle *zip_bundle_new(void);
int zip_bundle_add(struct zip_bundle *b, struct bytes path,
		   const struct zip_source *body, bool is_exec,
		   struct err *e);
/* No more is added after this.  The source is good as long as the bundle. */
int zip_bundle_source(struct zip_bundle *b, struct zip_source *out,
		      struct err *e);
void zip_bundle_free(struct zip_bundle *b);

/* No two paths alike, and no file where a directory must be: ERR_INVALID.
 * Only path and is_dir are looked at. */
int zip_name_clash(const struct zip_list *list, struct err *e);

#endif
