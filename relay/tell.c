/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "relay/tell.h"

void tell(const char *fmt, ...)
{
	char line[512], at[32];
	struct tm tm;
	time_t now = time(NULL);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	gmtime_r(&now, &tm);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(stderr, "%s airlox-relay: %s\n", at, line);
}
