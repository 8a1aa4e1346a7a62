/* SPDX-License-Identifier: MIT
 *
 * cmd: what the commands share: where the invite comes from, and how a peer
 * is opened.
 *
 * An invite is a secret.  It comes from the argument itself, @FILE, - (the
 * first line of stdin), --invite, or AIRLOX_INVITE; whichever it was, its
 * bytes in argv and environ are overwritten as soon as it is read. */
#ifndef AIRLOX_MOUNT_CMD_H
#define AIRLOX_MOUNT_CMD_H

#include "airloxfs/args.h"
#include "core/host/peer.h"

/* What AIRLOX_* variables said; they are gone from the environment. */
struct setting {
	char *invite, *relay, *name, *description, *cache_dir, *plain;
};

struct command {
	const char *name;
	int (*run)(struct setting *s, int argc, char **argv);
	const char *what;
};

/* The flags that every command with an invite has. */
struct common {
	struct setting *setting;
	const char *invite, *as, *description, *cache_dir, *plain;
	bool json;
	bool runner_too;	/* a runner's link is fine; set by the command */
};
#define CMD_PLAIN_FLAG(c) \
	{ "--allow-plain-http", FLAG_TEXT, &(c).plain, "HOST", \
	  "to this host also without TLS (AIRLOX_ALLOW_PLAIN_HTTP)" }
#define CMD_FLAGS(c) \
	{ "--invite", FLAG_TEXT, &(c).invite, "LINK", \
	  "the invite: a link, @FILE, or - for stdin (or AIRLOX_INVITE)" }, \
	{ "--as", FLAG_TEXT, &(c).as, "NAME", \
	  "display name, when joining for the first time (AIRLOX_NAME)" }, \
	{ "--description", FLAG_TEXT, &(c).description, "TEXT", \
	  "what you are or do, shown to the others (AIRLOX_DESCRIPTION)" }, \
	{ "--cache-dir", FLAG_TEXT, &(c).cache_dir, "DIR", \
	  "instead of ~/.cache/airlox (AIRLOX_CACHE_DIR)" }, \
	CMD_PLAIN_FLAG(c), \
	{ "--json", FLAG_SET, &(c).json, NULL, "print JSON" }

/* True if s is a link, so that it cannot be a text or a path. */
bool cmd_is_link(const char *s);
/* Parses a command's flags.  -1: go on; else the exit code with which the
 * command ends, since it was wrong or --help was asked for and printed. */
int cmd_begin(struct args *a, const struct flag *flags, int argc, char **argv,
	      const char *usage, const char *what);
/* Prints what is wrong with the arguments, and that --help tells more;
 * returns the exit code. */
int cmd_misuse(const char *why);
/* With --invite or AIRLOX_INVITE no invite need be an argument: takes the
 * first argument away as the invite if there are more than `others` of them,
 * or if there is no other source, or if it is a link.  May be NULL. */
char *cmd_take_invite(struct common *c, struct args *a, int others);
/* Parses the invite that `arg` (may be NULL), --invite or the environment
 * gives, and overwrites where it stood. */
int cmd_invite(struct invite *v, struct common *c, char *arg, struct err *e);
/* Lets http be used to the hosts that were named, if any. */
void cmd_allow_plain(const struct common *c);
void cmd_warn_plain(const char *base_url);
/* The name, description and cache directory to use; NULL where unset. */
void cmd_options(struct peer_options *o, const struct common *c);
/* cmd_invite and peer_open with kind cli.  A session that is over for us is
 * an error, and so is a relay out of reach. */
struct peer *cmd_open(struct common *c, char *arg, struct err *e);
/* The same, and ERR_ROLE unless it is the owner's. */
struct peer *cmd_open_owner(struct common *c, char *arg, struct err *e);

int cmd_create(struct setting *s, int argc, char **argv);
int cmd_invites(struct setting *s, int argc, char **argv);
int cmd_info(struct setting *s, int argc, char **argv);
int cmd_send(struct setting *s, int argc, char **argv);
int cmd_items(struct setting *s, int argc, char **argv);
int cmd_watch(struct setting *s, int argc, char **argv);
int cmd_run(struct setting *s, int argc, char **argv);
int cmd_result(struct setting *s, int argc, char **argv);
int cmd_cancel(struct setting *s, int argc, char **argv);
int cmd_runners(struct setting *s, int argc, char **argv);
int cmd_approve(struct setting *s, int argc, char **argv);
int cmd_reject(struct setting *s, int argc, char **argv);
int cmd_close(struct setting *s, int argc, char **argv);
int cmd_revoke(struct setting *s, int argc, char **argv);
int cmd_audit(struct setting *s, int argc, char **argv);
int cmd_forget(struct setting *s, int argc, char **argv);
int cmd_prompt(struct setting *s, int argc, char **argv);
int cmd_mount(struct setting *s, int argc, char **argv);
int cmd_umount(struct setting *s, int argc, char **argv);

#endif
