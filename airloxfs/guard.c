/* SPDX-License-Identifier: MIT */
#include <time.h>
#include <unistd.h>

#include "airloxfs/guard.h"
#include "core/host/tell.h"

static void *watch(void *arg)
{
	const struct guard *g = arg;
	struct timespec t = { .tv_sec = g->ms / 1000,
			      .tv_nsec = g->ms % 1000 * 1000000 };
	struct err e;
	nanosleep(&t, NULL);
	err_set(&e, ERR_TIMEOUT, "the mount on %s does not answer: end the "
		"process that serves it, then fusermount3 -u %s", g->path,
		g->path);
	_exit(tell_fail(&e));
}

void guard_begin(struct guard *g, const char *path, int64_t ms)
{
	*g = (struct guard){ .ms = ms, .path = path };
	g->on = pthread_create(&g->thread, NULL, watch, g) == 0;
}

void guard_end(struct guard *g)
{
	if (!g->on)
		return;
	pthread_cancel(g->thread);
	pthread_join(g->thread, NULL);
	g->on = false;
}
