/* SPDX-License-Identifier: MIT
 *
 * What a file travels as, and its payload: front || body || back. */
#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "core/host/beside.h"
#include "core/host/draft.h"
#include "core/image.h"
#include "core/name.h"
#include "core/sniff.h"

int64_t draft_size(const struct draft *d)
{
	return (int64_t)(d->front.len + d->body.size + d->back.len);
}

void draft_free(struct draft *d)
{
	buf_free(&d->front);
	buf_free(&d->back);
	buf_free(&d->own);
	free(d->name);
	free(d->refs);
	*d = (struct draft){ 0 };
}

static int source_read_fd(void *arg, uint64_t off, void *to, size_t n)
{
	return file_get_at(*(const int *)arg, to, n, off, NULL);
}

int draft_source_fd(struct zip_source *src, const int *fd, struct err *e)
{
	int64_t n = file_size(*fd, e);
	if (n < 0)
		return -1;
	*src = (struct zip_source){ source_read_fd, (void *)fd, (uint64_t)n };
	return 0;
}

int draft_add_ref(struct draft *d, const struct item_ref *ref, struct err *e)
{
	if (d->ref_n >= ITEM_REFS_MAX)
		return err_set(e, ERR_INVALID, "more than %d references",
			       ITEM_REFS_MAX);
	void *v = realloc(d->refs, (d->ref_n + 1) * sizeof *d->refs);
	if (!v)
		return err_set(e, ERR_MEMORY, "out of memory");
	d->refs = v;
	d->refs[d->ref_n++] = *ref;
	return 0;
}

/* The last look before sealing: memory, and the session's size limit. */
static int finish(struct draft *d, const struct peer *p, struct err *e)
{
	if (buf_failed(&d->front) || buf_failed(&d->back))
		return err_set(e, ERR_MEMORY, "out of memory");
	if (draft_size(d) > p->manifest.max_item_bytes)
		return err_set(e, ERR_SIZE, "larger than this session takes: "
			       "%lld bytes, the limit is %lld",
			       (long long)draft_size(d),
			       (long long)p->manifest.max_item_bytes);
	return 0;
}

/* --- text --- */

static int put_text(struct draft *d, struct bytes text, struct err *e)
{
	payload_put_text(&d->front, text);
	/* what escaping adds counts too */
	if (d->front.len - 4 > PAYLOAD_META_MAX)
		return err_set(e, ERR_SIZE, "a text of more than 4 MiB; send "
			       "it as a file");
	return 0;
}

int draft_text(struct draft *d, const struct peer *p, struct bytes text,
	       struct err *e)
{
	*d = (struct draft){ .kind = ITEM_TEXT, .type = TYPE_NONE };
	if (peer_may_post(p, ITEM_TEXT, TYPE_NONE, e) < 0)
		return -1;
	if (!clear_utf8(text))
		return err_set(e, ERR_CONTENT, "the text is not UTF-8");
	if (text.n > DRAFT_TEXT_MAX)
		return err_set(e, ERR_SIZE, "a text of more than 4 MiB; send "
			       "it as a file");
	if (put_text(d, text, e) == 0 && finish(d, p, e) == 0)
		return 0;
	draft_free(d);
	return -1;
}

/* --- files --- */

static struct bytes last_part(struct bytes path)
{
	for (size_t i = path.n; i > 0; i--)
		if (path.p[i - 1] == '/')
			return (struct bytes){ path.p + i, path.n - i };
	return path;
}

static bool is_text_name(struct bytes name)
{
	size_t at = name_ext(name);
	struct bytes ext = { name.p + at, name.n - at };
	if (ext.n == 0)
		return name.n && name.p[0] != '.';
	return ext.n == 4 && !strncasecmp((const char *)ext.p, ".txt", 4);
}

enum item_type draft_type(struct bytes name, bool *wrapped)
{
	struct sniff s;
	*wrapped = false;
	name = last_part(name);
	if (sniff_name(name, &s) == 0)
		return s.type;
	if (is_text_name(name))
		return TYPE_TEXT;
	*wrapped = true;
	return TYPE_ZIP;
}

static int read_all(struct buf *out, const struct zip_source *body,
		    struct err *e)
{
	size_t n = (size_t)body->size;
	uint8_t *to = buf_room(out, n + 1);
	if (!to)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (n && body->read(body->arg, 0, to, n) < 0)
		return err_set(e, ERR_SYS, "the file cannot be read");
	out->len += n;
	return 0;
}

/* True if the body is a text that a message can carry. */
static int try_text(struct draft *d, const struct zip_source *body, bool *is,
		    struct err *e)
{
	cleanup_buf struct buf text = { 0 };
	*is = false;
	if (body->size > DRAFT_TEXT_MAX)
		return 0;
	if (read_all(&text, body, e) < 0)
		return -1;
	if ((text.len && memchr(text.data, 0, text.len)) ||
	    !clear_utf8(buf_bytes(&text)))
		return 0;
	*is = put_text(d, buf_bytes(&text), NULL) == 0;
	if (!*is)
		buf_reset(&d->front);
	return 0;
}

static void crc_chunk(void *arg, const void *p, size_t n)
{
	uint32_t *crc = arg;
	*crc = zip_crc32(*crc, p, n);
}

static int crc_of(const struct zip_source *body, uint32_t *crc, struct err *e)
{
	*crc = 0;
	struct beside *b = beside_new(body->size, crc_chunk, crc, e);
	int r = b ? 0 : -1;
	for (uint64_t at = 0; r == 0 && at < body->size;) {
		size_t n = body->size - at < BESIDE_CHUNK ?
			(size_t)(body->size - at) : BESIDE_CHUNK;
		if (body->read(body->arg, at, beside_room(b), n) < 0)
			r = err_set(e, ERR_SYS, "the file cannot be read");
		else
			beside_give(b, n);
		at += n;
	}
	beside_free(b);
	return r;
}

/* NAME becomes the one entry of NAME.zip. */
static int wrap(struct draft *d, struct bytes name,
		const struct zip_source *body, struct err *e)
{
	struct zip_wrap w = { .size = body->size };
	if (name_check_entry(name, e) < 0)
		return -1;
	if (body->size > ZIP_MAX_ENTRY_BYTES)
		return err_set(e, ERR_SIZE, "a file that travels in a zip may "
			       "have 512 MiB");
	if (asprintf(&d->name, "%.*s.zip", (int)name.n,
		     (const char *)name.p) < 0) {
		d->name = NULL;
		return err_set(e, ERR_MEMORY, "out of memory");
	}
	if (name_check(bytes_str(d->name), e) < 0 ||
	    crc_of(body, &w.crc, e) < 0)
		return -1;
	payload_put_file(&d->front, bytes_str("application/zip"),
			 bytes_str(d->name));
	zip_wrap_head(&d->front, name, w);
	zip_wrap_tail(&d->back, name, w);
	d->body = *body;
	d->wrapped = true;
	return 0;
}

static int own_take(void *arg, const void *p, size_t n)
{
	struct buf *b = arg;
	if (n > DRAFT_IMAGE_MAX - b->len)
		return -1;
	buf_add(b, p, n);
	return buf_failed(b) ? -1 : 0;
}

static int clean_here(struct buf *out, const char *mime,
		      const struct zip_source *body, struct err *e)
{
	cleanup_buf struct buf file = { 0 };
	if (read_all(&file, body, e) < 0)
		return -1;
	return image_prepare(buf_bytes(&file), mime, out, e);
}

static int put_image(struct draft *d, const char *mime,
		     const struct zip_source *body,
		     const struct draft_look *look, struct err *e)
{
	const struct zip_sink sink = { own_take, &d->own };
	if (body->size > DRAFT_IMAGE_MAX)
		return err_set(e, ERR_SIZE, "an image may have 128 MiB");
	int r = look && look->image ? look->image(mime, body, &sink, e) :
		clean_here(&d->own, mime, body, e);
	if (r < 0)
		return -1;
	d->own_view = buf_bytes(&d->own);
	d->body = zip_source_bytes(&d->own_view);
	return 0;
}

static int put_file(struct draft *d, struct bytes name, const struct sniff *s,
		    const struct zip_source *body,
		    const struct draft_look *look, struct err *e)
{
	if (name_check(name, e) < 0)
		return -1;
	d->name = strndup((const char *)name.p, name.n);
	if (!d->name)
		return err_set(e, ERR_MEMORY, "out of memory");
	payload_put_file(&d->front, bytes_str(s->mime), name);
	if (s->type == TYPE_IMAGE)
		return put_image(d, s->mime, body, look, e);
	d->body = *body;
	return (look && look->content ? look->content : content_check_whole)
		(s->type, s->mime, body, e);
}

static int fill(struct draft *d, const struct peer *p, struct bytes name,
		const struct zip_source *body, const struct draft_look *look,
		struct err *e)
{
	struct sniff s;
	bool wrapped, is_text = false;
	enum item_type type = draft_type(name, &wrapped);

	d->kind = type == TYPE_TEXT ? ITEM_TEXT : ITEM_FILE;
	d->type = type == TYPE_TEXT ? TYPE_NONE : type;
	if (peer_may_post(p, d->kind, d->type, e) < 0)
		return -1;
	if ((int64_t)body->size > p->manifest.max_item_bytes &&
	    type != TYPE_IMAGE)
		return err_set(e, ERR_SIZE, "larger than this session takes: "
			       "the limit is %lld bytes",
			       (long long)p->manifest.max_item_bytes);
	if (sniff_name(name, &s) == 0)
		return put_file(d, name, &s, body, look, e);
	if (!wrapped && try_text(d, body, &is_text, e) < 0)
		return -1;
	if (is_text)
		return 0;
	d->kind = ITEM_FILE;
	d->type = TYPE_ZIP;
	if (peer_may_post(p, d->kind, d->type, e) < 0)
		return -1;
	return wrap(d, name, body, e);
}

int draft_file(struct draft *d, const struct peer *p, struct bytes name,
	       const struct zip_source *body, const struct draft_look *look,
	       struct err *e)
{
	*d = (struct draft){ 0 };
	if (fill(d, p, last_part(name), body, look, e) == 0 &&
	    finish(d, p, e) == 0)
		return 0;
	draft_free(d);
	return -1;
}

/* --- the others --- */

int draft_event(struct draft *d, const struct peer *p, enum event_kind event,
		const uint8_t *pub, const char *reason,
		const struct item_ref *job, struct err *e)
{
	*d = (struct draft){ .kind = ITEM_EVENT, .type = TYPE_NONE };
	if (peer_may_post(p, ITEM_EVENT, TYPE_NONE, e) < 0)
		return -1;
	payload_put_event(&d->front, event, pub, reason, job);
	return finish(d, p, e);
}

int draft_meta(struct draft *d, const struct peer *p, enum item_kind kind,
	       struct buf *front, struct err *e)
{
	*d = (struct draft){ .kind = kind, .front = *front };
	*front = (struct buf){ 0 };
	d->type = kind == ITEM_JOB ? TYPE_PY : TYPE_NONE;
	if (peer_may_post(p, d->kind, d->type, e) == 0 && finish(d, p, e) == 0)
		return 0;
	draft_free(d);
	return -1;
}
