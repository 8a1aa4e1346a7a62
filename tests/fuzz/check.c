/* SPDX-License-Identifier: MIT
 *
 * Fuzz: what a checker that was turned may say to its parent.  First byte: is
 * it about an image. */
#include <assert.h>

#include "core/host/check.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int keep(void *arg, const void *p, size_t n)
{
	(void)p;
	*(size_t *)arg += n;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct talk t;
	uint8_t file[300] = { 0 };
	struct bytes all = { file, sizeof file };
	struct zip_source body = zip_source_bytes(&all);
	struct check_ask ask = { .size = sizeof file };
	struct err e = { 0 };
	size_t kept = 0;
	struct zip_sink sink = { keep, &kept };
	int fd[2];

	if (n == 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0)
		return 0;
	t = (struct talk){
		.fd = fd[0], .body = &body, .sink = p[0] & 1 ? &sink : NULL,
		.deadline_ms = now_ms() + 1000,
	};
	assert(send(fd[1], p + 1, n - 1, 0) == (ssize_t)n - 1);
	shutdown(fd[1], SHUT_WR);
	int r = serve(&t, &ask, &e);
	assert(r == 0 || t.ended || e.code == ERR_CONTENT);
	for (const char *s = e.why; *s; s++)
		assert((unsigned char)*s >= 0x20 && *s != 0x7f);
	assert(kept <= sizeof file + CHECK_IMAGE_MORE);
	close(fd[0]);
	close(fd[1]);
	return 0;
}
