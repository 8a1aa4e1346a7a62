/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/broker/text.h"

static const char digits64[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void text_base64(struct buf *out, struct bytes s)
{
	for (size_t i = 0; i < s.n; i += 3) {
		size_t left = s.n - i;
		uint32_t v = (uint32_t)s.p[i] << 16 |
			     (left > 1 ? (uint32_t)s.p[i + 1] << 8 : 0) |
			     (left > 2 ? s.p[i + 2] : 0);
		char four[4] = { digits64[v >> 18], digits64[v >> 12 & 63],
				 left > 1 ? digits64[v >> 6 & 63] : '=',
				 left > 2 ? digits64[v & 63] : '=' };
		buf_add(out, four, 4);
	}
}

static int value64(uint8_t c)
{
	const char *at = c ? strchr(digits64, c) : NULL;
	return at ? (int)(at - digits64) : -1;
}

int text_from_base64(struct buf *out, struct bytes s)
{
	size_t before = out->len;
	uint32_t v = 0;
	unsigned bits = 0;
	for (int i = 0; i < 2 && s.n && s.p[s.n - 1] == '='; i++)
		s.n--;
	for (size_t i = 0; i < s.n; i++) {
		int d = value64(s.p[i]);
		if (d < 0 || (i + 1 == s.n && s.n % 4 == 1)) {
			out->len = before;
			return -1;
		}
		v = v << 6 | (uint32_t)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf_add_byte(out, (uint8_t)(v >> bits));
		}
	}
	return 0;
}

static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

void text_percent(struct buf *out, struct bytes s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (is_unreserved(s.p[i]))
			buf_add_byte(out, s.p[i]);
		else
			buf_addf(out, "%%%02X", s.p[i]);
	}
}

void text_json(struct buf *out, struct bytes s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"' || s.p[i] == '\\')
			buf_add_byte(out, '\\');
		if (s.p[i] < 0x20)
			buf_addf(out, "\\u%04x", s.p[i]);
		else
			buf_add_byte(out, s.p[i]);
	}
}

const uint8_t *text_find(struct bytes s, struct bytes needle)
{
	return s.n < needle.n || !s.p ? NULL :
	       memmem(s.p, s.n, needle.p, needle.n);
}
