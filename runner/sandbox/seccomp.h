/* SPDX-License-Identifier: MIT
 *
 * seccomp: the system calls a sandbox does not have.
 *
 * Everything that a language runtime needs is allowed; refused is what talks
 * to the kernel's larger or older parts, to other processes' memory, to a
 * terminal's input, or could make a new namespace.  Refused calls answer
 * EPERM, clone3 ENOSYS (so that libc falls back to clone, whose flags can be
 * looked at), socket families other than unix and inet EAFNOSUPPORT; a call of
 * another architecture kills. */
#ifndef AIRLOX_SANDBOX_SECCOMP_H
#define AIRLOX_SANDBOX_SECCOMP_H

#include <stdbool.h>

#include "core/err.h"

/* The filter as a BPF program in a new memory file, at its start, closed on
 * exec: for bwrap --seccomp.  no_memfd: memory files are refused as well, for
 * where nothing but a watchdog counts memory.  -1 on failure. */
int seccomp_make(bool no_memfd, struct err *e);

#endif
