/* SPDX-License-Identifier: MIT
 *
 * Any bytes, cut anywhere, are the same events. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/sse.h"

struct seen {
	struct hash *h;
	size_t n;
};

static int on(void *arg, const struct event *ev, struct err *e)
{
	struct seen *s = arg;
	(void)e;
	if (strlen(ev->kind) > SSE_KIND_MAX || ev->seq >> 53)
		abort();
	s->n++;
	hash_add(s->h, ev->kind, strlen(ev->kind) + 1);
	hash_add(s->h, &ev->seq, sizeof ev->seq);
	hash_add(s->h, ev->data.p, ev->data.n);
	return 0;
}

static void run(const uint8_t *p, size_t n, size_t step, uint8_t sum[32])
{
	struct sse s = { 0 };
	struct seen seen = { .h = hash_new() };
	for (size_t at = 0; at < n; at += step) {
		size_t m = n - at < step ? n - at : step;
		if (sse_feed(&s, p + at, m, on, &seen, NULL) < 0)
			break;
	}
	sse_free(&s);
	hash_final(seen.h, sum);
	hash_free(seen.h);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint8_t whole[32], bytes[32], odd[32];
	if (n == 0 || n > 65536)
		return 0;
	run(p, n, n, whole);
	run(p, n, 1, bytes);
	run(p, n, 7, odd);
	if (memcmp(whole, bytes, 32) || memcmp(whole, odd, 32))
		abort();
	return 0;
}
