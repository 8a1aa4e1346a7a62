/* SPDX-License-Identifier: MIT
 *
 * runners: who can run jobs.  approve, reject: who may (owner). */
#include <string.h>

#include "airloxfs/cmd.h"
#include "airloxfs/job_show.h"
#include "airloxfs/print.h"
#include "core/host/tell.h"

struct listing {
	struct common c;
	const char *reason;		/* of reject */
	struct peer *peer;
	struct follow follow;
	const uint8_t *only;		/* this one, or NULL */
	struct buf doc;
	size_t n;
};

static int open_session(struct listing *l, char *invite, bool owner,
			struct err *e)
{
	l->peer = (owner ? cmd_open_owner : cmd_open)(&l->c, invite, e);
	if (!l->peer || follow_open(&l->follow, l->peer, e) < 0 ||
	    follow_now(&l->follow, e) < 0)
		return -1;
	return follow_approvals(&l->follow, NULL, e);
}

/* Who it is comes from its verified join, its approval from the owner's
 * signed events; the relay says who is there and busy. */
static int hear_runner(void *arg, const struct listed_runner *r,
		       struct err *e)
{
	struct listing *l = arg;
	const struct follow *f = &l->follow;
	struct shown_runner shown = {
		.who = people_find(&l->peer->people, r->pub),
		.online = r->online,
	};

	(void)e;
	if (!shown.who || !shown.who->shown_runner ||
	    (l->only && memcmp(l->only, r->pub, PRIM_PUB) != 0))
		return 0;
	shown.rejected = r->rejected ||
		approval_of(&f->approvals, r->pub) == APPROVAL_REFUSED;
	shown.approved = !shown.rejected &&
		approval_stands(&f->approvals, &l->peer->manifest, r->pub);
	memcpy(shown.job, r->job, sizeof shown.job);
	l->n++;
	if (!l->c.json) {
		job_say_runner(&shown);
		return 0;
	}
	if (l->doc.len && l->doc.data[l->doc.len - 1] == '}')
		buf_add_byte(&l->doc, ',');
	job_put_runner(&l->doc, &shown);
	return 0;
}

static int list(struct listing *l, char *invite, const char *name,
		struct err *e)
{
	(void)name;
	buf_add_str(&l->doc, "{\"runners\":[");
	if (open_session(l, invite, false, e) < 0 ||
	    wire_runners(l->follow.feed.get, hear_runner, l, e) < 0)
		return -1;
	buf_add_str(&l->doc, "]}");
	if (l->c.json)
		return print_doc(&l->doc);
	if (!l->n)
		tell_note("no runner has joined");
	return 0;
}

/* The runner that was meant, by what it signed. */
static int find(struct listing *l, char *invite, const char *name,
		struct err *e)
{
	if (open_session(l, invite, true, e) < 0)
		return -1;
	struct participant *q = people_runner(&l->peer->people,
					      bytes_str(name), e);
	if (!q)
		return err_prefix(e, "%s", name);
	l->only = q->join.cert.pub;
	return 0;
}

/* {"approved":{...}}: as it is now. */
static int show(struct listing *l, const char *what, struct err *e)
{
	if (follow_now(&l->follow, e) < 0)
		return -1;
	buf_addf(&l->doc, "{\"%s\":", what);
	if (!l->c.json)
		tell_say("%s", what);
	if (wire_runners(l->follow.feed.get, hear_runner, l, e) < 0)
		return -1;
	buf_add_str(&l->doc, l->n ? "}" : "null}");
	return l->c.json ? print_doc(&l->doc) : 0;
}

static int approve(struct listing *l, char *invite, const char *name,
		   struct err *e)
{
	if (find(l, invite, name, e) < 0 ||
	    approval_give(l->peer, l->follow.feed.get, &l->follow.approvals,
			  l->only, e) < 0)
		return -1;
	return show(l, "approved", e);
}

static int reject(struct listing *l, char *invite, const char *name,
		  struct err *e)
{
	if (find(l, invite, name, e) < 0 ||
	    approval_refuse(l->peer, l->follow.feed.get,
			    &l->follow.approvals, l->only, l->reason, e) < 0)
		return -1;
	return show(l, "rejected", e);
}

static int run(struct listing *l, struct args *a, int others,
	       int (*act)(struct listing *l, char *invite, const char *name,
			  struct err *e))
{
	struct err e;
	char *invite = cmd_take_invite(&l->c, a, others);

	if (a->n != others)
		return cmd_misuse(a->n < others ? "which runner? its name or "
				  "key" : "too many arguments");
	int r = act(l, invite, others ? a->v[0] : NULL, &e);
	follow_close(&l->follow);
	peer_free(l->peer);
	buf_free(&l->doc);
	return r < 0 ? tell_fail(&e) : r ? r : tell_flush();
}

int cmd_runners(struct setting *set, int argc, char **argv)
{
	struct listing l = { .c = { .setting = set } };
	const struct flag flags[] = { CMD_FLAGS(l.c), { 0 } };
	struct args a;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs runners [FLAGS] [INVITE]",
			     "List who can run jobs.");
	if (over >= 0)
		return over;
	return run(&l, &a, 0, list);
}

int cmd_approve(struct setting *set, int argc, char **argv)
{
	struct listing l = { .c = { .setting = set } };
	const struct flag flags[] = { CMD_FLAGS(l.c), { 0 } };
	struct args a;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs approve [FLAGS] [INVITE] RUNNER",
			     "Let a runner take jobs (owner's invite only).");
	if (over >= 0)
		return over;
	return run(&l, &a, 1, approve);
}

int cmd_reject(struct setting *set, int argc, char **argv)
{
	struct listing l = { .c = { .setting = set } };
	const struct flag flags[] = {
		CMD_FLAGS(l.c),
		{ "--reason", FLAG_TEXT, &l.reason, "TEXT",
		  "why; it is shown to all" },
		{ 0 }
	};
	struct args a;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs reject [FLAGS] [INVITE] RUNNER",
			     "Turn a runner away for good (owner's invite only).");
	if (over >= 0)
		return over;
	return run(&l, &a, 1, reject);
}
