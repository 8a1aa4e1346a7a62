/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "runner/args.h"

static const struct flag *find(const struct flag *f, const char *word,
			       size_t n)
{
	for (; f->name; f++)
		if (strlen(f->name) == n && !strncmp(f->name, word, n))
			return f;
	return NULL;
}

/* Gives how many words it took. */
static int take(const struct flag *flags, char **argv, struct err *e)
{
	const char *eq = strchr(argv[0], '=');
	size_t n = eq ? (size_t)(eq - argv[0]) : strlen(argv[0]);
	const struct flag *f = find(flags, argv[0], n);

	if (!f)
		return err_set(e, ERR_USAGE, "no flag %.*s; see --help",
			       (int)n, argv[0]);
	if (f->set && eq)
		return err_set(e, ERR_USAGE, "%s takes no value", f->name);
	if (f->set) {
		*f->set = true;
		return 1;
	}
	*f->text = eq ? eq + 1 : argv[1];
	if (!*f->text)
		return err_set(e, ERR_USAGE, "%s needs a value", f->name);
	return eq ? 1 : 2;
}

int args_parse(const struct flag *flags, int argc, char **argv, int *n,
	       bool *help, struct err *e)
{
	bool over = false;
	*n = 0;
	*help = false;
	for (int i = 1, took; i < argc; i += took) {
		char *w = argv[i];
		took = 1;
		if (over || w[0] != '-' || !w[1])
			argv[(*n)++] = w;
		else if (!strcmp(w, "--"))
			over = true;
		else if (!strcmp(w, "--help") || !strcmp(w, "-h"))
			*help = true;
		else if ((took = take(flags, argv + i, e)) < 0)
			return -1;
	}
	return 0;
}

void args_help(const char *usage, const char *what, const struct flag *flags)
{
	printf("usage: %s\n\n%s\n\n", usage, what);
	for (const struct flag *f = flags; f->name; f++) {
		char left[64];
		snprintf(left, sizeof left, "%s %s", f->name,
			 f->value ? f->value : "");
		printf("  %-24s %s\n", left, f->what);
	}
	printf("  %-24s %s\n", "--help", "print this");
}
