/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/enc.h"

static const char b64[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void enc_b64(struct buf *out, const void *p, size_t n)
{
	const uint8_t *in = p;
	uint32_t bits = 0;
	unsigned held = 0;

	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | in[i];
		held += 8;
		while (held >= 6) {
			held -= 6;
			buf_add_byte(out, (uint8_t)b64[bits >> held & 63]);
		}
	}
	if (held)
		buf_add_byte(out, (uint8_t)b64[bits << (6 - held) & 63]);
}

static int b64_value(uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* `to` holds 3 * s.n / 4 bytes. */
static int b64_read(uint8_t *to, struct bytes s)
{
	uint32_t bits = 0;
	unsigned held = 0;

	if (s.n % 4 == 1)
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		int v = b64_value(s.p[i]);
		if (v < 0)
			return -1;
		bits = (bits << 6 | (uint32_t)v) & 0xffff;
		held += 6;
		if (held >= 8) {
			held -= 8;
			*to++ = (uint8_t)(bits >> held);
		}
	}
	return bits & ((1u << held) - 1) ? -1 : 0;
}

int enc_b64_decode(struct buf *out, struct bytes s)
{
	size_t n = s.n / 4 * 3 + s.n % 4 * 3 / 4;
	uint8_t *to = buf_room(out, n + 1);

	if (!to || b64_read(to, s))
		return -1;
	out->len += n;
	return 0;
}

int enc_b64_fixed(void *to, size_t n, struct bytes s)
{
	if (s.n / 4 * 3 + s.n % 4 * 3 / 4 != n)
		return -1;
	return b64_read(to, s);
}

void enc_b32(struct buf *out, const void *p, size_t n)
{
	static const char b32[] = "abcdefghijklmnopqrstuvwxyz234567";
	const uint8_t *in = p;
	uint32_t bits = 0;
	unsigned held = 0;

	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | in[i];
		held += 8;
		while (held >= 5) {
			held -= 5;
			buf_add_byte(out, (uint8_t)b32[bits >> held & 31]);
		}
	}
	if (held)
		buf_add_byte(out, (uint8_t)b32[bits << (5 - held) & 31]);
}

void enc_hex(char *to, const void *p, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i++) {
		*to++ = hex[in[i] >> 4];
		*to++ = hex[in[i] & 15];
	}
	*to = 0;
}

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int enc_hex_decode(void *to, size_t n, struct bytes s)
{
	uint8_t *out = to;

	if (s.n / 2 != n || s.n % 2)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int hi = hex_value(s.p[2 * i]);
		int lo = hex_value(s.p[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return -1;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

void enc_unoctal(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 +
				       (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}
