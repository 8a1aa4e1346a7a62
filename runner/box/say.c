/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clear.h"
#include "runner/box/say.h"

void say_note(const char *fmt, ...)
{
	char line[1024];
	cleanup_buf struct buf clean = { 0 };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	clear_escape(&clean, bytes_str(line));
	const char *s = buf_cstr(&clean);
	fprintf(stderr, "airlox-box: %s\n", s ? s : "out of memory");
}

int say_fail(const struct err *e)
{
	say_note("%s", e->why);
	return err_exit(e->code);
}

void say_text(struct bytes text)
{
	while (text.n) {
		const uint8_t *lf = memchr(text.p, '\n', text.n);
		size_t n = lf ? (size_t)(lf - text.p) : text.n;
		cleanup_buf struct buf clean = { 0 };
		clear_escape(&clean, (struct bytes){ text.p, n });
		fwrite(clean.data ? clean.data : (const uint8_t *)"", 1,
		       clean.len, stdout);
		if (!lf)
			return;
		putchar('\n');
		text.p += n + 1;
		text.n -= n + 1;
	}
}

void say_clean(struct bytes text)
{
	fwrite(text.p, 1, text.n, stdout);
}

void say_json(struct bytes line)
{
	fwrite(line.p, 1, line.n, stdout);
	putchar('\n');
}

int say_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	struct err e;
	err_sys(&e, "cannot write to standard output");
	return say_fail(&e);
}
