/* SPDX-License-Identifier: MIT
 *
 * Any bytes are a spec.json within its bounds, or a sentence. */
#include <stdlib.h>
#include <string.h>

#include "runner/queue/spec.h"
#include "runner/runtime/python.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct err e = { 0 };
	struct spec s;
	int r = spec_parse(&s, (struct bytes){ p, n }, &e);
	if (r < 0 && (e.code == ERR_NONE || !e.why[0]))
		abort();
	if (r == 0 && (!s.entry[0] || strchr(s.entry, '/') ||
		       !python_is_name(s.runtime) || s.timeout_s < 1 ||
		       s.timeout_s > 3600 || s.memory_mb < 32))
		abort();
	for (size_t i = 0; i < s.requirements.n; i++)
		if (s.requirements.v[i][0] == '-')
			abort();
	spec_free(&s);
	return 0;
}
