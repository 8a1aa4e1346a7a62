/* SPDX-License-Identifier: MIT */
#include "core/host/clock.h"
#include "tests/unit/tap.h"

static void duration(const char *text, int64_t want)
{
	int64_t ms = -7;
	int r = clock_parse_duration(bytes_str(text), &ms);
	is_int(r < 0 ? -1 : ms, want, "duration '%s'", text);
}

static void durations(void)
{
	duration("90s", 90000);
	duration("30m", 1800000);
	duration("1h", 3600000);
	duration("1d", 86400000);
	duration("500ms", 500);
	duration("60", 60000);
	duration("0s", 0);
	duration("never", CLOCK_FOREVER);
	duration("", -1);
	duration("m", -1);
	duration("-1m", -1);
	duration("1.5h", -1);
	duration("1 h", -1);
	duration("1h30m", -1);
	duration("1w", -1);
	duration("9999999999999999999d", -1);
	duration("1099511627776d", -1);
}

static void skew(void)
{
	struct clock c = { 0 };
	struct manifest m = { .created_at_ms = clock_now_ms() - 1000,
			      .expires_at_ms = clock_now_ms() + 3600000 };
	int64_t now = clock_now_ms();

	is_int(clock_skew_ms(&c), 0, "no skew before the first Date");
	clock_learn(&c, (now + 900) / 1000 * 1000, now, now);
	is_int(clock_skew_ms(&c), 0, "what a Date cannot tell is none");
	clock_learn(&c, now - 7200000, now, now + 100);
	ok(llabs(clock_skew_ms(&c) + 7200000) < 1000, "two hours behind us");
	is_int(clock_sign_ms(&c, &m), m.created_at_ms,
	       "what we sign is not from before the session");
	clock_learn(&c, now + 7200000, now, now);
	is_int(clock_sign_ms(&c, &m), m.expires_at_ms - 1,
	       "nor from after it");
	ok(clock_expired(&c, &m), "the relay's time decides about the end");
	m.expires_at_ms = MANIFEST_FOREVER;
	ok(!clock_expired(&c, &m), "for ever has no end");
	clock_learn(&c, now, now - 60000, now);
	is_int(clock_skew_ms(&c), 0, "a slow answer is no skew");
}

static void texts(void)
{
	char t[CLOCK_ISO], s[24];
	clock_iso(t, 0);
	is_str(t, "1970-01-01T00:00:00.000Z", "the epoch");
	clock_iso(t, INT64_C(1767182400007));
	is_str(t, "2025-12-31T12:00:00.007Z", "a day of 2025");
	clock_iso(t, CLOCK_FOREVER);
	is_str(t, "never", "for ever");
	clock_span(s, 12 * 60000 + 5000);
	is_str(s, "12m 5s", "a span");
	clock_span(s, 49 * 3600000);
	is_str(s, "2d 1h", "a long one");
}

int main(void)
{
	durations();
	skew();
	texts();
	return done_testing();
}
