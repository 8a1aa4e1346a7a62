/* SPDX-License-Identifier: MIT */
#include "runner/box/flags.h"

#include <string.h>

const char flags_help[] =
	"usage: airlox-box run POLICY [FLAGS] -- COMMAND [ARG ...]\n\n"
	"Runs a command in a box without a network; the broker lets through "
	"what the\npolicy names, and puts credentials in on the way.\n\n"
	"  --session DIR     a mounted session, as the policy allows\n"
	"  --apply           ask which changes of copied files are taken back\n"
	"  --apply=all       take all, unless the command failed\n"
	"  --record FILE     where the record goes (airlox-RUN.html here)\n"
	"  --no-record       none is written\n"
	"  --egress FILE     keep the broker's account as JSON lines, too\n"
	"  --job-user USER   as root: who the box is (default nobody)\n"
	"  --scratch DIR     where its directories are made\n";

int flags_read(struct flags *o, int argc, char **argv, struct err *e)
{
	const struct { const char *flag; const char **to; } flags[] = {
		{ "--session", &o->session }, { "--egress", &o->egress },
		{ "--record", &o->record },
		{ "--job-user", &o->site.job_user },
		{ "--scratch", &o->site.scratch },
	};
	*o = (struct flags){ 0 };
	for (int i = 1; i < argc; i++) {
		size_t k = 0;
		while (k < 5 && strcmp(argv[i], flags[k].flag) != 0)
			k++;
		if (!strcmp(argv[i], "--")) {
			o->command = argv + i + 1;
			break;
		}
		if (k < 5 && i + 1 < argc)
			*flags[k].to = argv[++i];
		else if (!strcmp(argv[i], "--no-record"))
			o->no_record = true;
		else if (!strcmp(argv[i], "--apply"))
			o->apply = FILES_ASK;
		else if (!strcmp(argv[i], "--apply=all"))
			o->apply = FILES_ALL;
		else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			o->help = true;
		else if (k < 5 || (argv[i][0] == '-' && argv[i][1]))
			return err_set(e, ERR_USAGE, "no flag %s, or its value "
				       "is missing; see airlox-box run --help",
				       argv[i]);
		else if (o->policy)
			return err_set(e, ERR_USAGE, "the command comes after "
				       "--");
		else
			o->policy = argv[i];
	}
	if (o->help || (o->policy && o->command && o->command[0]))
		return 0;
	return err_set(e, ERR_USAGE, "a policy, --, and a command; see "
		       "airlox-box run --help");
}
