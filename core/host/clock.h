/* SPDX-License-Identifier: MIT
 *
 * clock: time, and how far this machine's is from the relay's. */
#ifndef AIRLOX_HOST_CLOCK_H
#define AIRLOX_HOST_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/manifest.h"

#define CLOCK_SKEW_TOLD_MS (INT64_C(5) * 60 * 1000)	/* said in status */
#define CLOCK_SKEW_MAX_MS (INT64_C(60) * 60 * 1000)	/* refuses create */
#define CLOCK_FOREVER INT64_MAX

int64_t clock_now_ms(void);	/* Unix */
int64_t clock_mono_ms(void);

/* The relay's clock minus ours, as its Date headers say; zero-initialised.
 * One for a relay, shared by all threads that talk to it. */
struct clock {
	_Atomic int64_t offset_ms;
	_Atomic bool known;
};
/* A Date of `date_ms` (whole seconds) came with an answer whose request left
 * and whose head arrived at these local times. */
void clock_learn(struct clock *c, int64_t date_ms, int64_t sent_ms,
		 int64_t got_ms);
/* Offset, 0 where unknown or below 2 s, which a Date cannot tell. */
int64_t clock_skew_ms(const struct clock *c);
int64_t clock_relay_ms(const struct clock *c);	/* now + skew */
/* created_at_ms of what we sign: relay time, clamped into the session. */
int64_t clock_sign_ms(const struct clock *c, const struct manifest *m);
bool clock_expired(const struct clock *c, const struct manifest *m);

/* "90s" "30m" "1h" "1d" "500ms", a bare number of seconds, "never"
 * (CLOCK_FOREVER).  -1 for anything else. */
int clock_parse_duration(struct bytes s, int64_t *ms);

#define CLOCK_ISO 25
/* "2026-01-31T12:00:00.000Z", or "never". */
void clock_iso(char out[CLOCK_ISO], int64_t ms);
/* "3d 4h", "2h 5m", "40s": a span for people. */
void clock_span(char out[24], int64_t ms);

#endif
