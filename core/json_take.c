/* SPDX-License-Identifier: MIT
 *
 * Reading a closed structure, field by field. */
#include <stdio.h>

#include "core/enc.h"
#include "core/json.h"

void json_fail(struct json_reader *r, const char *key, const char *why)
{
	if (r->bad)
		return;
	r->bad = true;
	snprintf(r->why, sizeof r->why, "%s%s%s: %s", r->what, *key ? "." : "",
		 key, why);
}

void json_open(struct json_reader *r, const struct json *object,
	       const char *what)
{
	*r = (struct json_reader){ .what = what };
	if (!object || object->type != JSON_OBJECT)
		json_fail(r, "", "not an object");
	else
		r->next = object->child;
}

const struct json *json_take_optional(struct json_reader *r, const char *key)
{
	const struct json *v = r->next;

	if (r->bad || !v || !bytes_eq(v->key, bytes_str(key)))
		return NULL;
	r->next = v->next;
	return v;
}

const struct json *json_take(struct json_reader *r, const char *key)
{
	const struct json *v = json_take_optional(r, key);

	if (!v)
		json_fail(r, key, "is not where it should be");
	return v;
}

static const struct json *take_typed(struct json_reader *r, const char *key,
				     enum json_type type)
{
	const struct json *v = json_take(r, key);

	if (v && v->type != type) {
		json_fail(r, key, "is of another type");
		return NULL;
	}
	return v;
}

int64_t json_take_int(struct json_reader *r, const char *key, int64_t min,
		      int64_t max)
{
	const struct json *v = take_typed(r, key, JSON_INT);

	if (v && (v->num < min || v->num > max)) {
		json_fail(r, key, "is out of range");
		return 0;
	}
	return v ? v->num : 0;
}

bool json_take_bool(struct json_reader *r, const char *key)
{
	const struct json *v = take_typed(r, key, JSON_BOOL);

	return v && v->num;
}

struct bytes json_take_string(struct json_reader *r, const char *key)
{
	const struct json *v = take_typed(r, key, JSON_STRING);

	return v ? v->str : (struct bytes){ (const uint8_t *)"", 0 };
}

void json_take_fixed(struct json_reader *r, const char *key, void *to,
		     size_t n)
{
	struct bytes s = json_take_string(r, key);

	if (!r->bad && enc_b64_fixed(to, n, s) < 0)
		json_fail(r, key, "is not base64url of the right length");
}

const struct json *json_take_object(struct json_reader *r, const char *key)
{
	return take_typed(r, key, JSON_OBJECT);
}

const struct json *json_take_array(struct json_reader *r, const char *key)
{
	return take_typed(r, key, JSON_ARRAY);
}

bool json_is_null(const struct json *v) { return v && v->type == JSON_NULL; }

int json_close(struct json_reader *r, struct err *e)
{
	if (!r->bad && r->next)
		json_fail(r, "", "has a field that does not belong");
	return r->bad ? err_set(e, ERR_INVALID, "%s", r->why) : 0;
}
