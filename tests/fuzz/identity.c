/* SPDX-License-Identifier: MIT
 *
 * Fuzz: an identity file as anybody may have left it in the shared cache; what
 * is taken is taken the same when it was saved again. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/host/cache.h"

static struct cache *c;

static void begin(void)
{
	static char dir[] = "/tmp/airlox-fuzz-XXXXXX";
	struct err e = { 0 };
	if (c)
		return;
	if (prim_init() < 0 || !mkdtemp(dir))
		abort();
	c = cache_open(dir, "ax_aaaaaaaaaaaaaaaaaaaaaaaaaa", &e);
	if (!c)
		abort();
}

static void put(const uint8_t *p, size_t n)
{
	int fd = openat(c->dir, "identity-sender.json",
			O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (fd < 0 || file_put(fd, p, n, NULL) < 0)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct identity id, again;
	struct err e = { 0 };
	begin();
	put(p, n);
	if (cache_load_identity(c, ROLE_SENDER, &id, &e) != 0)
		return 0;
	assert(strlen(id.token) <= REST_TOKEN_MAX && id.role == ROLE_SENDER);
	if (cache_save_identity(c, &id, &e) < 0 ||
	    cache_load_identity(c, ROLE_SENDER, &again, &e) != 0)
		abort();
	assert(memcmp(id.seed, again.seed, sizeof id.seed) == 0);
	assert(strcmp(id.token, again.token) == 0);
	identity_free(&id);
	identity_free(&again);
	return 0;
}
