/* SPDX-License-Identifier: MIT
 *
 * Fuzz: what is written into ctl.  First byte: the role.  The mount has no
 * items and no files, so that nothing there can be meant: a line is a known
 * verb, or it is refused with a sentence. */
#include <assert.h>

#include "airloxfs/ctl.c"
#include "airloxfs/in_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct in in;
	static struct peer peer;
	static struct mount m;
	struct node ctl = { 0 };
	if (n == 0)
		return 0;
	m = (struct mount){ .peer = &peer, .in = &in };
	pthread_mutex_init(&m.lock, NULL);
	pthread_mutex_init(&in.lock, NULL);
	peer.invite.role = (enum role)(p[0] % ROLES);
	int err = ctl_lines(&m, &ctl, p + 1, n - 1, verb);
	assert(!err == !m.last_error.why[0]);
	assert(!err || err == EINVAL || err == ESHUTDOWN);
	for (const char *s = m.last_error.why; *s; s++)
		assert((unsigned char)*s >= 0x20 && *s != 0x7f);
	return 0;
}
