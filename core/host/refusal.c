/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <cjson/cJSON.h>

#include "core/clear.h"
#include "core/host/refusal.h"

#define MESSAGE_MAX 160

static const struct {
	int http;
	enum err_code code;
	const char *what;
} table[] = {
	{ 401, ERR_AUTH, "the relay no longer knows this participant" },
	{ 403, ERR_FORBIDDEN, "the relay says this role may not" },
	{ 404, ERR_NOT_FOUND, "not on the relay" },
	{ 409, ERR_CONFLICT, "the relay has something else there" },
	{ 410, ERR_GONE, "no longer on the relay" },
	{ 413, ERR_SIZE, "too large for the relay" },
	{ 429, ERR_RATE, "the relay asks to slow down" },
	{ 507, ERR_FULL, "the relay's disk is full" },
};

static void code_of(int http, const char *word, enum err_code *code,
		    const char **what)
{
	*code = http >= 500 && http <= 599 ? ERR_NET : ERR_PROTO;
	*what = http >= 500 ? "the relay is in trouble" : "the relay refused";
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].http == http) {
			*code = table[i].code;
			*what = table[i].what;
		}
	if (http == 409 && !strcmp(word, "duplicate"))
		*code = ERR_DUPLICATE;
}

/* A word of ours is lower case and underscores; anything else is noise. */
static void take_word(char word[32], const cJSON *v)
{
	const char *s = cJSON_GetStringValue(v);
	if (s && strlen(s) < 32 &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz_") == strlen(s))
		strcpy(word, s);
}

static void take_message(struct buf *out, const char *s)
{
	cleanup_buf struct buf b = { 0 };
	if (!s)
		return;
	clear_escape(&b, (struct bytes){ (const uint8_t *)s,
					 strnlen(s, MESSAGE_MAX) });
	size_t n = b.len;
	if (n > MESSAGE_MAX)
		for (n = MESSAGE_MAX; n && (b.data[n] & 0xc0) == 0x80; n--)
			;
	buf_add(out, b.data, n);
}

int refusal_read(int http, struct bytes body, char word[32], struct err *e)
{
	cleanup_buf struct buf message = { 0 };
	enum err_code code;
	const char *what;

	word[0] = 0;
	cJSON *doc = cJSON_ParseWithLength((const char *)body.p, body.n);
	take_word(word, cJSON_GetObjectItemCaseSensitive(doc, "error"));
	take_message(&message, cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(doc, "message")));
	cJSON_Delete(doc);

	code_of(http, word, &code, &what);
	const char *text = message.len ? buf_cstr(&message) : NULL;
	if (text)
		err_set(e, code, "%s: %s (%d)", what, text, http);
	else
		err_set(e, code, "%s (%d)", what, http);
	if (e)
		e->http = http;
	return -1;
}
