/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/broker/hello.h"

enum { RECORD_HANDSHAKE = 22, CLIENT_HELLO = 1, SERVER_NAME = 0 };

/* What is left to read; bad once anything did not fit. */
struct cursor {
	const uint8_t *p;
	size_t n;
	bool bad;
};

static size_t take_int(struct cursor *c, size_t size)
{
	size_t v = 0;
	if (c->bad || c->n < size) {
		c->bad = true;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		v = v << 8 | c->p[i];
	c->p += size;
	c->n -= size;
	return v;
}

static struct cursor take(struct cursor *c, size_t n)
{
	if (c->bad || c->n < n) {
		c->bad = true;
		return (struct cursor){ NULL, 0, true };
	}
	struct cursor part = { c->p, n, false };
	c->p += n;
	c->n -= n;
	return part;
}

/* A vector behind its length. */
static struct cursor take_vector(struct cursor *c, size_t size)
{
	return take(c, take_int(c, size));
}

/* The handshake bytes of the records, without their heads.  1 when the whole
 * message is there, 0 when not yet, -1 when it is no handshake. */
static int join_records(struct cursor in, struct buf *out)
{
	size_t want = 4;
	while (out->len < want) {
		if (in.n && in.p[0] != RECORD_HANDSHAKE)
			return -1;
		if (in.n > 1 && in.p[1] != 3)
			return -1;
		if (in.n < 5)
			return 0;
		take_int(&in, 3);
		size_t size = take_int(&in, 2);
		if (size == 0 || size > 16384)
			return -1;
		size_t have = size < in.n ? size : in.n;
		struct cursor part = take(&in, have);
		buf_add(out, part.p, part.n);
		if (out->len && out->data[0] != CLIENT_HELLO)
			return -1;
		if (out->len >= 4 && want == 4)
			want = 4 + ((size_t)out->data[1] << 16 |
				    (size_t)out->data[2] << 8 | out->data[3]);
		if (want > HELLO_MAX || buf_failed(out))
			return -1;
		if (have < size && out->len < want)
			return 0;
	}
	return 1;
}

static int read_names(struct cursor ext, uint8_t space[256],
		      struct bytes *name)
{
	struct cursor list = take_vector(&ext, 2);
	if (ext.bad || ext.n || list.n == 0)
		return -1;
	if (take_int(&list, 1) != SERVER_NAME)
		return -1;
	struct cursor host = take_vector(&list, 2);
	/* one name: RFC 6066 allows no second of a kind, nor another kind */
	if (list.bad || list.n || host.n == 0 || host.n > 255)
		return -1;
	memcpy(space, host.p, host.n);
	*name = (struct bytes){ space, host.n };
	return 1;
}

static int read_extensions(struct cursor all, uint8_t space[256],
			   struct bytes *name)
{
	while (all.n) {
		size_t kind = take_int(&all, 2);
		struct cursor ext = take_vector(&all, 2);
		if (all.bad)
			return -1;
		if (kind != 0)
			continue;
		if (name->n || read_names(ext, space, name) < 0)
			return -1;
	}
	return 1;
}

static int read_message(struct cursor m, uint8_t space[256],
			struct bytes *name)
{
	take_int(&m, 1);
	struct cursor body = take_vector(&m, 3);
	if (m.bad)
		return -1;
	take(&body, 2 + 32);		/* version, random */
	take_vector(&body, 1);		/* session id */
	take_vector(&body, 2);		/* cipher suites */
	take_vector(&body, 1);		/* compression */
	if (body.bad)
		return -1;
	if (body.n == 0)
		return 1;
	struct cursor all = take_vector(&body, 2);
	return body.bad || body.n ? -1 : read_extensions(all, space, name);
}

int hello_read(const uint8_t *p, size_t n, uint8_t space[256],
	       struct bytes *name)
{
	cleanup_buf struct buf message = { 0 };
	*name = (struct bytes){ space, 0 };
	int rc = join_records((struct cursor){ p, n, false }, &message);
	if (rc <= 0)
		return rc;
	struct cursor m = { message.data, message.len, false };
	return read_message(m, space, name);
}
