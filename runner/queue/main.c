/* SPDX-License-Identifier: MIT
 *
 * airlox-runner: runs the jobs of a mounted queue in bubblewrap. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "runner/queue/cmd.h"
#include "runner/tell.h"

static const char usage[] =
	"usage: airlox-runner [FLAGS] DIR\n"
	"       airlox-runner join [FLAGS] INVITE\n"
	"       airlox-runner check [--json] [FLAGS]\n\n"
	"Runs the jobs of a session in a sandbox.\n\n"
	"  DIR    serve the queue of a mount (airloxfs mount --name NAME)\n"
	"  join   mount a runner's invite in private, and serve it\n"
	"  check  what this host can enforce\n\n"
	"INVITE is a link, @FILE, or - for stdin; without one, "
	"AIRLOX_INVITE.\n"
	"airlox-runner --help serve|join|check lists flags.\n";

static int help(const char *about)
{
	static char name[] = "airlox-runner", word[] = "--help";
	char *argv[] = { name, word, NULL };
	if (about && !strcmp(about, "serve"))
		return cmd_serve(2, argv);
	if (about && !strcmp(about, "join"))
		return cmd_join(2, argv);
	if (about && !strcmp(about, "check"))
		return cmd_check(2, argv);
	fputs(usage, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	/* No core of what a job's data went through. */
	const struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	tell_init("airlox-runner");
	if (argc < 2) {
		fputs(usage, stderr);
		return err_exit(ERR_USAGE);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("airlox-runner %s\n", AIRLOX_VERSION);
		return 0;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help"))
		return help(argv[2]);
	if (!strcmp(argv[1], "join"))
		return cmd_join(argc - 1, argv + 1);
	if (!strcmp(argv[1], "check"))
		return cmd_check(argc - 1, argv + 1);
	return cmd_serve(argc, argv);
}
