/* SPDX-License-Identifier: MIT
 *
 * Where a job is to go, as any sender says it; and, as it is the same form, a
 * heartbeat.  What was taken is well formed, and blanks between make no
 * difference. */
#include <stdlib.h>
#include <string.h>

#include "relay/aim.h"
#include "relay/flat.h"

/* Spaces wherever they may be: around the marks that are outside strings. */
static void spread(struct buf *out, const uint8_t *in, size_t n)
{
	bool inside = false;
	for (size_t i = 0; i < n; i++) {
		inside ^= in[i] == '"';
		bool mark = !inside && strchr("{}[]:,", in[i]) && in[i];
		buf_add_str(out, mark ? " " : "");
		buf_add_byte(out, in[i]);
		buf_add_str(out, mark ? " " : "");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n)
{
	struct aim a, b;
	struct flat f;
	struct bytes whole = { in, n };
	if (flat_parse(&f, whole, "it", NULL) == 0)
		for (size_t i = 0; i < f.n; i++)
			if (f.field[i].name.p + f.field[i].name.n > in + n)
				abort();
	if (aim_parse(&a, whole, NULL) < 0)
		return 0;
	for (size_t i = 0; i < a.label_n; i++)
		if (!label_ok(bytes_str(a.label[i])))
			abort();
	if ((a.kind == AIM_LABELS) != (a.label_n > 0) ||
	    (a.kind == AIM_RUNNER && !label_ok(bytes_str(a.name))))
		abort();
	cleanup_buf struct buf wide = { 0 };
	spread(&wide, in, n);
	if (aim_parse(&b, buf_bytes(&wide), NULL) < 0 || a.kind != b.kind ||
	    memcmp(a.label, b.label, sizeof a.label) != 0 ||
	    memcmp(a.pub, b.pub, PRIM_PUB) != 0)
		abort();
	return 0;
}
