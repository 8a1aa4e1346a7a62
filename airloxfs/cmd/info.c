/* SPDX-License-Identifier: MIT
 *
 * info: what a session is and who is in it.  invites: its links again. */
#include <stdio.h>
#include <string.h>

#include "airloxfs/cmd.h"
#include "airloxfs/feed.h"
#include "airloxfs/links.h"
#include "airloxfs/print.h"
#include "core/clear.h"
#include "core/host/tell.h"

/* --- JSON --- */

/* An element needs the same comma that a member does. */
static void put_element(struct buf *b, const char *text)
{
	if (b->len && b->data[b->len - 1] != '[')
		buf_add_byte(b, ',');
	print_bytes(b, bytes_str(text));
}

static void put_limits(struct buf *b, const struct manifest *m)
{
	const struct job_limits *j = &m->job;
	json_put_key(b, "job_limits");
	if (m->mode != MODE_EXECUTE) {
		buf_add_str(b, "null");
		return;
	}
	buf_add_byte(b, '{');
	json_put_key_bool(b, "approve_runners", j->approve_runners);
	json_put_key_int(b, "memory_mb", j->memory_mb);
	json_put_key_bool(b, "network", j->network);
	json_put_key(b, "packages");
	buf_add_byte(b, '[');
	for (size_t i = 0; i < j->package_n; i++)
		put_element(b, j->packages[i]);
	buf_add_byte(b, ']');
	json_put_key_bool(b, "return_out", j->return_out);
	print_member(b, "runtime", j->runtime);
	json_put_key_int(b, "timeout_s", j->timeout_s);
	buf_add_byte(b, '}');
}

static void put_participant(struct buf *b, const struct participant *q)
{
	if (b->data[b->len - 1] != '[')
		buf_add_byte(b, ',');
	buf_add_byte(b, '{');
	print_member(b, "description", q->join.description);
	print_member(b, "display_name", q->join.display_name);
	print_member(b, "kind", client_kind_word(q->join.kind));
	json_put_key_bool(b, "left", q->left);
	json_put_key(b, "participant_pub");
	json_put_b64(b, q->join.cert.pub, PRIM_PUB);
	print_member(b, "role", role_word(q->join.cert.role));
	buf_add_byte(b, '}');
}

static int print_json(const struct peer *p)
{
	cleanup_buf struct buf b = { 0 };
	const struct manifest *m = &p->manifest;
	buf_add_str(&b, "{\"allowed_types\":[");
	for (size_t i = 0; i < m->allowed_n; i++)
		put_element(&b, type_word(m->order[i]));
	buf_add_byte(&b, ']');
	print_member(&b, "closed", p->state == PEER_CLOSED ? p->why.why : NULL);
	json_put_key(&b, "expires_at_ms");
	if (m->expires_at_ms == MANIFEST_FOREVER)
		buf_add_str(&b, "null");
	else
		json_put_int(&b, m->expires_at_ms);
	put_limits(&b, m);
	json_put_key_int(&b, "max_item_bytes", m->max_item_bytes);
	print_member(&b, "mode", m->mode == MODE_RELAY ? "relay" : "execute");
	json_put_key(&b, "participants");
	buf_add_byte(&b, '[');
	for (size_t i = 0; !buf_failed(&b) && i < p->people.n; i++)
		put_participant(&b, p->people.v[i]);
	buf_add_byte(&b, ']');
	print_member(&b, "relay", p->invite.base_url);
	print_member(&b, "session_id", m->session_id);
	print_member(&b, "your_role", role_word(p->invite.role));
	buf_add_byte(&b, '}');
	return print_doc(&b);
}

/* --- text --- */

static void say_limits(const struct manifest *m)
{
	const struct job_limits *j = &m->job;
	if (m->mode != MODE_EXECUTE)
		return;
	printf("jobs      %s, %lld s, %lld MB, %s, %s\n", j->runtime,
	       (long long)j->timeout_s, (long long)j->memory_mb,
	       j->network ? "network" : "no network",
	       j->approve_runners ? "runners need approval" :
				    "runners need no approval");
	if (j->package_n)
		printf("packages ");
	for (size_t i = 0; i < j->package_n; i++)
		printf(" %s", j->packages[i]);
	if (j->package_n)
		putchar('\n');
}

static void say_expiry(const struct peer *p)
{
	char iso[CLOCK_ISO], span[24];
	int64_t end = p->manifest.expires_at_ms;
	if (end == MANIFEST_FOREVER) {
		printf("expires   never\n");
		return;
	}
	clock_iso(iso, end);
	clock_span(span, end - clock_relay_ms(&p->clock));
	printf("expires   %s, in %s\n", iso, span);
}

static void say_participant(const struct participant *q)
{
	cleanup_buf struct buf b = { 0 };
	buf_addf(&b, "  %-20s %-8s %s", q->shown,
		 role_word(q->join.cert.role), q->fingerprint);
	if (q->left)
		buf_add_str(&b, q->revoked ? "  revoked" : "  left");
	if (q->join.description)
		buf_addf(&b, "  %s", q->join.description);
	const char *line = buf_cstr(&b);
	tell_say("%s", line ? line : "");
}

static int print_text(const struct peer *p)
{
	const struct manifest *m = &p->manifest;
	tell_say("session   %s on %s", m->session_id, p->invite.base_url);
	tell_say("you       %s", role_word(p->invite.role));
	tell_say("mode      %s", m->mode == MODE_RELAY ? "relay" : "execute");
	say_expiry(p);
	printf("types    ");
	for (size_t i = 0; i < m->allowed_n; i++)
		printf(" %s", type_word(m->order[i]));
	printf("\nlargest   %lld MiB an item\n",
	       (long long)(m->max_item_bytes >> 20));
	say_limits(m);
	printf("participants\n");
	for (size_t i = 0; i < p->people.n; i++)
		say_participant(p->people.v[i]);
	return tell_flush();
}

/* --- the commands --- */

static int no_items(void *arg, const struct shown *s, struct err *e)
{
	(void)arg;
	(void)s;
	(void)e;
	return 0;
}

static int info(struct common *c, char *arg, struct err *e)
{
	struct feed f = { 0 };
	struct peer *p = cmd_open(c, arg, e);
	int r = p ? feed_open(&f, p, no_items, NULL, e) : -1;
	f.quiet = true;
	if (r == 0)
		r = feed_now(&f, e);
	if (r == 0)
		r = c->json ? print_json(p) : print_text(p);
	feed_close(&f);
	peer_free(p);
	return r;
}

static int invites(struct common *c, char *arg, struct err *e)
{
	struct peer *p = cmd_open_owner(c, arg, e);
	int r = p ? links_print(&p->invite, &p->manifest, NULL, c->json, e) :
		-1;
	peer_free(p);
	return r;
}

static int run(struct setting *s, int argc, char **argv, const char *usage,
	       const char *what,
	       int (*act)(struct common *c, char *arg, struct err *e))
{
	struct common c = { .setting = s };
	const struct flag flags[] = { CMD_FLAGS(c), { 0 } };
	struct args a;
	struct err e;
	int over = cmd_begin(&a, flags, argc, argv,
			     usage, what);
	if (over >= 0)
		return over;
	char *arg = cmd_take_invite(&c, &a, 0);
	if (a.n)
		return cmd_misuse("too many arguments");
	int r = act(&c, arg, &e);
	return r < 0 ? tell_fail(&e) : r;
}

int cmd_info(struct setting *s, int argc, char **argv)
{
	return run(s, argc, argv, "airloxfs info [FLAGS] [INVITE]",
		   "Show the session's settings and participants.", info);
}

int cmd_invites(struct setting *s, int argc, char **argv)
{
	return run(s, argc, argv, "airloxfs invites [FLAGS] [INVITE]",
		   "Print the invite links (owner's invite only).", invites);
}
