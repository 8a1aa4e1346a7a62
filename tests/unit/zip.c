/* SPDX-License-Identifier: MIT
 *
 * Goal: what we write is read back, and an archive that tells two stories is
 * refused.  The conformance vectors hold the rules one by one. */
#include "core/zip_parts.h"
#include "tests/unit/tap.h"

/* One hand-made entry: what the local header says, then the directory. */
struct made {
	const char *local, *central, *data;
	uint32_t local_size, central_size;
	uint32_t mode;
	uint16_t local_flags, flags, local_method, method;
	uint32_t shift;		/* added to the offset */
};

static void u16(struct buf *b, uint32_t v)
{
	buf_add_byte(b, (uint8_t)v);
	buf_add_byte(b, (uint8_t)(v >> 8));
}

static void u32(struct buf *b, uint32_t v)
{
	u16(b, v & 0xffff);
	u16(b, v >> 16);
}

static uint32_t crc_of(const struct made *m)
{
	return zip_crc32(0, m->data, strlen(m->data));
}

static void add_local(struct buf *b, const struct made *m)
{
	u32(b, ZIP_LOCAL_SIG);
	u16(b, 20);
	u16(b, m->local_flags);
	u16(b, m->local_method);
	u32(b, 0x210000);
	u32(b, crc_of(m));
	u32(b, m->local_size);
	u32(b, m->local_size);
	u16(b, (uint32_t)strlen(m->local));
	u16(b, 0);
	buf_add_str(b, m->local);
	buf_add_str(b, m->data);
}

static void add_central(struct buf *b, const struct made *m, uint32_t at)
{
	u32(b, ZIP_CENTRAL_SIG);
	u16(b, 0x314);
	u16(b, 20);
	u16(b, m->flags);
	u16(b, m->method);
	u32(b, 0x210000);
	u32(b, crc_of(m));
	u32(b, m->central_size);
	u32(b, m->central_size);
	u16(b, (uint32_t)strlen(m->central));
	u32(b, 0);
	u32(b, 0);
	u32(b, m->mode << 16);
	u32(b, at + m->shift);
	buf_add_str(b, m->central);
}

static void add_end(struct buf *b, uint32_t n, uint32_t at, uint32_t size)
{
	u32(b, ZIP_END_SIG);
	u32(b, 0);
	u16(b, n);
	u16(b, n);
	u32(b, size);
	u32(b, at);
	u16(b, 0);
}

static void make(struct buf *b, const struct made *m, uint32_t n)
{
	struct buf dir = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)b->len;
		add_local(b, &m[i]);
		add_central(&dir, &m[i], at);
	}
	uint32_t at = (uint32_t)b->len;
	buf_add(b, dir.data, dir.len);
	add_end(b, n, at, (uint32_t)dir.len);
	buf_free(&dir);
}

static int check(const struct buf *b, struct zip_list *list, struct err *e)
{
	struct bytes file = buf_bytes(b);
	struct zip_source src = zip_source_bytes(&file);

	return zip_check(&src, list, e);
}

/* why is NULL for an archive that must pass, else in the sentence. */
static void is_made(struct made *m, uint32_t n, const char *why,
		    const char *what)
{
	cleanup_buf struct buf b = { 0 };
	struct zip_list list;
	struct err e = { 0 };

	make(&b, m, n);
	is_int(check(&b, &list, &e), why ? -1 : 0, "%s: %s", what, e.why);
	if (why) {
		is_int(e.code, ERR_INVALID, "  is invalid");
		ok(strstr(e.why, why), "  because %s", why);
	}
	zip_list_free(&list);
}

static const struct made plain = {
	.local = "a", .central = "a", .data = "hi",
	.local_size = 2, .central_size = 2, .mode = 0100644,
};

#define STORY(why, change) do { \
		struct made m_ = plain; \
		m_.change; \
		is_made(&m_, 1, why, #change); \
	} while (0)

static void check_stories(void)
{
	STORY(NULL, mode = 0);
	STORY(NULL, mode = 0104755);
	STORY("link or a device", mode = 0120777);
	STORY("link or a device", mode = 0010644);
	STORY("link or a device", mode = 0060644);
	STORY("link or a device", mode = 0140644);
	STORY("not what", local = "b");
	STORY("not what", central = "aa");
	STORY("not what", local_size = 3);
	STORY("not what", local_size = 0);
	STORY("not what", central_size = 1);
	STORY("reaches into", central_size = 200);
	STORY("not what", local_method = 8);
	STORY("not what", method = 8);
	STORY("neither", method = 12);
	STORY("encrypted", flags = 1);
	STORY("encrypted", local_flags = 1);
	STORY("encrypted", flags = 0x40);
	STORY("patch", flags = 0x20);
	STORY("not where", shift = 1);
	STORY("outside", shift = 0x7fffffff);
	STORY("64-bit", shift = 0xffffffff);
}

static void check_names(void)
{
	struct made m[2] = { plain, plain };

	m[0].local_flags = 8;
	m[0].local_size = 0;
	is_made(m, 1, NULL, "sizes that follow the data");
	m[0] = plain;
	m[0].local = m[0].central = "a/";
	is_made(m, 1, "directory with content", "a/ of two bytes");
	m[0] = plain;
	m[0].local = m[0].central = "a\xff";
	is_made(m, 1, NULL, "code page 437");
	m[0].flags = ZIP_FLAG_UTF8;
	is_made(m, 1, "not valid UTF-8", "a name that is no UTF-8");
	m[0] = plain;
	m[1] = plain;
	is_made(m, 2, "one name", "two of one name");
	m[1].local = m[1].central = "a/b";
	is_made(m, 2, "below a file", "a and a/b");
	m[1].local = m[1].central = "A/b";
	is_made(m, 2, "below a file", "a and A/b");
}

/* Two records for one place, and one whose data holds another's all. */
static void check_overlap(void)
{
	cleanup_buf struct buf b = { 0 }, inner = { 0 };
	struct made m = plain;
	struct err e = { 0 };
	struct zip_list list;

	add_local(&inner, &m);
	struct made outer = {
		.local = "b", .central = "b", .data = "",
		.local_size = (uint32_t)inner.len,
		.central_size = (uint32_t)inner.len,
	};
	add_local(&b, &outer);
	m.shift = (uint32_t)b.len;
	buf_add(&b, inner.data, inner.len);
	uint32_t at = (uint32_t)b.len;
	add_central(&b, &outer, 0);
	add_central(&b, &m, 0);
	add_end(&b, 2, at, (uint32_t)b.len - at);
	is_int(check(&b, &list, &e), -1, "an entry inside another");
	is_str(e.why, "zip: two entries share their bytes", "is said so");
}

static int sink_buf(void *arg, const void *p, size_t n)
{
	buf_add(arg, p, n);
	return 0;
}

static void write_tree(struct buf *out)
{
	struct zip_writer *w =
		zip_writer_new((struct zip_sink){ sink_buf, out });
	struct err e = { 0 };
	size_t before = out->len;
	int r = 0;

	r |= zip_writer_begin(w, bytes_str("d"), true, false, &e);
	r |= zip_writer_end(w, &e);
	r |= zip_writer_begin(w, bytes_str("d/run"), false, true, &e);
	r |= zip_writer_data(w, "#!/bin/sh\n", 10, &e);
	r |= zip_writer_data(w, "echo\n", 5, &e);
	r |= zip_writer_end(w, &e);
	r |= zip_writer_begin(w, bytes_str("caf\u00e9"), false, false, &e);
	r |= zip_writer_end(w, &e);
	r |= zip_writer_finish(w, &e);
	is_int(r, 0, "a tree is written: %s", e.why);
	is_int(zip_writer_size(w), out->len - before, "its size is known");
	zip_writer_free(w);
}

static void check_tree(void)
{
	cleanup_buf struct buf b = { 0 }, got = { 0 };
	struct zip_list list;
	struct err e = { 0 };

	write_tree(&b);
	if (!is_int(check(&b, &list, &e), 0, "and read: %s", e.why))
		return;
	struct bytes file = buf_bytes(&b);
	struct zip_source src = zip_source_bytes(&file);
	is_int(list.n, 3, "three entries");
	is_str(list.v[0].path, "d", "a directory, no slash");
	ok(list.v[0].is_dir && !list.v[1].is_dir, "one is a directory");
	ok(list.v[1].is_exec && !list.v[2].is_exec, "one can be run");
	is_str(list.v[2].path, "caf\u00e9", "a name in UTF-8");
	is_int(zip_extract_entry(&src, &list.v[1],
				 (struct zip_sink){ sink_buf, &got }, &e), 0,
	       "its content comes out");
	is_str(buf_cstr(&got), "#!/bin/sh\necho\n", "and is the same");
	is_int(zip_verify(&src, &list, &e), 0, "all of it verifies");
	ok(!zip_is_wrap(&list), "a tree is no wrapped file");
	b.data[list.v[1].data_offset] ^= 1;
	is_int(zip_verify(&src, &list, &e), -1, "a changed byte does not");
	is_int(e.code, ERR_CONTENT, "for its content");
	zip_list_free(&list);
}

/* Cut anywhere, or with any byte changed: no crash, and whatever still passes
 * gives no entry more than it declares. */
static void check_damage(void)
{
	cleanup_buf struct buf b = { 0 };
	struct zip_list list;
	size_t passed = 0;

	write_tree(&b);
	for (size_t n = 0; n < b.len; n++) {
		struct bytes part = { b.data, n };
		struct zip_source src = zip_source_bytes(&part);
		passed += zip_check(&src, &list, NULL) == 0;
		zip_list_free(&list);
	}
	is_int(passed, 0, "cut short anywhere it is refused");
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 0xff;
		struct bytes all = buf_bytes(&b);
		struct zip_source src = zip_source_bytes(&all);
		if (zip_check(&src, &list, NULL) == 0)
			zip_verify(&src, &list, NULL);
		zip_list_free(&list);
		b.data[i] ^= 0xff;
	}
	ok(1, "each byte changed, and alive");
}

static void make_wrap(struct buf *b, struct bytes name, struct bytes data)
{
	struct zip_wrap w = { data.n, zip_crc32(0, data.p, data.n) };

	zip_wrap_head(b, name, w);
	buf_add(b, data.p, data.n);
	zip_wrap_tail(b, name, w);
}

static void check_wrap(void)
{
	static const char *const names[] = { "table.csv", "caf\u00e9.bin" };
	static const char *const texts[] = { "a,b\n1,2\n", "", "PK\5\6" };

	for (size_t i = 0; i < 6; i++) {
		cleanup_buf struct buf b = { 0 };
		struct bytes name = bytes_str(names[i % 2]);
		struct bytes data = bytes_str(texts[i / 2]);
		struct zip_list list;
		struct err e = { 0 };

		make_wrap(&b, name, data);
		is_int(b.len, data.n + zip_wrap_extra(name), "size known");
		if (!is_int(check(&b, &list, &e), 0, "wrap: %s", e.why))
			continue;
		ok(zip_is_wrap(&list), "known as a wrapped file");
		is_str(list.v[0].path, names[i % 2], "by its name");
		is_mem(b.data + list.v[0].data_offset, data.p, data.n,
		       "its bytes are the file's");
		zip_list_free(&list);
		buf_add_byte(&b, 'x');
		is_int(check(&b, &list, NULL), 0, "with a byte behind it");
		ok(!zip_is_wrap(&list), "it is an archive like any other");
		zip_list_free(&list);
	}
}

static void check_around(void)
{
	cleanup_buf struct buf b = { 0 };
	struct zip_list list;
	static const uint8_t junk[70000];

	buf_add_str(&b, "#!junk\n");
	write_tree(&b);
	buf_add(&b, junk, sizeof junk);
	is_int(check(&b, &list, NULL), 0, "bytes before and 70,000 after");
	is_int(list.n, 3, "hide nothing");
	zip_list_free(&list);
}

/* A bundle read in pieces of every size is the archive that a reader takes. */
static void bundle(void)
{
	static struct bytes text = { (const uint8_t *)"hello\n", 6 };
	static struct bytes none = { (const uint8_t *)"", 0 };
	struct zip_bundle *b = zip_bundle_new();
	struct zip_source src, body = zip_source_bytes(&text),
			  empty = zip_source_bytes(&none);
	struct zip_list list;
	struct err e = { 0 };
	int r = zip_bundle_add(b, bytes_str("d/a.txt"), &body, false, &e);

	r |= zip_bundle_add(b, bytes_str("empty"), &empty, false, &e);
	r |= zip_bundle_add(b, bytes_str("run"), &body, true, &e);
	ok(r == 0 && zip_bundle_source(b, &src, &e) == 0, "bundled: %s",
	   e.why);
	uint8_t *all = calloc(1, src.size), *part = calloc(1, src.size);
	ok(src.read(src.arg, 0, all, src.size) == 0, "read at once");
	for (size_t n = 1; n < 60; n++) {
		for (uint64_t at = 0; at < src.size; at += n)
			src.read(src.arg, at, part + at, src.size - at < n ?
				 src.size - at : n);
		if (memcmp(all, part, src.size) != 0)
			ok(false, "read in pieces of %zu", n);
	}
	ok(zip_check(&src, &list, &e) == 0 && list.n == 3, "an archive: %s",
	   e.why);
	is_str(list.v[0].path, "d/a.txt", "its first");
	ok(list.v[2].is_exec && !list.v[0].is_exec, "what may be run");
	ok(zip_verify(&src, &list, &e) == 0, "the data is right: %s", e.why);
	zip_list_free(&list);
	zip_bundle_free(b);
	b = zip_bundle_new();
	ok(zip_bundle_source(b, &src, &e) == 0 &&
	   zip_check(&src, &list, &e) == 0 && list.n == 0, "an empty one");
	zip_list_free(&list);
	zip_bundle_free(b);
	free(all);
	free(part);
}

int main(void)
{
	check_stories();
	check_names();
	check_overlap();
	check_tree();
	check_damage();
	check_wrap();
	check_around();
	bundle();
	return done_testing();
}
