/* SPDX-License-Identifier: MIT
 *
 * cgfile: the small files of a control group's directory. */
#ifndef AIRLOX_SANDBOX_CGFILE_H
#define AIRLOX_SANDBOX_CGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor, closed on exec, or -1. */
int cgfile_open(const char *dir, const char *name, int flags);
int cgfile_put(const char *dir, const char *name, const char *text);
int cgfile_put_number(const char *dir, const char *name, uint64_t v);
/* Its first cap - 1 bytes, with a NUL; "" and false where it is not. */
bool cgfile_get(const char *dir, const char *name, char *to, size_t cap);
/* 0 where there is none. */
uint64_t cgfile_number(const char *dir, const char *name);
/* N of a line "key N"; 0 where there is none. */
uint64_t cgfile_value(const char *dir, const char *name, const char *key);

#endif
