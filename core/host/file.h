/* SPDX-License-Identifier: MIT
 *
 * file: the few ways this program touches a disk.  Names below a directory
 * are opened with O_NOFOLLOW; whoever else can write there cannot lead us out
 * of it.  `dir` is a directory's descriptor or AT_FDCWD. */
#ifndef AIRLOX_HOST_FILE_H
#define AIRLOX_HOST_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "core/buf.h"
#include "core/err.h"

/* A whole regular file of at most cap bytes, added to out.  1 where there is
 * no such file, ERR_SIZE where it is larger. */
int file_read(int dir, const char *name, size_t cap, struct buf *out,
	      struct err *e);
/* From a descriptor to its end (a pipe, stdin), at most cap bytes. */
int file_read_fd(int fd, size_t cap, struct buf *out, struct err *e);

/* All or nothing, and durable: temp file, fsync, rename, fsync of dir. */
int file_write(int dir, const char *name, struct bytes data, mode_t mode,
	       struct err *e);
/* The same for a file that must not be there yet: ERR_EXISTS. */
int file_write_new(int dir, const char *name, struct bytes data, mode_t mode,
		   struct err *e);

/* A temp file (mode 0600) in dir, read-write; its name into tmp. */
#define FILE_TMP 32
int file_tmp(int dir, char tmp[FILE_TMP], struct err *e);
/* One that has its name only once it is whole, so that a killed process leaves
 * nothing: begun in dir, then kept under a name (replacing what was there) or
 * discarded.  tmp is "" unless the file system wants a name from the start.
 * None closes fd. */
int file_begin(int dir, char tmp[FILE_TMP], struct err *e);
int file_keep(int dir, int fd, const char *tmp, const char *name,
	      struct err *e);
void file_discard(int dir, const char *tmp);
/* An unnamed file in dir, read-write; gone when it is closed. */
int file_unnamed(int dir, struct err *e);
int file_fsync_dir(int dir, struct err *e);

/* mkdir -p; what is created has mode 0700. */
int file_mkdirs(const char *path, struct err *e);
/* A directory below dir, created with 0700 where it is missing; gives its
 * descriptor.  No symlink.  file_open_dir does not create: ERR_NOT_FOUND. */
int file_make_dir(int dir, const char *name, struct err *e);
int file_open_dir(int dir, const char *name, struct err *e);

/* Takes the lock file (created, holds the holder's pid) without waiting;
 * returns its descriptor: keep it open to keep the lock.  ERR_LOCKED, naming
 * the holder's pid. */
int file_lock(int dir, const char *name, struct err *e);
/* The pid in a lock file that somebody holds, 0 if nobody does. */
pid_t file_lock_holder(int dir, const char *name);

/* A directory and all in it, or a file; never follows a symlink, never leaves
 * the file system it started on.  0 also where there is none. */
int file_remove_tree(int dir, const char *name, struct err *e);

/* Whole transfers: ERR_SYS, and for a short read ERR_INVALID. */
int file_put(int fd, const void *p, size_t n, struct err *e);
int file_put_at(int fd, const void *p, size_t n, uint64_t off, struct err *e);
int file_get_at(int fd, void *p, size_t n, uint64_t off, struct err *e);
int64_t file_size(int fd, struct err *e);

/* "$HOME/tail", or "$var/tail" where the variable is set to an absolute path;
 * the caller frees. */
char *file_home(const char *var, const char *home_part, const char *tail,
		struct err *e);

#endif
