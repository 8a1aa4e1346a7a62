/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/buf.h"

uint8_t *buf_room(struct buf *b, size_t n)
{
	if (b->failed)
		return NULL;
	if (n > SIZE_MAX / 2 - b->len) {
		b->failed = true;
		return NULL;
	}
	size_t need = b->len + n;
	if (need > b->cap) {
		size_t cap = b->cap ? b->cap : 256;
		while (cap < need)
			cap *= 2;
		/* not realloc: the old copy may be a secret */
		uint8_t *p = malloc(cap);
		if (!p) {
			b->failed = true;
			return NULL;
		}
		if (b->len)
			memcpy(p, b->data, b->len);
		if (b->data)
			explicit_bzero(b->data, b->cap);
		free(b->data);
		b->data = p;
		b->cap = cap;
	}
	return b->data + b->len;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	uint8_t *to = n ? buf_room(b, n) : NULL;
	if (to) {
		memcpy(to, p, n);
		b->len += n;
	}
}

void buf_add_str(struct buf *b, const char *s) { buf_add(b, s, strlen(s)); }
void buf_add_byte(struct buf *b, uint8_t c) { buf_add(b, &c, 1); }

void buf_add_u32be(struct buf *b, uint32_t v)
{
	const uint8_t be[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16),
				(uint8_t)(v >> 8), (uint8_t)v };
	buf_add(b, be, 4);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	size_t room = b->failed ? 0 : b->cap - b->len;
	va_start(ap, fmt);
	va_copy(again, ap);
	/* most often it fits */
	int n = vsnprintf(room ? (char *)b->data + b->len : NULL, room, fmt,
			  ap);
	va_end(ap);
	uint8_t *to = n < 0 ? NULL : buf_room(b, (size_t)n + 1);
	if (to && (size_t)n >= room)
		vsnprintf((char *)to, (size_t)n + 1, fmt, again);
	if (to)
		b->len += (size_t)n;
	else
		b->failed = true;
	va_end(again);
}

char *buf_cstr(struct buf *b)
{
	uint8_t *end = buf_room(b, 1);
	if (!end)
		return NULL;
	*end = 0;
	return (char *)b->data;
}

char *buf_steal(struct buf *b)
{
	char *s = buf_cstr(b);
	if (s)
		*b = (struct buf){ 0 };
	return s;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n > b->len)
		n = b->len;
	if (n && n < b->len)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_free(struct buf *b)
{
	if (!b)
		return;
	if (b->data)
		explicit_bzero(b->data, b->cap);
	free(b->data);
	*b = (struct buf){ 0 };
}

struct bytes bytes_str(const char *s)
{
	return (struct bytes){ (const uint8_t *)s, strlen(s) };
}

bool bytes_eq(struct bytes a, struct bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
