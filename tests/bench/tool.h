/* SPDX-License-Identifier: MIT
 *
 * What the programs of the benchmarks share: each prints one number a line,
 * in microseconds, and dies with a sentence where something fails. */
#ifndef AIRLOX_BENCH_TOOL_H
#define AIRLOX_BENCH_TOOL_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double tool_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* r, unless it is -1: then the program ends. */
static inline long tool_must(long r, const char *what)
{
	if (r != -1)
		return r;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline int tool_usage(const char *text)
{
	fprintf(stderr, "usage: %s\n", text);
	return 64;
}

#endif
