/* SPDX-License-Identifier: MIT
 *
 * watch: what the processes of a sandbox use, seen from outside: the part of
 * the limits that the kernel does not hold by itself.  Every process of a
 * sandbox is below its pid 1, since that adopts orphans. */
#ifndef AIRLOX_SANDBOX_WATCH_H
#define AIRLOX_SANDBOX_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runner/sandbox/plan.h"

struct watch_use {
	uint64_t memory_bytes;	/* anonymous and shared, and its tmpfs */
	uint32_t tasks;		/* processes and threads */
	uint32_t files;		/* descriptors of the one that has most */
};

/* Of the process `first` (the sandbox's pid 1) and all below it.  Memory is
 * looked at only where there is a limit to it, else memory_bytes stays 0. */
void watch_look(pid_t first, uint64_t limit_bytes, struct watch_use *use);

#endif
