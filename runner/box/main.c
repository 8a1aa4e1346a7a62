/* SPDX-License-Identifier: MIT
 *
 * airlox-box: a program in a sealed box, behind a broker that decides. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "core/prim.h"
#include "runner/box/agent.h"
#include "runner/box/attach.h"
#include "runner/box/boxes.h"
#include "runner/box/check.h"
#include "runner/box/launch.h"
#include "runner/box/reap.h"
#include "runner/box/say.h"
#include "runner/box/serve.h"
#include "runner/box/verify.h"
#include "runner/hand/hand.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "check", check_main, "read a policy and say what it does" },
	{ "run", launch_main, "run a command in a box" },
	{ "agent", agent_main, "give a prompt to an agent in a box" },
	{ "attach", attach_main, "watch a run, answer its questions" },
	{ "verify", verify_main, "whether a record is as it was signed" },
	{ "show", show_main, "a record as text" },
	{ "boxes", boxes_main, "the runs there are" },
	{ "stop", stop_main, "end a run; its record is written" },
	{ "reap", reap_main, "clear what a killed command line left" },
	{ 0 }
};

static void print_help(FILE *to)
{
	fputs("usage: airlox-box COMMAND [FLAGS] POLICY ...\n\n"
	      "A program in a sealed box, behind a broker that decides what "
	      "leaves it.\n\n", to);
	for (const struct command *c = commands; c->name; c++)
		fprintf(to, "  %-8s %s\n", c->name, c->what);
	fputs("\nairlox-box COMMAND --help lists its flags.\n", to);
}

static int run(int argc, char **argv)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, argv[1]))
			return c->run(argc - 1, argv + 1);
	say_note("no command %s; see airlox-box --help", argv[1]);
	return err_exit(ERR_USAGE);
}

/* Credentials pass through this process and its children: nobody attaches to
 * them, and they leave no core. */
static int harden(void)
{
	const struct rlimit none = { 0, 0 };
	return prctl(PR_SET_DUMPABLE, 0) < 0 ||
	       setrlimit(RLIMIT_CORE, &none) < 0 || prim_init() < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	int r = 0;
	if (harden() < 0) {
		say_note("cannot start safely here");
		return err_exit(ERR_SYS);
	}
	/* our own child */
	if (argc == 2 && !strcmp(argv[1], SERVE_ARG))
		return serve_main();
	/* and our own in the box */
	if (argc > 2 && !strcmp(argv[1], HAND_ARG))
		return hand_main(argc - 2, argv + 2);
	if (argc < 2) {
		print_help(stderr);
		return err_exit(ERR_USAGE);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		print_help(stdout);
	else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		printf("airlox-box %s\n", AIRLOX_VERSION);
	else
		r = run(argc, argv);
	int flushed = say_flush();
	return r ? r : flushed;
}
