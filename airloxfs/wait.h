/* SPDX-License-Identifier: MIT
 *
 * wait: a condition, until a monotonic time (clock_mono_ms): a step of the
 * wall clock moves no deadline. */
#ifndef AIRLOXFS_WAIT_H
#define AIRLOXFS_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Like pthread_cond_wait; false once due_ms is there. */
static inline bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
			      int64_t due_ms)
{
	const struct timespec until = { .tv_sec = due_ms / 1000,
					.tv_nsec = due_ms % 1000 * 1000000 };
	return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC,
				      &until) == 0;
}

#endif
