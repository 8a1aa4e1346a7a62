/* SPDX-License-Identifier: MIT
 *
 * items: what is in the session now.  watch: what comes. */
#include "airloxfs/cmd.h"
#include "airloxfs/show.h"
#include "core/host/tell.h"

struct options {
	struct common c;
	const char *save, *timeout;
	bool only_new;
};

static int hear_all(struct peer *p, const struct options *o, int64_t end_ms,
		    struct err *e)
{
	struct show s;
	struct feed f = { 0 };
	int r = -1;
	if (show_open(&s, o->save, o->c.json, e) == 0 &&
	    feed_open(&f, p, show_item, &s, e) == 0) {
		f.quiet = o->only_new;
		r = feed_now(&f, e);
		f.quiet = false;
		if (r == 0 && end_ms)
			r = feed_follow(&f, end_ms, e);
	}
	feed_close(&f);
	show_close(&s);
	return r;
}

static int run(struct options *o, struct args *a, int64_t end_ms)
{
	struct err e;
	char *arg = cmd_take_invite(&o->c, a, 0);
	if (a->n)
		return cmd_misuse("too many arguments");
	struct peer *p = cmd_open(&o->c, arg, &e);
	int r = p ? hear_all(p, o, end_ms, &e) : -1;
	peer_free(p);
	return r < 0 ? tell_fail(&e) : tell_flush();
}

int cmd_items(struct setting *s, int argc, char **argv)
{
	struct options o = { .c = { .setting = s } };
	const struct flag flags[] = {
		CMD_FLAGS(o.c),
		{ "--save", FLAG_TEXT, &o.save, "DIR",
		  "save received files into this directory" },
		{ 0 }
	};
	struct args a;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs items [FLAGS] [INVITE]",
			     "Print the session's items so far.");
	if (over >= 0)
		return over;
	return run(&o, &a, 0);
}

int cmd_watch(struct setting *s, int argc, char **argv)
{
	struct options o = { .c = { .setting = s } };
	const struct flag flags[] = {
		CMD_FLAGS(o.c),
		{ "--save", FLAG_TEXT, &o.save, "DIR",
		  "save received files into this directory" },
		{ "--new", FLAG_SET, &o.only_new, NULL,
		  "only what arrives from now on" },
		{ "--timeout", FLAG_TEXT, &o.timeout, "TIME",
		  "stop after this long (30s, 5m)" },
		{ 0 }
	};
	struct args a;
	struct err e;
	int64_t ms = CLOCK_FOREVER;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs watch [FLAGS] [INVITE]",
			     "Print items as they arrive.");
	if (over >= 0)
		return over;
	if (o.timeout &&
	    clock_parse_duration(bytes_str(o.timeout), &ms) < 0) {
		err_set(&e, ERR_USAGE, "--timeout: not a time: %s", o.timeout);
		return tell_fail(&e);
	}
	return run(&o, &a, ms == CLOCK_FOREVER ? ms : clock_mono_ms() + ms);
}
