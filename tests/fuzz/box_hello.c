/* SPDX-License-Identifier: MIT
 *
 * A ClientHello: the name lies within it, and more bytes change no verdict. */
#include <stdlib.h>
#include <string.h>

#include "runner/broker/hello.h"
#include "runner/policy/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint8_t space[256], again[256];
	struct bytes name, other;
	struct host h;
	int rc = hello_read(p, n, space, &name);
	if (rc == 1 && name.n) {
		if (n < name.n || name.n > 255)
			abort();
		host_parse(&h, name);
	}
	for (size_t have = 0; have < n; have += 1 + have / 8) {
		int early = hello_read(p, have, again, &other);
		if (early != 0 && early != rc)
			abort();
		if (early == 1 && !bytes_eq(name, other))
			abort();
	}
	return 0;
}
