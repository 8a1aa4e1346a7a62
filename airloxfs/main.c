/* SPDX-License-Identifier: MIT
 *
 * airloxfs: an end-to-end encrypted session that one can cd into. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "airloxfs/cmd.h"
#include "airloxfs/notify.h"
#include "core/host/check.h"
#include "core/host/tell.h"

static const struct command commands[] = {
	{ "create", cmd_create, "make a session and print its links" },
	{ "mount", cmd_mount, "mount a session on a directory" },
	{ "umount", cmd_umount, "unmount it, sending what is queued" },
	{ "invites", cmd_invites, "print the links again (owner)" },
	{ "info", cmd_info, "settings and participants" },
	{ "send", cmd_send, "send a text, or files" },
	{ "items", cmd_items, "print what was sent so far" },
	{ "watch", cmd_watch, "print items as they arrive" },
	{ "run", cmd_run, "run a Python file on a runner" },
	{ "result", cmd_result, "the result of a job" },
	{ "cancel", cmd_cancel, "stop a job" },
	{ "runners", cmd_runners, "who can run jobs" },
	{ "approve", cmd_approve, "let a runner take jobs (owner)" },
	{ "reject", cmd_reject, "turn a runner away (owner)" },
	{ "revoke", cmd_revoke, "cut off a role (owner)" },
	{ "close", cmd_close, "end the session for all (owner)" },
	{ "audit", cmd_audit, "the relay's record (owner, observer)" },
	{ "forget", cmd_forget, "remove a session's files from this machine" },
	{ "prompt", cmd_prompt, "a prompt for an agent in a mount" },
	{ 0 }
};

static const char usage[] =
	"usage: airloxfs COMMAND [FLAGS] [INVITE] ...\n\n"
	"An end-to-end encrypted session that you can cd into.\n\n";

static void help(void)
{
	fputs(usage, stdout);
	for (const struct command *c = commands; c->name; c++)
		printf("  %-8s %s\n", c->name, c->what);
	printf("\nINVITE is a link, @FILE, or - for stdin; without one, "
	       "AIRLOX_INVITE.\nairloxfs COMMAND --help lists its flags.\n");
}

/* Keys live in this process: nobody attaches to it, and it leaves no core. */
static int harden(void)
{
	const struct rlimit none = { 0, 0 };
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return -1;
	return prim_init() < 0 || rest_init() < 0 ? -1 : 0;
}

/* The variable's value, which then is nowhere in the environment. */
static char *take_env(const char *name)
{
	char *v = getenv(name), *copy = v && *v ? strdup(v) : NULL;
	if (v)
		memset(v, '*', strlen(v));
	unsetenv(name);
	return copy;
}

static void read_setting(struct setting *s)
{
	*s = (struct setting){
		.invite = take_env("AIRLOX_INVITE"),
		.relay = take_env("AIRLOX_RELAY"),
		.name = take_env("AIRLOX_NAME"),
		.description = take_env("AIRLOX_DESCRIPTION"),
		.cache_dir = take_env("AIRLOX_CACHE_DIR"),
		.plain = take_env("AIRLOX_ALLOW_PLAIN_HTTP"),
	};
}

static void free_setting(struct setting *s)
{
	if (s->invite)
		prim_wipe(s->invite, strlen(s->invite));
	free(s->invite);
	free(s->relay);
	free(s->name);
	free(s->description);
	free(s->cache_dir);
	free(s->plain);
}

static int run(struct setting *s, int argc, char **argv)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, argv[1]))
			return c->run(s, argc - 1, argv + 1);
	tell_note("no command %s; see airloxfs --help", argv[1]);
	return err_exit(ERR_USAGE);
}

int main(int argc, char **argv)
{
	struct setting s;
	/* our own children: exec'd without environment, they join nothing */
	if (argc > 1 && !strcmp(argv[1], HELPER_ARG))
		return helper_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], CHECK_ARG))
		return check_main();
	tell_init("airloxfs");
	if (harden() < 0)
		tell_die(err_exit(ERR_SYS), "cannot start safely here");
	read_setting(&s);
	int r = 0;
	if (argc < 2) {
		fputs(usage, stderr);
		r = err_exit(ERR_USAGE);
	} else if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
		   !strcmp(argv[1], "help")) {
		help();
	} else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("airloxfs %s\n", AIRLOX_VERSION);
	} else {
		r = run(&s, argc, argv);
	}
	free_setting(&s);
	int flushed = tell_flush();
	return r ? r : flushed;
}
