/* SPDX-License-Identifier: MIT
 *
 * For tests/uml.sh: user-mode Linux sets the floating point state of its
 * processes in a buffer of a fixed size; a processor with more (AMX) has a
 * longer one, and the host's kernel takes it whole or not at all.  What is
 * beyond is left in its initial state. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define GET_REGS 0x4204
#define SET_REGS 0x4205
#define XSTATE ((void *)0x202)
#define HEADER 512		/* the first word there says what is set */
#define KNOWN 0x2ff		/* up to AVX-512 and protection keys */

static size_t whole;

static long regs(int req, int pid, struct iovec *part)
{
	static __thread char all[65536] __attribute__((aligned(64)));
	struct iovec v = { all, req == GET_REGS ? sizeof all : whole };
	size_t n = part->iov_len;
	if (req == SET_REGS) {
		memset(all, 0, whole);
		memcpy(all, part->iov_base, n < whole ? n : whole);
		*(uint64_t *)(all + HEADER) &= KNOWN;
	}
	long r = syscall(SYS_ptrace, req, pid, XSTATE, &v);
	if (r < 0 || req == SET_REGS)
		return r;
	whole = v.iov_len;
	part->iov_len = n < whole ? n : whole;
	memcpy(part->iov_base, all, part->iov_len);
	return r;
}

/* <sys/ptrace.h> has it with an enum of another name in each libc. */
long ptrace(int req, ...);
long ptrace(int req, ...)
{
	va_list ap;
	va_start(ap, req);
	int pid = va_arg(ap, int);
	void *addr = va_arg(ap, void *), *data = va_arg(ap, void *);
	long word = 0;
	va_end(ap);
	if (addr == XSTATE && (req == GET_REGS || req == SET_REGS))
		return regs(req, pid, data);
	if (req < 1 || req > 3)
		return syscall(SYS_ptrace, req, pid, addr, data);
	long r = syscall(SYS_ptrace, req, pid, addr, &word);	/* PEEK */
	return r < 0 ? r : (errno = 0, word);
}
