/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <time.h>

#include "core/host/clock.h"

#define MS_A_SECOND INT64_C(1000)
#define MS_A_MINUTE (60 * MS_A_SECOND)
#define MS_AN_HOUR (60 * MS_A_MINUTE)
#define MS_A_DAY (24 * MS_AN_HOUR)

/* A Date has whole seconds, and the answer took a while. */
#define SKEW_FLOOR_MS INT64_C(2000)

static int64_t now_ms(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_now_ms(void) { return now_ms(CLOCK_REALTIME); }
int64_t clock_mono_ms(void) { return now_ms(CLOCK_MONOTONIC); }

void clock_learn(struct clock *c, int64_t date_ms, int64_t sent_ms,
		 int64_t got_ms)
{
	/* the request of a long wait says nothing about now */
	if (got_ms < sent_ms || got_ms - sent_ms > 10 * MS_A_SECOND)
		sent_ms = got_ms;
	int64_t here = sent_ms + (got_ms - sent_ms) / 2;
	atomic_store(&c->offset_ms, date_ms + 500 - here);
	atomic_store(&c->known, true);
}

int64_t clock_skew_ms(const struct clock *c)
{
	int64_t off = atomic_load(&c->offset_ms);
	return off > -SKEW_FLOOR_MS && off < SKEW_FLOOR_MS ? 0 : off;
}

int64_t clock_relay_ms(const struct clock *c)
{
	return clock_now_ms() + clock_skew_ms(c);
}

int64_t clock_sign_ms(const struct clock *c, const struct manifest *m)
{
	int64_t t = clock_relay_ms(c);
	if (t < m->created_at_ms)
		return m->created_at_ms;
	if (t >= m->expires_at_ms)
		return m->expires_at_ms - 1;
	return t;
}

bool clock_expired(const struct clock *c, const struct manifest *m)
{
	return m->expires_at_ms != MANIFEST_FOREVER &&
	       clock_relay_ms(c) >= m->expires_at_ms;
}

static int64_t unit_ms(struct bytes unit)
{
	static const struct { const char *word; int64_t ms; } units[] = {
		{ "", MS_A_SECOND }, { "ms", 1 }, { "s", MS_A_SECOND },
		{ "m", MS_A_MINUTE }, { "h", MS_AN_HOUR }, { "d", MS_A_DAY },
	};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (bytes_eq(unit, bytes_str(units[i].word)))
			return units[i].ms;
	return 0;
}

int clock_parse_duration(struct bytes s, int64_t *ms)
{
	int64_t n = 0;
	size_t i = 0;
	if (bytes_eq(s, bytes_str("never"))) {
		*ms = CLOCK_FOREVER;
		return 0;
	}
	for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
		n = n * 10 + (s.p[i] - '0');
		if (n > INT64_C(1) << 40)
			return -1;
	}
	int64_t unit = i ? unit_ms((struct bytes){ s.p + i, s.n - i }) : 0;
	if (!unit || n > (INT64_C(1) << 53) / unit)
		return -1;
	*ms = n * unit;
	return 0;
}

void clock_iso(char out[CLOCK_ISO], int64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm t;
	/* past the year 9999 it would not fit, and no session lasts so long */
	if (ms < 0 || ms > INT64_C(253402300799999) || !gmtime_r(&s, &t)) {
		snprintf(out, CLOCK_ISO, "never");
		return;
	}
	size_t n = strftime(out, CLOCK_ISO, "%Y-%m-%dT%H:%M:%S", &t);
	snprintf(out + n, CLOCK_ISO - n, ".%03dZ", (int)(ms % 1000));
}

void clock_span(char out[24], int64_t ms)
{
	long long s = (long long)(ms < 0 ? 0 : ms / 1000);
	if (ms == CLOCK_FOREVER)
		snprintf(out, 24, "for ever");
	else if (s >= 86400)
		snprintf(out, 24, "%lldd %lldh", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		snprintf(out, 24, "%lldh %lldm", s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(out, 24, "%lldm %llds", s / 60, s % 60);
	else
		snprintf(out, 24, "%llds", s);
}
