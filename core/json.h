/* SPDX-License-Identifier: MIT
 *
 * json: canonical JSON (docs/PROTOCOL.md, section 1): what is signed, and
 * what is sealed.  The reader takes canonical bytes and nothing else, so that
 * what was parsed and what was signed are the same thing: no whitespace, keys
 * ASCII and in strictly rising byte order, integers only (|n| <= 2^53-1, no
 * -0), only the canonical escapes, valid UTF-8, at most 32 deep, nothing
 * after the value. */
#ifndef AIRLOX_JSON_H
#define AIRLOX_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/err.h"

#define JSON_INT_MAX ((INT64_C(1) << 53) - 1)

enum json_type {
	JSON_NULL, JSON_BOOL, JSON_INT, JSON_STRING, JSON_ARRAY, JSON_OBJECT
};

struct json {
	enum json_type type;
	int64_t num;		/* JSON_INT; JSON_BOOL: 0 or 1 */
	struct bytes str;	/* JSON_STRING: decoded, may hold NUL bytes */
	struct bytes key;	/* its name, where it is a member */
	struct bytes raw;	/* its canonical bytes, within the input */
	struct json *child;	/* first member or element */
	struct json *next;	/* next member or element */
	size_t count;		/* members or elements */
};

/* Parses the whole of in.  The document borrows from `in`, which must outlive
 * it; free it with json_free.  NULL and ERR_INVALID if it is not canonical. */
struct json *json_parse(struct bytes in, struct err *e);
void json_free(struct json *doc);	/* wipes decoded strings */

/* Reading a closed structure: open it, take each field in byte order of the
 * keys, close it.  The first fault is kept and all later calls do nothing, so
 * a reader checks once, in json_close:
 *
 *	struct json_reader r;
 *	json_open(&r, value, "manifest");
 *	v = json_take_int(&r, "v", 1, 1);
 *	json_close(&r, e)
 *
 * A missing, unknown or misordered field and a wrong type or range are all
 * ERR_INVALID, naming the structure and the field. */
struct json_reader {
	const char *what;
	const struct json *next;
	bool bad;
	char why[120];
};
void json_open(struct json_reader *r, const struct json *object,
	       const char *what);
const struct json *json_take(struct json_reader *r, const char *key);
/* The same, or NULL where the next field is another one. */
const struct json *json_take_optional(struct json_reader *r, const char *key);
int64_t json_take_int(struct json_reader *r, const char *key, int64_t min,
		      int64_t max);
bool json_take_bool(struct json_reader *r, const char *key);
struct bytes json_take_string(struct json_reader *r, const char *key);
/* base64url of exactly n bytes into `to`. */
void json_take_fixed(struct json_reader *r, const char *key, void *to,
		     size_t n);
/* An object or array. */
const struct json *json_take_object(struct json_reader *r, const char *key);
const struct json *json_take_array(struct json_reader *r, const char *key);
bool json_is_null(const struct json *v);
void json_fail(struct json_reader *r, const char *key, const char *why);
int json_close(struct json_reader *r, struct err *e);

/* Writing: the caller gives members in byte order of their keys (checked by
 * the tests, which parse what was written).  `comma` is kept by the writer. */
void json_put_key(struct buf *b, const char *key);	/* [,]"key": */
void json_put_sep(struct buf *b);	/* [,] before an array's element */
void json_put_string(struct buf *b, struct bytes s);	/* escaped, quoted */
void json_put_int(struct buf *b, int64_t v);
void json_put_b64(struct buf *b, const void *p, size_t n); /* quoted */
/* A member: its key and its value. */
void json_put_key_string(struct buf *b, const char *key, struct bytes s);
void json_put_key_int(struct buf *b, const char *key, int64_t v);
void json_put_key_bool(struct buf *b, const char *key, bool v);

#endif
