/* SPDX-License-Identifier: MIT */
#include "runner/box/take.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clear.h"
#include "runner/box/launch.h"
#include "runner/box/say.h"

#define SAID_MAX 20u

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_ALL, ANSWER_QUIT };

struct taker {
	struct apply *a;
	const char *original;
	enum answer all;	/* YES, or QUIT, once that was said */
	size_t done, failed, aside, said;
};

/* To stderr, escaped, line by line. */
static void show(struct bytes text)
{
	while (text.n) {
		const uint8_t *lf = memchr(text.p, '\n', text.n);
		size_t n = lf ? (size_t)(lf - text.p) : text.n;
		cleanup_buf struct buf clean = { 0 };
		clear_escape(&clean, (struct bytes){ text.p, n });
		fprintf(stderr, "  %s\n", buf_cstr(&clean) ? buf_cstr(&clean) :
			"");
		text.p += n + (lf != NULL);
		text.n -= n + (lf != NULL);
	}
}

static void show_change(const struct taker *t, const struct change *c)
{
	cleanup_buf struct buf diff = { 0 };
	change_diff(&diff, c);
	fprintf(stderr, "\n%s %s/%s", change_word(c), t->original,
		change_path(c));
	if (c->is)
		fprintf(stderr, ", %llu bytes", (unsigned long long)
			c->is->size);
	fputc('\n', stderr);
	if (!buf_failed(&diff))
		show(buf_bytes(&diff));
	if (apply_is_risky(c))
		fputs("  git runs programs that are named in there\n", stderr);
}

/* A line of the terminal; its end, or a signal, is "quit". */
static enum answer ask_once(void)
{
	char line[64];
	size_t n = 0;
	fputs("take it? [y]es, [n]o, [a]ll from here on, [q]uit: ", stderr);
	fflush(stderr);
	for (;;) {
		char c;
		if (launch_stop || read(STDIN_FILENO, &c, 1) != 1)
			return ANSWER_QUIT;
		if (c == '\n')
			break;
		if (n < sizeof line)
			line[n++] = c;
	}
	switch (n ? line[0] : 0) {
	case 'y': case 'Y': return ANSWER_YES;
	case 'a': case 'A': return ANSWER_ALL;
	case 'q': case 'Q': return ANSWER_QUIT;
	case 'n': case 'N': return ANSWER_NO;
	default: return ask_once();
	}
}

static enum answer decide(struct taker *t, const struct change *c)
{
	if (t->all == ANSWER_QUIT)
		return ANSWER_QUIT;
	if (t->all == ANSWER_ALL && !apply_is_risky(c))
		return ANSWER_YES;
	show_change(t, c);
	enum answer said = ask_once();
	if (said == ANSWER_ALL || said == ANSWER_QUIT)
		t->all = said;
	return said == ANSWER_ALL ? ANSWER_YES : said;
}

static void report(struct taker *t, const struct change *c)
{
	if (t->said++ < SAID_MAX)
		say_note("%s/%s: %s", t->original, change_path(c),
			 c->applied);
}

static void set_aside(struct taker *t, struct change *c, const char *why,
		      const char *plain)
{
	bool kept = apply_keep_aside(t->a, c);
	c->applied = kept ? why : plain;
	t->failed++;
	report(t, c);
}

static void do_one(struct taker *t, struct change *c)
{
	if (apply_change(t->a, c, &c->applied)) {
		c->applied = "yes";
		t->done++;
		return;
	}
	t->failed++;
	report(t, c);
}

static const char *refusal(const char *why)
{
	return !strcmp(why, "it is a link") ? "no: it is a link" :
	       !strncmp(why, "it is too large", 15) ?
	       "no: it is too large, or could not be read" :
	       !strcmp(why, "it is no regular file") ?
	       "no: it is no regular file" :
	       "no: its name has characters that cannot be seen";
}

static void take_one(struct taker *t, struct change *c, enum files_apply how,
		     bool failed)
{
	const char *why = apply_refuses(c);
	if (why) {
		c->applied = refusal(why);
		t->failed++;
		report(t, c);
	} else if (how == FILES_ASK) {
		enum answer said = decide(t, c);
		if (said == ANSWER_YES)
			do_one(t, c);
		else
			c->applied = "no: not wanted";
	} else if (failed) {
		set_aside(t, c, "kept aside: the command did not end well",
			  "no: the command did not end well");
	} else if (apply_is_risky(c)) {
		set_aside(t, c, "kept aside: within .git, which --apply=all "
			  "does not touch", "no: within .git, which "
			  "--apply=all does not touch");
	} else {
		do_one(t, c);
	}
}

/* What goes away first: a file may become a directory. */
size_t take_changes(struct apply *a, struct changes *c, enum files_apply how,
		    const char *original, bool failed)
{
	struct taker t = { .a = a, .original = original, .all = ANSWER_NO };
	for (int removed = 1; removed >= 0; removed--)
		for (size_t i = 0; i < c->n; i++)
			if ((c->v[i].kind == CHANGE_REMOVED) == removed)
				take_one(&t, &c->v[i], how, failed);
	if (t.said > SAID_MAX)
		say_note("and %zu more", t.said - SAID_MAX);
	if (t.done)
		say_note("%zu change%s taken to %s", t.done,
			 t.done == 1 ? "" : "s", original);
	if (a->aside_fd >= 0)
		say_note("what could not be taken is in %s", a->aside);
	return t.failed;
}
