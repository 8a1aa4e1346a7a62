/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <string.h>

#include "runner/broker/addr.h"

struct range {
	uint8_t at[16];
	unsigned bits;
	enum addr_class class;
};

/* IANA's special-purpose registries, and where clouds answer for themselves.
 * The first that fits decides. */
static const struct range v4[] = {
	{ { 169, 254, 169, 254 }, 32, ADDR_METADATA },
	{ { 169, 254, 170, 2 }, 32, ADDR_METADATA },
	{ { 100, 100, 100, 200 }, 32, ADDR_METADATA },
	{ { 168, 63, 129, 16 }, 32, ADDR_METADATA },
	{ { 192, 0, 0, 192 }, 32, ADDR_METADATA },
	{ { 0 }, 32, ADDR_UNSPECIFIED },
	{ { 0 }, 8, ADDR_RESERVED },
	{ { 127 }, 8, ADDR_LOOPBACK },
	{ { 10 }, 8, ADDR_PRIVATE },
	{ { 172, 16 }, 12, ADDR_PRIVATE },
	{ { 192, 168 }, 16, ADDR_PRIVATE },
	{ { 169, 254 }, 16, ADDR_LINK_LOCAL },
	{ { 100, 64 }, 10, ADDR_SHARED },
	{ { 192, 0, 0 }, 24, ADDR_RESERVED },
	{ { 192, 0, 2 }, 24, ADDR_RESERVED },
	{ { 192, 88, 99 }, 24, ADDR_RESERVED },
	{ { 198, 18 }, 15, ADDR_RESERVED },
	{ { 198, 51, 100 }, 24, ADDR_RESERVED },
	{ { 203, 0, 113 }, 24, ADDR_RESERVED },
	{ { 224 }, 4, ADDR_MULTICAST },
	{ { 240 }, 4, ADDR_RESERVED },
};

static const struct range v6[] = {
	{ { 0xfd, 0, 0x0e, 0xc2, [14] = 2, [15] = 0x54 }, 128, ADDR_METADATA },
	{ { 0 }, 128, ADDR_UNSPECIFIED },
	{ { [15] = 1 }, 128, ADDR_LOOPBACK },
	{ { 0xfc }, 7, ADDR_PRIVATE },
	{ { 0xfe, 0x80 }, 10, ADDR_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, ADDR_PRIVATE },
	{ { 0xff }, 8, ADDR_MULTICAST },
	{ { 0x01, 0 }, 64, ADDR_RESERVED },		/* discard */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, ADDR_RESERVED },
	{ { 0x3f, 0xff }, 20, ADDR_RESERVED },
	{ { 0x20, 0x01, 0, 0 }, 32, ADDR_RESERVED },	/* Teredo */
	{ { 0x20, 0x01, 0, 0 }, 23, ADDR_RESERVED },
	{ { 0x5f }, 16, ADDR_RESERVED },
	{ { 0x00, 0x64, 0xff, 0x9b, 0, 1 }, 48, ADDR_PRIVATE },	/* NAT64 */
};

/* Where an IPv4 address lies in an IPv6 one: mapped, compatible, translated,
 * NAT64, 6to4. */
static const struct { uint8_t at[12]; unsigned bits, offset; } inner[] = {
	{ { [10] = 0xff, [11] = 0xff }, 96, 12 },
	{ { 0 }, 96, 12 },
	{ { [8] = 0xff, [9] = 0xff }, 96, 12 },
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, 12 },
	{ { 0x20, 0x02 }, 16, 2 },
};

static bool begins(const uint8_t *a, const uint8_t *with, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;
	if (memcmp(a, with, whole) != 0)
		return false;
	return rest == 0 || (a[whole] ^ with[whole]) >> (8 - rest) == 0;
}

static enum addr_class look_up(const struct range *r, size_t n,
			       const uint8_t *a)
{
	for (size_t i = 0; i < n; i++)
		if (begins(a, r[i].at, r[i].bits))
			return r[i].class;
	return ADDR_PUBLIC;
}

enum addr_class addr_class(const struct addr *a)
{
	if (a->family == AF_INET)
		return look_up(v4, sizeof v4 / sizeof v4[0], a->bytes);
	enum addr_class c = look_up(v6, sizeof v6 / sizeof v6[0], a->bytes);
	for (size_t i = 0; c == ADDR_PUBLIC &&
	     i < sizeof inner / sizeof inner[0]; i++)
		if (begins(a->bytes, inner[i].at, inner[i].bits))
			return look_up(v4, sizeof v4 / sizeof v4[0],
				       a->bytes + inner[i].offset);
	return c;
}

/* An IPv4 address inside an IPv6 one is the machine's own as well. */
static bool same(const struct addr *a, const struct addr *b)
{
	size_t n = a->family == AF_INET ? 4 : 16;
	if (a->family == b->family)
		return !memcmp(a->bytes, b->bytes, n);
	if (a->family != AF_INET6)
		return false;
	for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++)
		if (begins(a->bytes, inner[i].at, inner[i].bits))
			return !memcmp(a->bytes + inner[i].offset, b->bytes, 4);
	return false;
}

bool addr_is_own(const struct addr *a)
{
	struct ifaddrs *all = NULL;
	bool found = false;
	if (getifaddrs(&all) < 0)
		return true;
	for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		struct addr own;
		found = i->ifa_addr && addr_from(&own, i->ifa_addr) &&
			same(a, &own);
	}
	freeifaddrs(all);
	return found;
}

const char *addr_class_word(enum addr_class c)
{
	static const char *const words[] = {
		"a public address", "no address", "a loopback address",
		"an address of a private network", "a link-local address",
		"a metadata service of a cloud", "a shared address (RFC 6598)",
		"a multicast address", "a reserved address",
		"an address of this machine"
	};
	return words[c];
}

void addr_text(char out[ADDR_TEXT], const struct addr *a)
{
	if (!inet_ntop(a->family, a->bytes, out, ADDR_TEXT))
		out[0] = 0;
}

bool addr_from(struct addr *a, const struct sockaddr *sa)
{
	*a = (struct addr){ .family = sa->sa_family };
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, sa, sizeof in);
		memcpy(a->bytes, &in.sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, sa, sizeof in6);
		memcpy(a->bytes, &in6.sin6_addr, 16);
	} else {
		return false;
	}
	return true;
}

socklen_t addr_to(struct sockaddr_storage *ss, const struct addr *a,
		  uint16_t port)
{
	memset(ss, 0, sizeof *ss);
	if (a->family == AF_INET) {
		struct sockaddr_in in = { .sin_family = AF_INET,
					  .sin_port = htons(port) };
		memcpy(&in.sin_addr, a->bytes, 4);
		memcpy(ss, &in, sizeof in);
		return sizeof in;
	}
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port) };
	memcpy(&in6.sin6_addr, a->bytes, 16);
	memcpy(ss, &in6, sizeof in6);
	return sizeof in6;
}
