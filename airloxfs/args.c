/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "airloxfs/args.h"

static const struct flag *find(const struct flag *flags, const char *arg,
			       size_t n)
{
	for (const struct flag *f = flags; f->name; f++)
		if (strlen(f->name) == n && !memcmp(f->name, arg, n))
			return f;
	return NULL;
}

static int take_value(const struct flag *f, const char *value, struct err *e)
{
	if (f->kind == FLAG_TEXT) {
		*(const char **)f->to = value;
		return 0;
	}
	struct flag_list *l = f->to;
	if (l->n == ARGS_LIST_MAX)
		return err_set(e, ERR_USAGE, "too many %s", f->name);
	l->v[l->n++] = value;
	return 0;
}

/* One flag at argv[*i]; moves *i past what it took. */
static int take_flag(const struct flag *flags, int argc, char **argv, int *i,
		     struct err *e)
{
	char *arg = argv[*i];
	const char *eq = strncmp(arg, "--", 2) ? NULL : strchr(arg, '=');
	size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct flag *f = find(flags, arg, n);
	if (!f)
		return err_set(e, ERR_USAGE, "unknown flag %.*s; see --help",
			       (int)(n > 40 ? 40 : n), arg);
	if (f->kind == FLAG_SET) {
		*(bool *)f->to = true;
		return eq ? err_set(e, ERR_USAGE, "%s takes no value",
				    f->name) : 0;
	}
	if (eq)
		return take_value(f, eq + 1, e);
	if (*i + 1 >= argc)
		return err_set(e, ERR_USAGE, "%s needs a value", f->name);
	return take_value(f, argv[++*i], e);
}

int args_parse(struct args *a, const struct flag *flags, int argc,
	       char **argv, struct err *e)
{
	bool flags_over = false;
	*a = (struct args){ .v = argv };
	for (int i = 1; i < argc; i++) {
		char *arg = argv[i];
		if (flags_over || arg[0] != '-' || !arg[1])
			a->v[a->n++] = arg;
		else if (!strcmp(arg, "--"))
			flags_over = true;
		else if (!strcmp(arg, "--help") || !strcmp(arg, "-h"))
			a->help = true;
		else if (take_flag(flags, argc, argv, &i, e) < 0)
			return -1;
	}
	return 0;
}

void args_help(const char *usage, const char *what, const struct flag *flags)
{
	printf("usage: %s\n\n%s\n", usage, what);
	if (flags->name)
		putchar('\n');
	for (const struct flag *f = flags; f->name; f++) {
		char left[64];
		if (!f->what)
			continue;
		snprintf(left, sizeof left, "%s%s%s", f->name,
			 f->value ? " " : "", f->value ? f->value : "");
		printf("  %-26s %s\n", left, f->what);
	}
}
