/* SPDX-License-Identifier: MIT
 *
 * Lines of a mount's events, of which a record is told what a box wrote:
 * whatever is said is canonical JSON, a line each. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "runner/box/letters.h"

static void check(struct bytes line)
{
	struct json *doc = json_parse(line, NULL);
	if (!doc)
		abort();
	json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct letters l = { .dir = -1, .pid_ns = 7 };
	struct buf out = { 0 };
	letters_read(&l, (struct bytes){ p, n }, &out);
	letters_end(&l, n & 1, &out);
	for (size_t at = 0; at < out.len;) {
		const uint8_t *lf = memchr(out.data + at, '\n', out.len - at);
		const uint8_t *from = lf ? memchr(out.data + at, ' ',
			(size_t)(lf - out.data) - at) : NULL;
		if (!from)
			abort();
		check((struct bytes){ from + 1, (size_t)(lf - from) - 1 });
		at = (size_t)(lf - out.data) + 1;
	}
	buf_free(&out);
	return 0;
}
