/* SPDX-License-Identifier: MIT
 *
 * forget: removes what this machine keeps of a session: cache, and state with
 * whatever was not sent. */
#include <fcntl.h>
#include <string.h>

#include "airloxfs/cmd.h"
#include "airloxfs/store.h"
#include "core/host/tell.h"

static int check_unmounted(int top, const char *id, struct err *e)
{
	cleanup_fd int dir = file_open_dir(top, id, e);
	for (int i = 0; dir >= 0 && i < ROLES; i++) {
		cleanup_fd int role = file_open_dir(
			dir, role_word((enum role)i), NULL);
		pid_t pid = role < 0 ? 0 : file_lock_holder(role, "lock");
		if (pid)
			return err_set(e, ERR_LOCKED, "that session is mounted "
				       "by process %ld; unmount it first",
				       (long)pid);
	}
	return 0;
}

static int forget(const char *cache_dir, const char *id, struct err *e)
{
	cleanup_free char *state = store_root(cache_dir, e);
	if (!state)
		return -1;
	if (!key_is_session_id(bytes_str(id)))
		return err_set(e, ERR_USAGE, "that is no session id; it looks "
			       "like ax_ and 26 letters and digits");
	cleanup_fd int top = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top >= 0 && (check_unmounted(top, id, e) < 0 ||
			 file_remove_tree(top, id, e) < 0))
		return -1;
	return cache_remove(cache_dir, id, e);
}

int cmd_forget(struct setting *s, int argc, char **argv)
{
	const char *cache_dir = s->cache_dir;
	const struct flag flags[] = {
		{ "--cache-dir", FLAG_TEXT, &cache_dir, "DIR",
		  "instead of ~/.cache/airlox (AIRLOX_CACHE_DIR)" },
		{ 0 }
	};
	struct args a;
	struct err e;
	int over = cmd_begin(&a, flags, argc, argv,
			     "airloxfs forget [FLAGS] SESSION-ID...",
			     "Remove what this machine keeps of a session: the "
			     "cache, the identity, and what\nwas never sent.");
	if (over >= 0)
		return over;
	if (a.n == 0)
		return cmd_misuse("which session? name its id");
	for (int i = 0; i < a.n; i++)
		if (forget(cache_dir, a.v[i], &e) < 0)
			return tell_fail(&e);
	return 0;
}
