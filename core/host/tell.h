/* SPDX-License-Identifier: MIT
 *
 * tell: what a main says to people.  Only mains (and cmd/) call this room;
 * library code fills a struct err.  Every line goes through clear_escape, so
 * that no peer's text can steer a terminal.  Colours only on a terminal, and
 * not with NO_COLOR. */
#ifndef AIRLOX_HOST_TELL_H
#define AIRLOX_HOST_TELL_H

#include <stdint.h>

#include "core/buf.h"
#include "core/err.h"

/* The name in front of every message ("airloxfs"); static. */
void tell_init(const char *program);

/* stderr: "program: warning: ..." and "program: ..." */
void tell_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tell_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* stdout, one line, escaped. */
void tell_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints e on stderr and returns the exit code for it. */
int tell_fail(const struct err *e);
_Noreturn void tell_die(int exit_code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* stdout was written whole: 0, or an exit code after telling why not. */
int tell_flush(void);

/* "1.5 MiB" into out. */
void tell_bytes(char out[16], uint64_t n);

/* One line on a terminal's stderr, redrawn at most ten times a second, gone
 * at the end; nothing anywhere else.  total 0: unknown. */
struct tell_progress {
	const char *what;
	uint64_t total;
	int64_t drawn_ms;	/* private */
	bool shown;		/* private */
};
void tell_progress(struct tell_progress *p, uint64_t done);
void tell_progress_end(struct tell_progress *p);

#endif
