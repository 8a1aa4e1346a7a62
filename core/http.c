/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "core/http.h"

int http_refuse(struct http_fault *f, int status, const char *why)
{
	*f = (struct http_fault){ status, why };
	return -1;
}

long http_head_end(const uint8_t *p, size_t n, size_t max, size_t *seen,
		   struct http_fault *f)
{
	for (size_t i = *seen; i < n; i++) {
		if (i >= max)
			return http_refuse(f, 431, "the head is too large");
		uint8_t c = p[i];
		bool after_cr = i > 0 && p[i - 1] == '\r';
		if (c == '\n') {
			if (!after_cr)
				return http_refuse(f, 400, "bare line feed");
			if (i < 2)
				return http_refuse(f, 400, "empty first line");
			if (i >= 3 && p[i - 2] == '\n')
				return (long)i + 1;
		} else if (after_cr) {
			return http_refuse(f, 400, "bare carriage return");
		} else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
			return http_refuse(f, 400, "control byte in the head");
		}
		*seen = i + 1;
	}
	return 0;
}

bool http_is_token(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

size_t http_token_len(struct bytes s)
{
	size_t i = 0;
	while (i < s.n && http_is_token(s.p[i]))
		i++;
	return i;
}

bool http_is(struct bytes s, const char *word)
{
	return s.n == strlen(word) &&
	       strncasecmp((const char *)s.p, word, s.n) == 0;
}

struct bytes http_trim(struct bytes s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t'))
		s.p++, s.n--;
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

bool http_next_word(struct bytes *list, struct bytes *word)
{
	if (list->n == 0)
		return false;
	const uint8_t *comma = memchr(list->p, ',', list->n);
	size_t n = comma ? (size_t)(comma - list->p) : list->n;
	*word = http_trim((struct bytes){ list->p, n });
	n += comma ? 1 : 0;
	list->p += n;
	list->n -= n;
	return true;
}

bool http_has(struct bytes list, const char *word)
{
	struct bytes w;
	while (http_next_word(&list, &w))
		if (http_is(w, word))
			return true;
	return false;
}

int http_version(struct bytes s, bool *http10, struct http_fault *f)
{
	if (s.n != 8 || memcmp(s.p, "HTTP/", 5) != 0)
		return http_refuse(f, 400, "malformed first line");
	if (memcmp(s.p + 5, "1.", 2) != 0 || (s.p[7] != '0' && s.p[7] != '1'))
		return http_refuse(f, 505, "only HTTP/1.1 is spoken here");
	*http10 = s.p[7] == '0';
	return 0;
}

bool http_is_target(struct bytes s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || s.p[i] == '#')
			return false;
	return s.n > 0;
}

int http_once(struct bytes *slot, struct bytes v, struct http_fault *f)
{
	if (slot->p)
		return http_refuse(f, 400, "a header field is given twice");
	*slot = v;
	return 0;
}

int http_number(struct bytes s, int64_t *value)
{
	int64_t v = 0;
	if (s.n == 0 || s.n > 16)
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -1;
		v = v * 10 + (s.p[i] - '0');
	}
	if (v > (INT64_C(1) << 53) - 1)
		return -1;
	*value = v;
	return 0;
}

int http_hex(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

const char *http_reason(int status)
{
	static const struct { int status; const char *word; } t[] = {
		{ 100, "Continue" }, { 200, "OK" }, { 201, "Created" },
		{ 204, "No Content" }, { 400, "Bad Request" },
		{ 401, "Unauthorized" }, { 403, "Forbidden" },
		{ 404, "Not Found" }, { 405, "Method Not Allowed" },
		{ 407, "Proxy Authentication Required" },
		{ 408, "Request Timeout" }, { 409, "Conflict" },
		{ 410, "Gone" }, { 411, "Length Required" },
		{ 413, "Content Too Large" }, { 417, "Expectation Failed" },
		{ 421, "Misdirected Request" }, { 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 502, "Bad Gateway" }, { 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
		if (t[i].status == status)
			return t[i].word;
	return "Error";
}
