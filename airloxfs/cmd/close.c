/* SPDX-License-Identifier: MIT
 *
 * close and revoke: an owner's last words. */
#include <stdio.h>
#include <string.h>

#include "airloxfs/cmd.h"
#include "airloxfs/print.h"
#include "core/host/tell.h"

static int print_one(const struct common *c, const char *key,
		     const char *value, const char *sentence)
{
	cleanup_buf struct buf doc = { 0 };
	if (!c->json) {
		tell_say("%s", sentence);
		return tell_flush();
	}
	buf_add_byte(&doc, '{');
	print_member(&doc, key, value);
	buf_add_byte(&doc, '}');
	return print_doc(&doc);
}

/* --- close --- */

int cmd_close(struct setting *s, int argc, char **argv)
{
	struct common c = { .setting = s };
	const struct flag flags[] = { CMD_FLAGS(c), { 0 } };
	struct args a;
	struct err e;
	char text[128];
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs close [FLAGS] [INVITE]",
			     "End the session: the relay deletes all of it "
			     "(owner's invite only).");
	if (over >= 0)
		return over;
	char *arg = cmd_take_invite(&c, &a, 0);
	if (a.n)
		return cmd_misuse("too many arguments");
	struct peer *p = cmd_open_owner(&c, arg, &e);
	struct wire *w = p ? peer_wire(p, &e) : NULL;
	int r = w ? wire_close(w, &e) : -1;
	wire_free(w);
	if (r == 0) {
		const char *id = p->manifest.session_id;
		snprintf(text, sizeof text, "closed %s; the relay has deleted "
			 "it", id);
		r = print_one(&c, "closed", id, text);
	}
	peer_free(p);
	return r < 0 ? tell_fail(&e) : r;
}

/* --- revoke --- */

static int cut_off(struct common *c, char *arg, enum role role, struct err *e)
{
	char text[128];
	struct peer *p = cmd_open_owner(c, arg, e);
	struct wire *w = p ? peer_wire(p, e) : NULL;
	int r = w ? wire_revoke(w, role, e) : -1;
	wire_free(w);
	peer_free(p);
	if (r < 0)
		return -1;
	snprintf(text, sizeof text, "revoked: every %s is cut off, and that "
		 "link admits no one", role_word(role));
	return print_one(c, "revoked", role_word(role), text);
}

int cmd_revoke(struct setting *s, int argc, char **argv)
{
	struct common c = { .setting = s };
	const struct flag flags[] = { CMD_FLAGS(c), { 0 } };
	struct args a;
	struct err e;
	enum role role;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs revoke [FLAGS] [INVITE] "
			     "sender|observer|runner",
			     "Cut off a role (owner's invite only).  Who kept "
			     "its link can still read what they\nhave; close "
			     "the session to end the rest.");
	if (over >= 0)
		return over;
	char *arg = cmd_take_invite(&c, &a, 1);
	if (a.n != 1 || role_parse(&role, bytes_str(a.v[0])) < 0 ||
	    role == ROLE_OWNER)
		return cmd_misuse("which role: sender, observer or runner");
	int r = cut_off(&c, arg, role, &e);
	return r < 0 ? tell_fail(&e) : r;
}
