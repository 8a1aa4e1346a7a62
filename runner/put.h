/* SPDX-License-Identifier: MIT
 *
 * put: the whole of some bytes into a descriptor. */
#ifndef RUNNER_PUT_H
#define RUNNER_PUT_H

#include <errno.h>
#include <unistd.h>

#include "core/buf.h"

/* -1, with errno, where not all could be written. */
static inline int put_whole(int fd, struct bytes s)
{
	while (s.n) {
		ssize_t n = write(fd, s.p, s.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		s.p += n;
		s.n -= (size_t)n;
	}
	return 0;
}

#endif
