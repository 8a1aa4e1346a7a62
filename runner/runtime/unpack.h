/* SPDX-License-Identifier: MIT
 *
 * unpack: wheels from scratch/work to scratch/out, in a sandbox. */
#ifndef AIRLOX_RUNTIME_UNPACK_H
#define AIRLOX_RUNTIME_UNPACK_H

#include "core/err.h"
#include "runner/site.h"
#include "runner/runtime/python.h"

/* The scratch stays the caller's.  stop: readable, give up. */
int unpack_wheels(const struct site *h, const struct python *p,
		  struct scratch *scratch, int stop, struct err *e);

#endif
