/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <string.h>

#include "runner/policy/host.h"

static int parse_port(uint16_t *port, struct bytes s)
{
	unsigned v = 0;
	if (s.n == 0 || s.n > 5 || s.p[0] == '0')
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -1;
		v = v * 10 + (unsigned)(s.p[i] - '0');
	}
	if (v == 0 || v > 65535)
		return -1;
	*port = (uint16_t)v;
	return 0;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* inet_aton reads 127.1, 0x7f000001 and 017700000001; whoever resolves such
 * a name has not looked one up. */
static bool looks_numeric(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot ? dot + 1 : name;
	if (last[0] == '0' && last[1] == 'x')
		return true;
	while (is_digit(*last))
		last++;
	return *last == 0;
}

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static bool is_name(const char *s)
{
	size_t label = 0;
	for (;; s++) {
		if (*s == 0 || *s == '.') {
			if (label == 0 || label > 63 || s[-1] == '-')
				return false;
			if (*s == 0)
				return true;
			label = 0;
		} else if (!is_label_byte(*s) || (label == 0 && *s == '-')) {
			return false;
		} else {
			label++;
		}
	}
}

static int parse_v6(struct host *h, struct bytes s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr in;
	if (s.n >= sizeof text)
		return -1;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	if (strlen(text) != s.n || inet_pton(AF_INET6, text, &in) != 1)
		return -1;
	h->kind = HOST_V6;
	return inet_ntop(AF_INET6, &in, h->name, sizeof h->name) ? 0 : -1;
}

static int parse_name(struct host *h, struct bytes s)
{
	struct in_addr in;
	if (s.n && s.p[s.n - 1] == '.')
		s.n--;
	if (s.n == 0 || s.n > HOST_MAX)
		return -1;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = s.p[i];
		h->name[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	}
	h->name[s.n] = 0;
	h->kind = HOST_NAME;
	if (strlen(h->name) != s.n || !is_name(h->name))
		return -1;
	if (!looks_numeric(h->name))
		return 0;
	h->kind = HOST_V4;
	return inet_pton(AF_INET, h->name, &in) == 1 ? 0 : -1;
}

int host_parse(struct host *h, struct bytes text)
{
	*h = (struct host){ 0 };
	if (text.n && text.p[0] == '[') {
		const uint8_t *end = memchr(text.p, ']', text.n);
		if (!end)
			return -1;
		size_t n = (size_t)(end - text.p);
		if (parse_v6(h, (struct bytes){ text.p + 1, n - 1 }) < 0)
			return -1;
		struct bytes rest = { end + 1, text.n - n - 1 };
		if (rest.n == 0)
			return 0;
		return rest.p[0] != ':' ? -1 :
		       parse_port(&h->port, (struct bytes){ rest.p + 1,
							    rest.n - 1 });
	}
	const uint8_t *colon = text.n ? memchr(text.p, ':', text.n) : NULL;
	size_t n = colon ? (size_t)(colon - text.p) : text.n;
	if (parse_name(h, (struct bytes){ text.p, n }) < 0)
		return -1;
	return !colon ? 0 :
	       parse_port(&h->port, (struct bytes){ colon + 1,
						    text.n - n - 1 });
}

bool host_same(const struct host *a, const struct host *b)
{
	return a->kind == b->kind && !strcmp(a->name, b->name);
}

bool host_is_local_word(const struct host *h)
{
	return h->kind != HOST_NAME || !strcmp(h->name, "localhost");
}

void host_put(struct buf *out, const char *name, enum host_kind kind,
	      uint16_t port)
{
	buf_addf(out, kind == HOST_V6 ? "[%s]:%u" : "%s:%u", name,
		 (unsigned)port);
}
