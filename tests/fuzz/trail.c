/* SPDX-License-Identifier: MIT
 *
 * Lines of an audit trail, after a good beginning and without one; however
 * often they come, what is counted adds up. */
#include <string.h>

#include "core/host/trail.h"
#include "core/json.h"
#include "tests/unit/party.h"

static struct party party;
static struct buf first;

static void begin(void)
{
	party_begin(&party, MODE_EXECUTE);
	buf_addf(&first, "{\"at_ms\":1,\"event\":\"created\",\"session_id\":"
		 "\"%s\",\"signed_manifest\":", party.m.session_id);
	json_put_string(&first, buf_bytes(&party.manifest));
	buf_add_byte(&first, '}');
}

static void feed(const uint8_t *p, size_t n, bool whole)
{
	struct err e;
	struct trail *t = trail_new(NULL, (struct bytes){ NULL, 0 }, &e);
	uint32_t bad = 0, good = 0;
	if (whole && trail_line(t, buf_bytes(&first), &e) < 0)
		abort();
	good += whole;
	while (n) {
		const uint8_t *end = memchr(p, '\n', n);
		size_t m = end ? (size_t)(end - p) : n;
		int rc = trail_line(t, (struct bytes){ p, m }, &e);
		bad += rc < 0;
		good += rc == 0;
		n -= m + (end != NULL);
		p += m + (end != NULL);
	}
	const struct trail_sum *s = trail_sum(t);
	if (s->faults != bad || s->lines != good + bad ||
	    s->items + s->words + s->joins[0] + s->joins[1] + s->joins[2] +
	    s->joins[3] + (*s->session_id ? 1 : 0) < good)
		abort();
	trail_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (!first.len)
		begin();
	feed(p, n, true);
	feed(p, n, false);
	return 0;
}
