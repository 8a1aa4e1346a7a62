/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clear.h"
#include "core/host/clock.h"
#include "core/host/tell.h"

#define REDRAW_MS 100

static const char *program = "airloxfs";
static bool colours;

void tell_init(const char *name)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	program = name;
	colours = isatty(STDERR_FILENO) && !(no && *no) &&
		  term && strcmp(term, "dumb") != 0;
}

/* A text of ours keeps its lines.  So do backslashes stay: what a peer wrote
 * may have been escaped before, and nobody reads it back. */
static void put_escaped(FILE *to, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n\\");
		cleanup_buf struct buf b = { 0 };
		clear_escape(&b, (struct bytes){ (const uint8_t *)text, n });
		fwrite(b.data, 1, b.len, to);
		text += n;
		if (*text)
			fputc(*text++, to);
	}
}

static void put_line(FILE *to, const char *lead, const char *fmt, va_list ap)
{
	char *text = NULL;
	if (vasprintf(&text, fmt, ap) < 0)
		return;
	fputs(lead, to);
	put_escaped(to, text);
	fputc('\n', to);
	free(text);
}

static void put_message(const char *word, const char *colour, const char *fmt,
			va_list ap)
{
	char lead[96];
	snprintf(lead, sizeof lead, "%s: %s%s%s", program,
		 colours ? colour : "", word, colours && *colour ? "\033[m" : "");
	put_line(stderr, lead, fmt, ap);
}

void tell_warn(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_message("warning: ", "\033[33m", fmt, ap);
	va_end(ap);
}

void tell_note(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_message("", "", fmt, ap);
	va_end(ap);
}

void tell_say(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_line(stdout, "", fmt, ap);
	va_end(ap);
}

static void put_error(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
static void put_error(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_message(colours ? "error: " : "", "\033[31m", fmt, ap);
	va_end(ap);
}

int tell_fail(const struct err *e)
{
	put_error("%s", e->why);
	return err_exit(e->code);
}

_Noreturn void tell_die(int exit_code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put_message("", "", fmt, ap);
	va_end(ap);
	exit(exit_code);
}

int tell_flush(void)
{
	struct err e;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	/* whoever read us has seen enough */
	if (errno == EPIPE)
		return 0;
	err_sys(&e, "cannot write the output");
	return tell_fail(&e);
}

void tell_bytes(char out[16], uint64_t n)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)n;
	size_t i = 0;
	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	snprintf(out, 16, i && v < 100 ? "%.1f %s" : "%.0f %s", v, unit[i]);
}

void tell_progress(struct tell_progress *p, uint64_t done)
{
	int64_t now = clock_mono_ms();
	if (!isatty(STDERR_FILENO) || now - p->drawn_ms < REDRAW_MS)
		return;
	char have[16], all[16] = "?";
	tell_bytes(have, done);
	if (p->total)
		tell_bytes(all, p->total);
	fputs("\r\033[K", stderr);
	put_escaped(stderr, p->what);
	fprintf(stderr, " %s of %s", have, all);
	fflush(stderr);
	p->drawn_ms = now;
	p->shown = true;
}

void tell_progress_end(struct tell_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
