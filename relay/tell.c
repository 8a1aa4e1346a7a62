/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "relay/tell.h"

#define AGAIN_S 10

static struct {
	pthread_mutex_t lock;
	char line[512];
	time_t at;
	unsigned more;
} last = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Whether it was said a moment ago; *more: how often what was said last. */
static bool is_repeated(const char *line, time_t now, unsigned *more)
{
	pthread_mutex_lock(&last.lock);
	bool again = strcmp(line, last.line) == 0 && now - last.at < AGAIN_S;
	*more = last.more;
	last.more = again ? last.more + 1 : 0;
	if (!again) {
		snprintf(last.line, sizeof last.line, "%s", line);
		last.at = now;
	}
	pthread_mutex_unlock(&last.lock);
	return again;
}

void tell(const char *fmt, ...)
{
	char line[512], at[32];
	struct tm tm;
	time_t now = time(NULL);
	unsigned more;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (is_repeated(line, now, &more))
		return;
	gmtime_r(&now, &tm);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (more)
		fprintf(stderr, "%s airlox-relay: the same, %u times more\n",
			at, more);
	fprintf(stderr, "%s airlox-relay: %s\n", at, line);
}
