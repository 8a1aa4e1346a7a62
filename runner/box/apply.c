/* SPDX-License-Identifier: MIT */
#include "runner/box/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clear.h"
#include "core/prim.h"
#include "runner/sandbox/dirs.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* --- what may be ---------------------------------------------------------- */

static bool is_plain_name(const char *path)
{
	cleanup_buf struct buf clean = { 0 };
	clear_escape(&clean, bytes_str(path));
	return !buf_failed(&clean) &&
	       bytes_eq(buf_bytes(&clean), bytes_str(path));
}

const char *apply_refuses(const struct change *c)
{
	const struct snap_entry *n = c->is;
	if (!is_plain_name(change_path(c)))
		return "its name has characters that cannot be seen";
	if (c->kind == CHANGE_REMOVED)
		return S_ISREG(c->was->mode) || S_ISLNK(c->was->mode) ? NULL :
		       "it is no regular file";
	if (S_ISLNK(n->mode))
		return "it is a link";
	if (!S_ISREG(n->mode))
		return "it is no regular file";
	return n->sha256[0] ? NULL : "it is too large, or "
				   "could not be read";
}

bool apply_is_risky(const struct change *c)
{
	const char *s = change_path(c);
	while (s) {
		size_t n = strcspn(s, "/");
		if (n == 4 && !strncasecmp(s, ".git", 4))
			return true;
		s = s[n] ? s + n + 1 : NULL;
	}
	return false;
}

/* --- the way to it -------------------------------------------------------- */

/* As root: the owner's of the one above. */
static int make_dir(int at, const char *name, mode_t mode)
{
	struct stat st;
	if (mkdirat(at, name, mode) < 0)
		return -1;
	if (geteuid() == 0 && fstat(at, &st) == 0)
		(void)!fchownat(at, name, st.st_uid, st.st_gid,
				AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* The directory that path is in, beneath top; name is its last part.  make:
 * what is missing is made.  -1: errno. */
static int open_parent(int top, const char *path, const char **name, bool make,
		       mode_t mode)
{
	char part[NAME_MAX + 1];
	int at = openat(top, ".", DIR_FLAGS);
	const char *slash;
	while (at >= 0 && (slash = strchr(path, '/'))) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		int next = dirs_open(at, part, DIR_FLAGS);
		if (next < 0 && errno == ENOENT && make &&
		    make_dir(at, part, mode) == 0)
			next = dirs_open(at, part, DIR_FLAGS);
		int sys = errno;
		close(at);
		errno = sys;
		at = next;
		path = slash + 1;
	}
	*name = path;
	return at;
}

/* Whether the original is as it was when it was copied. */
static bool is_as_it_was(int dir, const char *name,
			 const struct snap_entry *was, struct stat *st)
{
	char hex[DIGEST_HEX], to[PATH_MAX];
	uint64_t bytes;
	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && !was;
	if (!was || (st->st_mode & S_IFMT) != (was->mode & S_IFMT))
		return false;
	if (S_ISLNK(st->st_mode)) {
		ssize_t n = readlinkat(dir, name, to, sizeof to);
		return n >= 0 && bytes_eq(buf_bytes(&was->text),
			(struct bytes){ (uint8_t *)to, (size_t)n });
	}
	cleanup_fd int fd = dirs_open(dir, name, O_RDONLY | O_NOFOLLOW |
				      O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && (uint64_t)st->st_size == was->size &&
	       digest_fd(fd, hex, &bytes, NULL) == 0 &&
	       !strcmp(hex, was->sha256);
}

/* --- writing -------------------------------------------------------------- */

/* The box's file as a new one of dir, with what is said of it: the same bytes
 * that were compared, or nothing. */
static int copy_to(int copy, const struct snap_entry *is, int dir,
		   const char *name, mode_t mode)
{
	char hex[DIGEST_HEX];
	uint64_t bytes;
	cleanup_fd int in = dirs_open(copy, is->path, O_RDONLY | O_NOFOLLOW |
				      O_NONBLOCK | O_NOCTTY);
	cleanup_fd int out = in < 0 ? -1 : openat(dir, name, O_RDWR | O_CREAT |
				O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -1;
	if (dirs_copy_file(in, out, NULL) == 0 && fchmod(out, mode) == 0 &&
	    lseek(out, 0, SEEK_SET) == 0 &&
	    digest_fd(out, hex, &bytes, NULL) == 0 && !strcmp(hex, is->sha256))
		return 0;
	unlinkat(dir, name, 0);
	return -1;
}

static mode_t mode_of(const struct change *c, const struct stat *st)
{
	mode_t mask = umask(077);
	umask(mask);
	mode_t run = c->is->mode & 0111 & ~mask;
	/* a link's is no mode: 0777 */
	return c->was && S_ISREG(st->st_mode) ? (st->st_mode & 0666) | run :
			(c->is->mode & 0666 & ~mask) | run;
}

static int replace(const struct apply *a, const struct change *c, int dir,
		   const char *name, const struct stat *st)
{
	char tmp[40];
	uint64_t tag;
	struct stat above;
	prim_random(&tag, sizeof tag);
	snprintf(tmp, sizeof tmp, ".airlox-box.%016llx",
		 (unsigned long long)tag);
	if (copy_to(a->copy, c->is, dir, tmp, mode_of(c, st)) < 0)
		return -1;
	if (!c->was && fstat(dir, &above) == 0)
		st = &above;
	if ((!a->root || fchownat(dir, tmp, st->st_uid, st->st_gid,
				  AT_SYMLINK_NOFOLLOW) == 0) &&
	    renameat2(dir, tmp, dir, name, c->was ? 0 : RENAME_NOREPLACE) == 0)
		return 0;
	unlinkat(dir, tmp, 0);
	return -1;
}

/* And the directories above that were removed with it. */
static int remove_one(const struct apply *a, const struct change *c, int dir,
		      const char *name)
{
	char path[PATH_MAX], *slash;
	struct stat st;
	if (unlinkat(dir, name, 0) < 0)
		return -1;
	snprintf(path, sizeof path, "%s", c->was->path);
	while ((slash = strrchr(path, '/'))) {
		const char *last;
		*slash = 0;
		if (fstatat(a->copy, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode))
			break;
		cleanup_fd int up = open_parent(a->original, path, &last,
						false, 0);
		if (up < 0 || unlinkat(up, last, AT_REMOVEDIR) < 0)
			break;
	}
	return 0;
}

bool apply_keep_aside(struct apply *a, const struct change *c)
{
	const char *name;
	if (!c->is || !S_ISREG(c->is->mode) || !c->is->sha256[0])
		return false;
	if (a->aside_fd < 0) {
		(void)mkdir(a->aside, 0700);
		a->aside_fd = open(a->aside, DIR_FLAGS);
	}
	cleanup_fd int dir = a->aside_fd < 0 ? -1 :
		open_parent(a->aside_fd, c->is->path, &name, true, 0700);
	return dir >= 0 && copy_to(a->copy, c->is, dir, name,
				   0600 | (c->is->mode & 0100)) == 0;
}

static bool refuse(struct apply *a, const struct change *c, const char **why,
		   const char *plain, const char *aside)
{
	*why = apply_keep_aside(a, c) ? aside : plain;
	return false;
}

bool apply_change(struct apply *a, const struct change *c, const char **why)
{
	const char *name;
	struct stat st;
	cleanup_fd int dir = open_parent(a->original, change_path(c), &name,
					 c->kind == CHANGE_ADDED, 0777);
	if (dir < 0)
		return refuse(a, c, why, "no: the way to it is not there any "
			      "more, or leads through a link", "kept aside: "
			      "the way to it is not there any more, or leads "
			      "through a link");
	if (!is_as_it_was(dir, name, c->was, &st))
		return refuse(a, c, why, "no: the original changed meanwhile",
			      "kept aside: the original changed meanwhile");
	if ((c->kind == CHANGE_REMOVED ? remove_one(a, c, dir, name) :
	     replace(a, c, dir, name, &st)) == 0)
		return true;
	return refuse(a, c, why, "no: it could not be written",
		      "kept aside: it could not be written");
}
