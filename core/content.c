/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clear.h"
#include "core/content.h"
#include "core/sniff.h"

#define STEP_BYTES ((size_t)64 * 1024)

static int read_at(const struct zip_source *body, uint64_t off, void *to,
		   size_t n, struct err *e)
{
	if (n && body->read(body->arg, off, to, n) < 0)
		return err_set(e, ERR_SYS, "the content cannot be read");
	return 0;
}

/* How many of the last bytes are a character that is not all there yet. */
static size_t torn(const uint8_t *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		uint8_t c = p[n - back];
		if ((c & 0xc0) == 0x80)
			continue;
		size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return len > back ? back : 0;
	}
	return 0;
}

static int check_chunk(struct bytes s, bool nul_ok, struct err *e)
{
	if (!clear_utf8(s))
		return err_set(e, ERR_CONTENT, "the text is not UTF-8");
	if (!nul_ok && s.n && memchr(s.p, 0, s.n))
		return err_set(e, ERR_CONTENT, "the text holds a NUL byte");
	return 0;
}

static int check_text(const struct zip_source *body, bool nul_ok,
		      struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	uint64_t off = 0;

	while (off < body->size) {
		uint64_t rest = body->size - off;
		size_t n = rest < STEP_BYTES ? (size_t)rest : STEP_BYTES;
		uint8_t *to = buf_room(&b, n);
		if (!to)
			return err_set(e, ERR_MEMORY, "out of memory");
		if (read_at(body, off, to, n, e) < 0)
			return -1;
		off += n;
		b.len += n;
		size_t whole = b.len - torn(b.data, b.len);
		if (check_chunk((struct bytes){ b.data, whole }, nul_ok, e) < 0)
			return -1;
		buf_consume(&b, whole);
	}
	return check_chunk(buf_bytes(&b), nul_ok, e);
}

static int check_zip(const struct zip_source *body, bool whole, struct err *e)
{
	struct zip_list list;
	struct err why = { 0 };

	if (zip_check(body, &list, &why) == 0) {
		int r = whole ? zip_verify(body, &list, &why) : 0;
		zip_list_free(&list);
		if (r == 0)
			return 0;
	}
	/* a bad archive alone is invalid, inside an item it is policy */
	if (why.code == ERR_INVALID || why.code == ERR_NAME)
		why.code = ERR_CONTENT;
	if (e)
		*e = why;
	return -1;
}

static int check_magic(const char *mime, const struct zip_source *body,
		       struct err *e)
{
	uint8_t head[SNIFF_HEAD_BYTES];
	size_t n = body->size < sizeof head ? (size_t)body->size : sizeof head;

	if (read_at(body, 0, head, n, e) < 0)
		return -1;
	return sniff_magic(mime, head, n, e);
}

int content_check(enum item_type type, const char *mime,
		  const struct zip_source *body, struct err *e)
{
	switch (type) {
	case TYPE_PY: return check_text(body, true, e);
	case TYPE_MD: return check_text(body, false, e);
	case TYPE_ZIP: return check_zip(body, false, e);
	case TYPE_IMAGE: return check_magic(mime, body, e);
	case TYPE_TEXT: case TYPE_NONE: break;
	}
	return 0;
}

int content_check_whole(enum item_type type, const char *mime,
			const struct zip_source *body, struct err *e)
{
	return type == TYPE_ZIP ? check_zip(body, true, e)
				: content_check(type, mime, body, e);
}
