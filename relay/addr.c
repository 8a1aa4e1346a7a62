/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "relay/addr.h"
#include "relay/http.h"

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255 };

static bool is_v4(const struct addr *a)
{
	return memcmp(a->b, mapped, sizeof mapped) == 0;
}

void addr_of(struct addr *a, const struct sockaddr_storage *ss)
{
	*a = (struct addr){ { 0 } };
	if (ss->ss_family == AF_INET) {
		memcpy(a->b, mapped, sizeof mapped);
		memcpy(a->b + 12,
		       &((const struct sockaddr_in *)ss)->sin_addr, 4);
	} else if (ss->ss_family == AF_INET6) {
		memcpy(a->b, &((const struct sockaddr_in6 *)ss)->sin6_addr,
		       16);
	}
}

/* Without brackets, port and white space. */
static struct bytes bare(struct bytes s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t'))
		s.p++, s.n--;
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	const uint8_t *colon = memchr(s.p, ':', s.n);
	const uint8_t *end = s.n ? memchr(s.p, ']', s.n) : NULL;
	if (s.n && *s.p == '[' && end)
		return (struct bytes){ s.p + 1, (size_t)(end - s.p) - 1 };
	if (colon && !memchr(colon + 1, ':', s.n - (size_t)(colon - s.p) - 1))
		s.n = (size_t)(colon - s.p);
	return s;
}

int addr_parse(struct addr *a, struct bytes text)
{
	char z[INET6_ADDRSTRLEN];
	struct bytes s = bare(text);
	if (s.n == 0 || s.n >= sizeof z)
		return -1;
	memcpy(z, s.p, s.n);
	z[s.n] = 0;
	if (strlen(z) != s.n)
		return -1;
	memcpy(a->b, mapped, sizeof mapped);
	if (inet_pton(AF_INET, z, a->b + 12) == 1)
		return 0;
	return inet_pton(AF_INET6, z, a->b) == 1 ? 0 : -1;
}

void addr_text(char out[ADDR_TEXT], const struct addr *a)
{
	static const struct addr none;
	if (memcmp(a, &none, sizeof none) == 0)
		snprintf(out, ADDR_TEXT, "unix");
	else if (is_v4(a))
		inet_ntop(AF_INET, a->b + 12, out, ADDR_TEXT);
	else
		inet_ntop(AF_INET6, a->b, out, ADDR_TEXT);
}

struct addr addr_net(struct addr a)
{
	if (!is_v4(&a))
		memset(a.b + 8, 0, 8);
	return a;
}

static int parse_net(struct addr *net, uint8_t *bits, struct bytes s)
{
	const uint8_t *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
	int64_t n = -1;
	if (bytes_eq(s, bytes_str("unix"))) {
		*net = (struct addr){ { 0 } };
		*bits = 128;
		return 0;
	}
	if (slash) {
		size_t at = (size_t)(slash - s.p);
		if (http_number((struct bytes){ slash + 1, s.n - at - 1 },
				&n) < 0)
			return -1;
		s.n = at;
	}
	if (addr_parse(net, s) < 0)
		return -1;
	int64_t most = is_v4(net) ? 32 : 128;
	if (n > most)
		return -1;
	*bits = (uint8_t)(128 - most + (n < 0 ? most : n));
	return 0;
}

int addr_set_parse(struct addr_set *s, const char *list, struct err *e)
{
	*s = (struct addr_set){ .n = 0 };
	while (*list) {
		size_t n = strcspn(list, ", ");
		if (n && (s->n == ADDR_SET_MAX ||
			  parse_net(&s->net[s->n], &s->bits[s->n],
				    (struct bytes){ (const uint8_t *)list,
						    n }) < 0))
			return err_set(e, ERR_USAGE, "%.*s is no address or "
				       "network: give them as 127.0.0.1,"
				       "10.0.0.0/8,::1,unix", (int)n, list);
		s->n += n > 0;
		list += n + (list[n] != 0);
	}
	return 0;
}

static bool within(const struct addr *net, unsigned bits, const struct addr *a)
{
	unsigned whole = bits / 8, rest = bits % 8;
	if (memcmp(net->b, a->b, whole) != 0)
		return false;
	return rest == 0 ||
	       (net->b[whole] ^ a->b[whole]) >> (8 - rest) == 0;
}

bool addr_set_has(const struct addr_set *s, const struct addr *a)
{
	for (unsigned i = 0; i < s->n; i++)
		if (within(&s->net[i], s->bits[i], a))
			return true;
	return false;
}

bool addr_client(struct addr *client, const struct addr_set *trusted,
		 struct bytes forwarded)
{
	if (!forwarded.p)
		return true;
	if (!addr_set_has(trusted, client))
		return false;
	while (forwarded.n && addr_set_has(trusted, client)) {
		size_t at = forwarded.n;
		while (at && forwarded.p[at - 1] != ',')
			at--;
		struct addr a;
		if (addr_parse(&a, (struct bytes){ forwarded.p + at,
						   forwarded.n - at }) < 0)
			break;
		*client = a;
		forwarded.n = at ? at - 1 : 0;
	}
	return true;
}
