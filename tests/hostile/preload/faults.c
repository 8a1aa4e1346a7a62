/* SPDX-License-Identifier: MIT
 *
 * Preloaded into a program: calls that write to files fail when a test says
 * so.  The test maps the file that FAULTS names and writes into it.
 *
 *	call	which, a bit for each of the enum below; 0: none
 *	error	the errno, or SHORT: half of it is written
 *	after	so many go well first
 *	count	then so many fail
 *	hits	how many have failed (ours)
 *
 * Only regular files, directories and names: what goes to sockets passes. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, SYNC = 4, RENAME = 8, LINK = 16, UNLINK = 32,
       CUT = 64, RESERVE = 128, SPAWN = 256 };
#define SHORT 10000

struct orders {
	atomic_int call, error, after, count, hits;
};

static struct orders none, *orders = &none;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAULTS");
	int fd = path ? REAL(open)(path, O_RDWR) : -1;
	void *p = fd < 0 ? MAP_FAILED :
		  mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		orders = p;
	if (fd >= 0)
		close(fd);
}

/* 0, or what this call is to fail with. */
static int fault(int call)
{
	if (!(orders->call & call))
		return 0;
	if (atomic_fetch_sub(&orders->after, 1) > 0)
		return 0;
	if (atomic_fetch_sub(&orders->count, 1) <= 0)
		return 0;
	atomic_fetch_add(&orders->hits, 1);
	errno = orders->error;
	return orders->error;
}

static int is_file(int fd)
{
	struct stat sb;
	return fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode);
}

#define FAILS(call) { int f = fault(call); if (f && f != SHORT) return -1; }

int openat64(int dir, const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (flags & O_CREAT)
		FAILS(OPEN)
	return REAL(openat64)(dir, path, flags, mode);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	int f = is_file(fd) ? fault(WRITE) : 0;
	if (f && f != SHORT)
		return -1;
	return REAL(pwrite64)(fd, p, f ? (n + 1) / 2 : n, at);
}

ssize_t write(int fd, const void *p, size_t n)
{
	int f = is_file(fd) && fd > 2 ? fault(WRITE) : 0;
	if (f && f != SHORT)
		return -1;
	return REAL(write)(fd, p, f ? (n + 1) / 2 : n);
}

int fdatasync(int fd)
{
	FAILS(SYNC)
	return REAL(fdatasync)(fd);
}

int fsync(int fd)
{
	FAILS(SYNC)
	return REAL(fsync)(fd);
}

int renameat(int a, const char *from, int b, const char *to)
{
	FAILS(RENAME)
	return REAL(renameat)(a, from, b, to);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
	FAILS(LINK)
	return REAL(linkat)(a, from, b, to, flags);
}

int unlinkat(int dir, const char *path, int flags)
{
	FAILS(UNLINK)
	return REAL(unlinkat)(dir, path, flags);
}

int ftruncate64(int fd, off64_t n)
{
	FAILS(CUT)
	return REAL(ftruncate64)(fd, n);
}

int fallocate64(int fd, int mode, off64_t at, off64_t n)
{
	FAILS(RESERVE)
	return REAL(fallocate64)(fd, mode, at, n);
}

int posix_spawn(pid_t *pid, const char *path,
		const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[],
		char *const envp[])
{
	int f = fault(SPAWN);
	return f ? f : REAL(posix_spawn)(pid, path, actions, attr, argv, envp);
}
