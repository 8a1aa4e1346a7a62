/* SPDX-License-Identifier: MIT
 *
 * The child: it locks itself in, and only then looks at what a peer wrote.
 *
 * What is left to it: descriptor 3, memory within a limit, and its end.  It
 * cannot open, connect, fork, exec, trace, signal, nor map anything to be run.
 * This file and the runner's sandbox are the two that include libseccomp. */
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/content.h"
#include "core/host/check.h"
#include "core/host/check_parts.h"
#include "core/image.h"

#define MEMORY ((rlim_t)700 << 20)
#define AHEAD ((size_t)8192)

/* The sanitizers map terabytes and make calls of their own: a build with them
 * tests the talk, not the walls. */
#ifndef __has_feature
#define __has_feature(x) 0	/* clang's way to say so */
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WALLS false
#else
#define WALLS true
#endif

static int limit(int what, rlim_t to)
{
	struct rlimit r = { to, to };
	return setrlimit((__rlimit_resource_t)what, &r);
}

/* If memory runs out, this is the process to end. */
static void offer_to_oom(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "1000", 4);
		close(fd);
	}
}

static int set_limits(void)
{
	offer_to_oom();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	if (limit(RLIMIT_CORE, 0) < 0 || limit(RLIMIT_FSIZE, 0) < 0 ||
	    limit(RLIMIT_CPU, CHECK_SECONDS) < 0)
		return -1;
	if (!WALLS)
		return 0;
	return limit(RLIMIT_NOFILE, CHECK_FD + 1) < 0 ||
	       limit(RLIMIT_AS, MEMORY) < 0 ? -1 : 0;
}

#define ALLOW(call, ...) \
	seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(call), __VA_ARGS__)

static int allow_memory(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp no_exec =
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	const struct scmp_arg_cmp no_file =
		SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS);

	return ALLOW(mmap, 2, no_exec, no_file) < 0 ||
	       ALLOW(mprotect, 1, no_exec) < 0 || ALLOW(munmap, 0) < 0 ||
	       ALLOW(mremap, 0) < 0 || ALLOW(madvise, 0) < 0 ||
	       ALLOW(brk, 0) < 0 ? -1 : 0;
}

static int allow(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp ours = SCMP_A0(SCMP_CMP_EQ, CHECK_FD);

	return allow_memory(f) < 0 ||
	       ALLOW(read, 1, ours) < 0 || ALLOW(write, 1, ours) < 0 ||
	       ALLOW(sysinfo, 0) < 0 || /* qsort asks how much memory */
	       ALLOW(futex, 0) < 0 || ALLOW(getrandom, 0) < 0 ||
	       ALLOW(clock_gettime, 0) < 0 || ALLOW(rt_sigreturn, 0) < 0 ||
	       ALLOW(exit, 0) < 0 || ALLOW(exit_group, 0) < 0 ? -1 : 0;
}

static int lock_in(void)
{
	if (set_limits() < 0)
		return -1;
	if (!WALLS)
		return 0;
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = f && seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH,
				      SCMP_ACT_KILL_PROCESS) == 0 &&
		allow(f) == 0 && seccomp_load(f) == 0 ? 0 : -1;
	seccomp_release(f);
	return r;
}

/* --- the talk: where it fails the parent is gone, or wants us gone --- */

static void get(void *to, size_t n)
{
	for (uint8_t *p = to; n;) {
		ssize_t m = read(CHECK_FD, p, n);
		if (m <= 0)
			_exit(1);
		p += m;
		n -= (size_t)m;
	}
}

static void put(const void *from, size_t n)
{
	for (const uint8_t *p = from; n;) {
		ssize_t m = write(CHECK_FD, p, n);
		if (m <= 0)
			_exit(1);
		p += m;
		n -= (size_t)m;
	}
}

static void fetch(uint64_t off, uint8_t *to, size_t n)
{
	while (n) {
		size_t step = n < CHECK_CHUNK ? n : CHECK_CHUNK;
		put(&(struct check_frame){ CHECK_READ, (uint32_t)step, off },
		    sizeof(struct check_frame));
		get(to, step);
		to += step;
		off += step;
		n -= step;
	}
}

/* An archive's headers are small and often near each other. */
struct far {
	uint64_t size, at;
	size_t n;
	uint8_t ahead[AHEAD];
};

static int far_read(void *arg, uint64_t off, void *to, size_t n)
{
	struct far *f = arg;

	if (n >= AHEAD) {
		fetch(off, to, n);
		return 0;
	}
	if (off < f->at || off - f->at > f->n || n > f->n - (off - f->at)) {
		f->at = off;
		f->n = f->size - off < AHEAD ? (size_t)(f->size - off) : AHEAD;
		fetch(off, f->ahead, f->n);
	}
	memcpy(to, f->ahead + (off - f->at), n);
	return 0;
}

static int look_at_zip(const struct check_ask *ask, struct err *e)
{
	static struct far far;
	const struct zip_source body = { far_read, &far, ask->size };

	far.size = ask->size;
	return (ask->what == CHECK_ZIP ? content_check : content_check_whole)
		(TYPE_ZIP, ask->mime, &body, e);
}

/* --- unpacking: n bytes after a frame --- */

static void put_frame(enum check_op op, const void *p, size_t n, uint64_t off)
{
	put(&(struct check_frame){ op, (uint32_t)n, off },
	    sizeof(struct check_frame));
	put(p, n);
}

static int put_data(void *arg, const void *p, size_t n)
{
	(void)arg;
	for (const uint8_t *at = p; n;) {
		size_t step = n < CHECK_CHUNK ? n : CHECK_CHUNK;
		put_frame(CHECK_OUT, at, step, 0);
		at += step;
		n -= step;
	}
	return 0;
}

static int unpack(const struct check_ask *ask, struct err *e)
{
	static struct far far;
	const struct zip_source body = { far_read, &far, ask->size };
	const struct zip_sink sink = { put_data, NULL };
	struct zip_list list;

	far.size = ask->size;
	if (zip_check(&body, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++) {
		const struct zip_entry *z = &list.v[i];
		put_frame(CHECK_ENTRY, z->path, strlen(z->path), z->size |
			  (z->is_dir ? CHECK_IS_DIR : 0) |
			  (z->is_exec ? CHECK_IS_EXEC : 0));
		if (!z->is_dir && zip_extract_entry(&body, z, sink, e) < 0)
			return -1;
	}
	return 0;
}

static int look_at_image(const struct check_ask *ask, struct err *e)
{
	struct buf clean = { 0 };
	size_t n = (size_t)ask->size;
	uint8_t *p = malloc(n + 1);

	if (!p)
		return err_set(e, ERR_MEMORY, "the image is too large");
	fetch(0, p, n);
	const struct bytes file = { p, n };
	if (image_prepare(file, ask->mime, &clean, e) < 0)
		return -1;
	return put_data(NULL, clean.data, clean.len);
}

/* Nothing is freed: the process ends. */
int check_main(void)
{
	struct check_ask ask;
	struct err e = { 0 };

	if (lock_in() < 0)
		_exit(CHECK_EXIT_SANDBOX);
	get(&ask, sizeof ask);
	int r = ask.what == CHECK_IMAGE ? look_at_image(&ask, &e)
		: ask.what == CHECK_UNZIP ? unpack(&ask, &e)
		: look_at_zip(&ask, &e);
	size_t n = r == 0 ? 0 : strnlen(e.why, CHECK_WHY);
	put(&(struct check_frame){ CHECK_DONE, (uint32_t)n,
				   r == 0 ? ERR_NONE : e.code },
	    sizeof(struct check_frame));
	put(e.why, n);
	_exit(0);
}
