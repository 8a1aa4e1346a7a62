/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "airloxfs/cmd.h"
#include "core/host/tell.h"

#define LINK_MAX_BYTES 4096

bool cmd_is_link(const char *s)
{
	return (!strncmp(s, "http://", 7) || !strncmp(s, "https://", 8)) &&
	       strstr(s, "/s/") && strchr(s, '#');
}

int cmd_begin(struct args *a, const struct flag *flags, int argc, char **argv,
	      const char *usage, const char *what)
{
	struct err e;
	if (args_parse(a, flags, argc, argv, &e) < 0)
		return tell_fail(&e);
	if (!a->help)
		return -1;
	args_help(usage, what, flags);
	return 0;
}

int cmd_misuse(const char *why)
{
	struct err e;
	err_set(&e, ERR_USAGE, "%s; see --help", why);
	return tell_fail(&e);
}

char *cmd_take_invite(struct common *c, struct args *a, int others)
{
	bool elsewhere = c->invite || c->setting->invite;
	if (a->n == 0 || c->invite)
		return NULL;
	if (a->n <= others && elsewhere && !cmd_is_link(a->v[0]))
		return NULL;
	a->n--;
	return *a->v++;
}

/* The first line, byte by byte: what follows is somebody else's. */
static int read_line(int fd, struct buf *out, struct err *e)
{
	uint8_t c;
	while (out->len < LINK_MAX_BYTES) {
		ssize_t n = read(fd, &c, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read the invite");
		if (n == 0 || c == '\n')
			return 0;
		buf_add_byte(out, c);
	}
	return err_set(e, ERR_INVALID, "invite link: too long");
}

static int read_link(struct buf *out, const char *from, struct err *e)
{
	if (!strcmp(from, "-"))
		return read_line(STDIN_FILENO, out, e);
	if (from[0] != '@') {
		buf_add_str(out, from);
		return 0;
	}
	cleanup_fd int fd = open(from + 1, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, "cannot open %s", from + 1);
	return read_line(fd, out, e);
}

/* A file's name may stay for all to see; a link may not. */
static void overwrite(char *arg)
{
	if (arg && arg[0] != '@' && strcmp(arg, "-") != 0)
		memset(arg, '*', strlen(arg));
}

static struct bytes trim(struct bytes s)
{
	while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
		s.n--;
	while (s.n && strchr(" \t\r\n", s.p[0])) {
		s.p++;
		s.n--;
	}
	return s;
}

static int parse_link(struct invite *v, struct bytes link, bool runner_too,
		      struct err *e)
{
	if (invite_parse(v, link, e) < 0)
		return -1;
	if (v->role != ROLE_RUNNER || runner_too)
		return 0;
	invite_free(v);
	return err_set(e, ERR_ROLE, "this is a runner's link: mount it with "
		       "airloxfs mount --name NAME, or join with another "
		       "role's");
}

void cmd_allow_plain(const struct common *c)
{
	invite_allow_plain(c->plain ? c->plain : c->setting->plain);
}

void cmd_warn_plain(const char *base_url)
{
	if (invite_is_plain(base_url))
		tell_warn("no TLS to the relay: who is on the way sees who "
			  "takes part and when, and can act at the relay with "
			  "this participant's token; content stays sealed");
}

int cmd_invite(struct invite *v, struct common *c, char *arg, struct err *e)
{
	cleanup_buf struct buf link = { 0 };
	const char *from = arg ? arg : c->invite ? c->invite :
		c->setting->invite;
	if (!from)
		return err_set(e, ERR_USAGE, "no invite; give the link, @FILE, "
			       "- for stdin, or set AIRLOX_INVITE");
	int r = read_link(&link, from, e);
	cmd_allow_plain(c);
	if (r == 0)
		r = parse_link(v, trim(buf_bytes(&link)), c->runner_too, e);
	if (r == 0)
		cmd_warn_plain(v->base_url);
	overwrite(arg);
	overwrite((char *)c->invite);
	overwrite(c->setting->invite);
	return r;
}

void cmd_options(struct peer_options *o, const struct common *c)
{
	const struct setting *s = c->setting;
	*o = (struct peer_options){
		.cache_dir = c->cache_dir ? c->cache_dir : s->cache_dir,
		.name = c->as ? c->as : s->name,
		.description = c->description ? c->description :
			s->description,
		.kind = KIND_CLI,
	};
}

/* Takes over *v. */
static struct peer *open_online(struct invite *v, const struct common *c,
				struct err *e)
{
	struct peer_options o;
	cmd_options(&o, c);
	struct peer *p = peer_open(v, &o, e);
	if (!p || p->state == PEER_ONLINE)
		return p;
	*e = p->why;
	peer_free(p);
	return NULL;
}

struct peer *cmd_open(struct common *c, char *arg, struct err *e)
{
	struct invite v;
	if (cmd_invite(&v, c, arg, e) < 0)
		return NULL;
	return open_online(&v, c, e);
}

struct peer *cmd_open_owner(struct common *c, char *arg, struct err *e)
{
	struct invite v;
	if (cmd_invite(&v, c, arg, e) < 0)
		return NULL;
	if (v.role == ROLE_OWNER)
		return open_online(&v, c, e);
	err_set(e, ERR_ROLE, "this needs the owner's invite, not the %s's",
		role_word(v.role));
	invite_free(&v);
	return NULL;
}
