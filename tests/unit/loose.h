/* SPDX-License-Identifier: MIT
 *
 * loose: reading a vector file, which is ordinary JSON and never signed.
 * cJSON cuts a string at U+0000, so that one travels as one of U+FDD0..FDDF,
 * characters that stand for nothing, which the file does not hold otherwise,
 * and comes back in loose_bytes. */
#ifndef TESTS_UNIT_LOOSE_H
#define TESTS_UNIT_LOOSE_H

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "core/buf.h"
#include "core/enc.h"
#include "core/json.h"

static char loose_nul[4] = "\xef\xb7\x90";	/* in UTF-8 */

static inline void loose_mask(char *s)
{
	char escape[7] = "\\ufdd0";

	for (int i = 0; i < 16; i++) {
		escape[5] = "0123456789abcdef"[i];
		loose_nul[2] = (char)(0x90 + i);
		if (!strcasestr(s, escape) && !strstr(s, loose_nul))
			break;
	}
	for (; *s; s++) {
		if (*s != '\\')
			continue;
		if (strncmp(s, "\\u0000", 6) == 0)
			memcpy(s, escape, 6);
		else if (s[1])
			s++;
	}
}

static inline cJSON *loose_read(const char *path)
{
	struct buf b = { 0 };
	char part[65536];
	size_t n;

	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		buf_add(&b, part, n);
	fclose(f);
	char *text = buf_cstr(&b);
	if (text)
		loose_mask(text);
	cJSON *doc = text ? cJSON_Parse(text) : NULL;
	buf_free(&b);
	return doc;
}

static inline const cJSON *loose_get(const cJSON *v, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(v, key);
}

static inline const char *loose_str(const cJSON *v, const char *key)
{
	const cJSON *m = loose_get(v, key);

	return cJSON_IsString(m) ? m->valuestring : NULL;
}

static inline int64_t loose_int(const cJSON *v, const char *key)
{
	const cJSON *m = loose_get(v, key);

	return cJSON_IsNumber(m) ? (int64_t)m->valuedouble : 0;
}

/* The string with its NUL characters back; empty if there is none. */
static inline void loose_bytes(struct buf *out, const char *s)
{
	while (s && *s) {
		if (strncmp(s, loose_nul, 3) == 0) {
			buf_add_byte(out, 0);
			s += 3;
		} else {
			buf_add_byte(out, (uint8_t)*s++);
		}
	}
}

/* base64url of a member; -1 when it is none. */
static inline int loose_b64(struct buf *out, const cJSON *v, const char *key)
{
	const char *s = loose_str(v, key);

	return s ? enc_b64_decode(out, bytes_str(s)) : -1;
}

static inline int loose_fixed(void *to, size_t n, const cJSON *v,
			      const char *key)
{
	const char *s = loose_str(v, key);

	return s ? enc_b64_fixed(to, n, bytes_str(s)) : -1;
}

static inline int loose_gunzip(struct buf *out, struct bytes in)
{
	z_stream z = { .next_in = (void *)in.p, .avail_in = (uInt)in.n };
	int r = inflateInit2(&z, 15 + 16);

	while (r == Z_OK) {
		uint8_t *to = buf_room(out, 65536);
		if (!to)
			break;
		z.next_out = to;
		z.avail_out = 65536;
		r = inflate(&z, Z_NO_FLUSH);
		out->len += 65536 - z.avail_out;
	}
	inflateEnd(&z);
	return r == Z_STREAM_END ? 0 : -1;
}

/* --- canonical text of a value: members by name, smallest first --- */

static inline const cJSON *loose_after(const cJSON *v, const char *last)
{
	const cJSON *best = NULL;

	for (const cJSON *m = v->child; m; m = m->next)
		if ((!last || strcmp(m->string, last) > 0) &&
		    (!best || strcmp(m->string, best->string) < 0))
			best = m;
	return best;
}

static inline void loose_canonical(struct buf *out, const cJSON *v)
{
	if (cJSON_IsObject(v)) {
		buf_add_byte(out, '{');
		const cJSON *m = NULL;
		while ((m = loose_after(v, m ? m->string : NULL))) {
			json_put_key(out, m->string);
			loose_canonical(out, m);
		}
		buf_add_byte(out, '}');
	} else if (cJSON_IsArray(v)) {
		buf_add_byte(out, '[');
		for (const cJSON *m = v->child; m; m = m->next) {
			json_put_sep(out);
			loose_canonical(out, m);
		}
		buf_add_byte(out, ']');
	} else if (cJSON_IsString(v)) {
		struct buf s = { 0 };
		loose_bytes(&s, v->valuestring);
		json_put_string(out, buf_bytes(&s));
		buf_free(&s);
	} else if (cJSON_IsNumber(v)) {
		json_put_int(out, (int64_t)v->valuedouble);
	} else {
		buf_add_str(out, cJSON_IsTrue(v) ? "true" :
			    cJSON_IsFalse(v) ? "false" : "null");
	}
}

#endif
