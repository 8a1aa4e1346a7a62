/* SPDX-License-Identifier: MIT
 *
 * What the sections of the vectors runner share: the session of a file, and
 * the tally.  A case begins, may disagree in several things, and ends. */
#ifndef TESTS_UNIT_VECTORS_H
#define TESTS_UNIT_VECTORS_H

#include "core/content.h"
#include "core/invite.h"
#include "core/payload.h"
#include "core/seal.h"
#include "tests/unit/loose.h"

struct world {
	const cJSON *file, *session, *participants;
	uint8_t owner_seed[32], session_key[32];
	struct manifest execute, relay;
};

static struct {
	int passed, failed;
	const char *section, *name;
	bool bad;
} tally;

static inline void begin(const char *section, const cJSON *c,
			 const char *name)
{
	const char *own = c ? loose_str(c, "name") : NULL;

	tally.section = section;
	tally.name = own ? own : name;
	tally.bad = false;
}

static inline void end(void)
{
	if (tally.bad)
		tally.failed++;
	else
		tally.passed++;
}

static inline void disagree(const char *what, const char *expected,
			    const char *got)
{
	tally.bad = true;
	printf("%s/%s: %s: expected %s, got %s\n", tally.section, tally.name,
	       what, expected, got);
}

static inline void expect(bool held, const char *what)
{
	if (!held)
		disagree(what, "the same", "another");
}

static inline void expect_text(const char *what, const char *expected,
			       struct bytes got)
{
	struct buf g = { 0 };

	buf_add(&g, got.p, got.n);
	if (!expected || !bytes_eq(got, bytes_str(expected)))
		disagree(what, expected ? expected : "(nothing)",
			 buf_cstr(&g));
	buf_free(&g);
}

static inline void expect_b64(const char *what, const char *expected,
			      const void *p, size_t n)
{
	struct buf b = { 0 };

	enc_b64(&b, p, n);
	expect_text(what, expected, buf_bytes(&b));
	buf_free(&b);
}

/* The verdict of a case against what we said (r, and e where r is -1). */
static inline bool judge(const cJSON *c, int r, const struct err *e)
{
	const char *verdict = loose_str(c, "verdict");
	const char *class = loose_str(c, "class");
	bool ok = verdict && strcmp(verdict, "ok") == 0;
	const char *want = ok ? "ok" : class ? class : "reject";
	const char *got = r == 0 ? "ok" : err_class(e->code);
	bool same = strcmp(want, got) == 0 ||
		    (!ok && !class && r != 0);

	if (!same) {
		disagree("verdict", want, got);
		if (r)
			printf("    (%s)\n", e->why);
	}
	return ok && r == 0;
}


#endif
