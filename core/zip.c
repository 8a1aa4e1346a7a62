/* SPDX-License-Identifier: MIT
 *
 * The records of an archive.  Two readers that disagree about what an archive
 * holds are how content passes a check it should not: so there is one end
 * record, the central directory fills its place exactly, each local header
 * repeats what the directory says, and no byte belongs to two entries. */
#include <errno.h>
#include <string.h>

#include "core/clear.h"
#include "core/name.h"
#include "core/zip_parts.h"

#define MAX_DIRECTORY_BYTES ((uint64_t)32 << 20)
#define EXTRA_ZIP64 0x0001
#define EXTRA_UNICODE_PATH 0x7075
#define BLAMED_BYTES 100	/* of a name in a sentence */
#define MODE_TYPE 0170000u
#define MODE_FILE 0100000u
#define MODE_DIR 0040000u
#define MODE_EXEC 0000100u

struct record {
	uint16_t flags, method;
	uint32_t crc, mode;
	uint64_t size, compressed, offset;
	struct bytes raw;	/* the name */
};

static int read_bytes(void *arg, uint64_t off, void *to, size_t n)
{
	const struct bytes *b = arg;

	if (off > b->n || n > b->n - off)
		return -1;
	if (n)
		memcpy(to, b->p + off, n);
	return 0;
}

struct zip_source zip_source_bytes(struct bytes *file)
{
	return (struct zip_source){ read_bytes, file, file->n };
}

int zip_read(const struct zip_source *src, uint64_t off, void *to, size_t n,
	     struct err *e)
{
	if (off > src->size || n > src->size - off)
		return err_set(e, ERR_INVALID, "the archive is cut short");
	errno = 0;
	if (src->read(src->arg, off, to, n)) {
		if (!errno)
			errno = EIO;
		return err_sys(e, "cannot read the archive");
	}
	return 0;
}

/* --- one entry --- */

/* The field `id` of an extra block; .p is NULL where there is none. */
static struct bytes extra_find(struct bytes extra, uint16_t id)
{
	while (extra.n >= 4) {
		uint16_t n = zip_u16(extra.p + 2);
		if (n > extra.n - 4)
			break;
		if (zip_u16(extra.p) == id)
			return (struct bytes){ extra.p + 4, n };
		extra.p += 4 + n;
		extra.n -= 4u + n;
	}
	return (struct bytes){ NULL, 0 };
}

/* Takes the next 8 bytes of a zip64 block for a field that is full of ones. */
static int widen(struct bytes *extra, uint64_t *field, struct err *e)
{
	if (*field != UINT32_MAX)
		return 0;
	if (extra->n < 8)
		return err_set(e, ERR_INVALID,
			       "it lacks its 64-bit size");
	*field = zip_u64(extra->p);
	extra->p += 8;
	extra->n -= 8;
	return 0;
}

static int check_flags(const struct record *r, struct err *e)
{
	if (r->flags & ZIP_FLAG_ENCRYPTED)
		return err_set(e, ERR_INVALID, "it is encrypted");
	if (r->flags & ZIP_FLAG_PATCH)
		return err_set(e, ERR_INVALID, "it is a patch");
	if (r->method != ZIP_STORED && r->method != ZIP_DEFLATED)
		return err_set(e, ERR_INVALID,
			       "it is neither stored nor deflated "
			       "(method %u)", r->method);
	if (r->method == ZIP_STORED && r->size != r->compressed)
		return err_set(e, ERR_INVALID,
			       "it is stored but has two different sizes");
	return 0;
}

/* Reads the central record at *at and moves past it.  The unicode path that
 * some archivers add must not be a second name. */
static int read_central(struct bytes dir, size_t *at, struct record *r,
			struct bytes *path2, struct err *e)
{
	const uint8_t *p = dir.p + *at;
	size_t left = dir.n - *at;

	if (left < ZIP_CENTRAL_BYTES || zip_u32(p) != ZIP_CENTRAL_SIG)
		return err_set(e, ERR_INVALID, "the directory is damaged");
	size_t name = zip_u16(p + 28), extra = zip_u16(p + 30);
	size_t all = ZIP_CENTRAL_BYTES + name + extra + zip_u16(p + 32);
	if (all > left)
		return err_set(e, ERR_INVALID, "the directory is cut short");
	*r = (struct record){
		.flags = zip_u16(p + 8), .method = zip_u16(p + 10),
		.crc = zip_u32(p + 16), .compressed = zip_u32(p + 20),
		.size = zip_u32(p + 24), .offset = zip_u32(p + 42),
		.mode = zip_u32(p + 38) >> 16,
		.raw = { p + ZIP_CENTRAL_BYTES, name },
	};
	struct bytes ext = { r->raw.p + name, extra };
	struct bytes z64 = extra_find(ext, EXTRA_ZIP64);
	*path2 = extra_find(ext, EXTRA_UNICODE_PATH);
	*at += all;
	if (widen(&z64, &r->size, e) || widen(&z64, &r->compressed, e) ||
	    widen(&z64, &r->offset, e))
		return -1;
	return check_flags(r, e);
}

/* Sizes that follow the data may be zero in front of it. */
static bool size_agrees(uint64_t local, uint64_t central, bool follows)
{
	return local == central || (follows && local == 0);
}

static int compare_local(const struct record *r, const uint8_t *p,
			 struct bytes name, struct bytes extra, struct err *e)
{
	struct record l = {
		.flags = zip_u16(p + 6), .method = zip_u16(p + 8),
		.compressed = zip_u32(p + 18), .size = zip_u32(p + 22),
	};
	bool follows = l.flags & ZIP_FLAG_DESCRIPTOR;
	struct bytes z64 = extra_find(extra, EXTRA_ZIP64);

	if (l.flags & ZIP_FLAG_ENCRYPTED)
		return err_set(e, ERR_INVALID, "it is encrypted");
	if (widen(&z64, &l.size, e) || widen(&z64, &l.compressed, e))
		return -1;
	if (l.method != r->method || !bytes_eq(name, r->raw) ||
	    !size_agrees(l.size, r->size, follows) ||
	    !size_agrees(l.compressed, r->compressed, follows))
		return err_set(e, ERR_INVALID,
			       "it is not what the directory says");
	return 0;
}

/* Reads the local header, compares, and finds where the data begins. */
static int check_local(const struct zip_source *src,
		       const struct zip_directory *d, const struct record *r,
		       struct zip_entry *entry, struct err *e)
{
	uint8_t head[ZIP_LOCAL_BYTES];

	if (r->offset > d->at - d->base)
		return err_set(e, ERR_INVALID, "it lies outside");
	uint64_t at = d->base + r->offset;
	if (zip_read(src, at, head, sizeof head, e))
		return -1;
	if (zip_u32(head) != ZIP_LOCAL_SIG)
		return err_set(e, ERR_INVALID,
			       "it is not where the directory says");
	size_t name = zip_u16(head + 26), extra = zip_u16(head + 28);
	cleanup_free uint8_t *var = malloc(name + extra + 1);
	if (!var)
		return err_set(e, ERR_MEMORY, "out of memory");
	at += sizeof head;
	if (zip_read(src, at, var, name + extra, e))
		return -1;
	entry->data_offset = at + name + extra;
	if (entry->data_offset > d->at ||
	    entry->compressed_size > d->at - entry->data_offset)
		return err_set(e, ERR_INVALID,
			       "it reaches into the directory");
	return compare_local(r, head, (struct bytes){ var, name },
			     (struct bytes){ var + name, extra }, e);
}

static int check_size(const struct zip_entry *entry, struct err *e)
{
	if (entry->size > ZIP_MAX_ENTRY_BYTES)
		return err_set(e, ERR_INVALID, "it is over 512 MiB");
	if (entry->is_dir && entry->size)
		return err_set(e, ERR_INVALID,
			       "it is a directory with content");
	if (entry->size > ZIP_RATIO_FLOOR &&
	    entry->size > entry->compressed_size * ZIP_MAX_RATIO)
		return err_set(e, ERR_INVALID,
			       "it is packed more than %d:1",
			       ZIP_MAX_RATIO);
	return 0;
}

/* The mode counts whatever system the archive says it comes from. */
static int check_mode(uint32_t mode, struct err *e)
{
	uint32_t type = mode & MODE_TYPE;

	if (type && type != MODE_FILE && type != MODE_DIR)
		return err_set(e, ERR_INVALID,
			       "it is a link or a device");
	return 0;
}

static int set_path(struct zip_entry *entry, const struct record *r,
		    struct bytes path2, struct err *e)
{
	cleanup_buf struct buf path = { 0 };

	if (zip_name_decode(&path, r->raw, r->flags & ZIP_FLAG_UTF8, e))
		return -1;
	if (path2.p && (path2.n < 5 ||
			!bytes_eq((struct bytes){ path2.p + 5, path2.n - 5 },
				  buf_bytes(&path))))
		return err_set(e, ERR_INVALID, "it has two names");
	entry->is_dir = path.len && path.data[path.len - 1] == '/';
	if (entry->is_dir)
		path.len--;
	if (name_check_entry(buf_bytes(&path), e)) {
		if (e)
			e->code = ERR_INVALID;
		return -1;
	}
	entry->path = buf_steal(&path);
	if (!entry->path)
		return err_set(e, ERR_MEMORY, "out of memory");
	return 0;
}

/* Puts the entry's name in front of what is wrong with it. */
static int blame(const struct record *r, struct err *e)
{
	cleanup_buf struct buf name = { 0 };

	clear_escape(&name, r->raw);
	int n = (int)clear_cut(buf_bytes(&name), BLAMED_BYTES);
	return err_prefix(e, "entry '%.*s'", n,
			  n ? (const char *)name.data : "");
}

static int read_entry(const struct zip_source *src,
		      const struct zip_directory *d, struct bytes dir,
		      size_t *at, struct zip_entry *entry, uint64_t *begins,
		      struct err *e)
{
	struct record r = { 0 };
	struct bytes path2;

	if (read_central(dir, at, &r, &path2, e))
		return r.raw.p ? blame(&r, e) : -1;
	entry->size = r.size;
	entry->compressed_size = r.compressed;
	entry->crc = r.crc;
	entry->stored = r.method == ZIP_STORED;
	entry->is_exec = r.mode & MODE_EXEC;
	if (set_path(entry, &r, path2, e) || check_mode(r.mode, e) ||
	    check_size(entry, e) || check_local(src, d, &r, entry, e))
		return blame(&r, e);
	*begins = d->base + r.offset;
	return 0;
}

/* --- all entries --- */

struct extent {
	uint64_t from, to;
};

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static int check_overlap(struct extent *v, size_t n, struct err *e)
{
	qsort(v, n, sizeof *v, extent_order);
	for (size_t i = 1; i < n; i++)
		if (v[i].from < v[i - 1].to)
			return err_set(e, ERR_INVALID,
				       "two entries share their bytes");
	return 0;
}

static int read_entries(const struct zip_source *src,
			const struct zip_directory *d, struct bytes dir,
			struct zip_list *out, struct err *e)
{
	cleanup_free struct extent *spans = calloc(d->n, sizeof *spans);
	size_t at = 0;

	out->v = calloc(d->n, sizeof *out->v);
	if (!spans || !out->v)
		return err_set(e, ERR_MEMORY, "out of memory");
	while (out->n < d->n) {
		struct zip_entry *entry = &out->v[out->n];
		struct extent *span = &spans[out->n++];
		if (read_entry(src, d, dir, &at, entry, &span->from, e))
			return -1;
		span->to = entry->data_offset + entry->compressed_size;
		out->total += entry->size;
	}
	if (at != dir.n)
		return err_set(e, ERR_INVALID,
			       "the directory has more than its entries");
	return check_overlap(spans, out->n, e);
}

static int check_total(const struct zip_source *src,
		       const struct zip_list *list, struct err *e)
{
	if (list->total > ZIP_MAX_TOTAL_BYTES)
		return err_set(e, ERR_INVALID, "the content is over 1 GiB");
	if (list->total > ZIP_RATIO_FLOOR &&
	    list->total / ZIP_MAX_RATIO +
	    (list->total % ZIP_MAX_RATIO != 0) > src->size)
		return err_set(e, ERR_INVALID,
			       "the archive is packed more than %d:1",
			       ZIP_MAX_RATIO);
	return 0;
}

static int check_all(const struct zip_source *src, struct zip_list *out,
		     struct err *e)
{
	struct zip_directory d;

	if (zip_end_find(src, &d, e))
		return -1;
	if (d.n > ZIP_MAX_ENTRIES)
		return err_set(e, ERR_INVALID, "more than %d entries",
			       ZIP_MAX_ENTRIES);
	if (d.size > MAX_DIRECTORY_BYTES)
		return err_set(e, ERR_INVALID, "the directory is too large");
	if (d.n == 0)
		return d.size == 0 ? 0 : err_set(e, ERR_INVALID,
				"the directory has more than its entries");
	cleanup_free uint8_t *dir = malloc((size_t)d.size + 1);
	if (!dir)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (zip_read(src, d.at, dir, (size_t)d.size, e) ||
	    read_entries(src, &d, (struct bytes){ dir, (size_t)d.size },
			 out, e) ||
	    check_total(src, out, e) || zip_name_clash(out, e))
		return -1;
	out->wrap = out->n == 1 && zip_wrap_matches(src, &out->v[0]);
	return 0;
}

int zip_check(const struct zip_source *src, struct zip_list *out,
	      struct err *e)
{
	*out = (struct zip_list){ 0 };
	if (check_all(src, out, e) == 0)
		return 0;
	zip_list_free(out);
	return err_prefix(e, "zip");
}

void zip_list_free(struct zip_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i].path);
	free(list->v);
	*list = (struct zip_list){ 0 };
}

bool zip_is_wrap(const struct zip_list *list) { return list->wrap; }
