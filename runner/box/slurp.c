/* SPDX-License-Identifier: MIT */
#include "runner/box/slurp.h"

#include <errno.h>

int slurp(int fd, size_t max, struct buf *out, struct err *e)
{
	for (;;) {
		uint8_t *to = buf_room(out, 65536);
		ssize_t n = to ? read(fd, to, 65536) : -1;
		if (!to)
			return err_set(e, ERR_MEMORY, "out of memory");
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read it");
		if (n == 0)
			return 0;
		out->len += (size_t)n;
		if (out->len > max)
			return err_set(e, ERR_SIZE, "it is over %zu KiB",
				       max >> 10);
	}
}
