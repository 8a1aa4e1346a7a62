/* SPDX-License-Identifier: MIT */
#include "runner/box/fence.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/enc.h"
#include "runner/box/state.h"

/* path is dir, or something in it. */
static bool is_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	if (n == 1)
		return true;	/* "/" */
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

static bool meet(const char *a, const char *b)
{
	return is_in(a, b) || is_in(b, a);
}

static int state_path(char path[PATH_MAX], struct err *e)
{
	char link[40];
	cleanup_fd int fd = state_open(e);
	if (fd < 0)
		return -1;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return err_sys(e, "cannot find the state directory");
	path[n] = 0;
	return 0;
}

/* The mount of a session of this line, or NULL. */
static char *session_at(char *line)
{
	char *save, *at = NULL;
	if (!strstr(line, " - fuse.airloxfs "))
		return NULL;
	char *field = strtok_r(line, " ", &save);
	for (int i = 0; field && i < 4; i++)
		at = field = strtok_r(NULL, " ", &save);
	if (at)
		enc_unoctal(at);
	return at;
}

static int check_mounts(const struct policy_file *f, const char *real,
			struct err *e)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *at;
	size_t cap = 0;
	int rc = mounts ? 0 : err_sys(e, "cannot read the mounts");
	while (rc == 0 && getline(&line, &cap, mounts) > 0)
		if ((at = session_at(line)) && meet(real, at))
			rc = err_set(e, ERR_POLICY, "line %u: %s would give "
				     "the box the session mounted at %s: name "
				     "a directory apart from it, and the "
				     "session with --session", f->line,
				     f->path, at);
	free(line);
	if (mounts)
		fclose(mounts);
	return rc;
}

int fence_check(const struct policy *p, struct err *e)
{
	char state[PATH_MAX], real[PATH_MAX];
	if (p->file_n && state_path(state, e) < 0)
		return -1;
	for (size_t i = 0; i < p->file_n; i++) {
		const struct policy_file *f = &p->file[i];
		if (!realpath(f->path, real))
			return err_sys(e, "line %u: %s", f->line, f->path);
		if (meet(real, state))
			return err_set(e, ERR_POLICY, "line %u: %s would give "
				       "the box the key that signs records, in "
				       "%s: name a directory apart from it",
				       f->line, f->path, state);
		if (check_mounts(f, real, e) < 0)
			return -1;
	}
	return 0;
}
