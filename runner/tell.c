/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/buf.h"
#include "core/clear.h"
#include "runner/tell.h"

static const char *program = "airlox-runner";

void tell_init(const char *name) { program = name; }

void tell_note(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	cleanup_buf struct buf b = { 0 };
	clear_escape(&b, bytes_str(text));
	free(text);
	fprintf(stderr, "%s: %s\n", program, buf_cstr(&b) ? buf_cstr(&b) : "");
}

int tell_fail(const struct err *e)
{
	tell_note("%s", e->why);
	return err_exit(e->code);
}
