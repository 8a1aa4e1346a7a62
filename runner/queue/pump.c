/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "runner/queue/pump.h"

#define PIECE (64 << 10)
#define PIPE_BYTES (256 << 10)

static int open_out(int dir, const char *name, struct err *e)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW |
			O_CLOEXEC, 0644);
	return fd < 0 ? err_sys(e, "cannot open %s", name) : fd;
}

int pump_open(struct pump *p, int dir, int out, int err, struct err *e)
{
	char path[64];
	*p = (struct pump){ .dir = dir, .inotify = -1, .from = { out, err },
			    .to = { -1, -1 } };
	for (int i = 0; i < 2; i++) {
		(void)fcntl(p->from[i], F_SETPIPE_SZ, PIPE_BYTES);
		if (fcntl(p->from[i], F_SETFL, O_NONBLOCK) < 0)
			return err_sys(e, "cannot read what the job prints");
		p->to[i] = open_out(dir, i ? "stderr" : "stdout", e);
		if (p->to[i] < 0) {
			pump_close(p);
			return -1;
		}
	}
	/* Without the watch, the file is looked for once a second. */
	p->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
	if (p->inotify >= 0)
		(void)inotify_add_watch(p->inotify, path,
					IN_CREATE | IN_MOVED_TO);
	return 0;
}

static void note_first(struct pump *p, const char *text, size_t n)
{
	if (p->last[0])
		return;
	if (n >= sizeof p->last)
		n = sizeof p->last - 1;
	memcpy(p->last, text, n);
	p->last[n] = 0;
	p->last[strcspn(p->last, "\n")] = 0;
}

static int put(int fd, const char *text, size_t n, struct err *e)
{
	while (n) {
		ssize_t m = write(fd, text, n);
		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			return err_sys(e, "cannot write what the job prints");
		text += m;
		n -= (size_t)m;
	}
	return 0;
}

/* 1: there was something; 0: nothing now; -1. */
static int move_piece(struct pump *p, int i, struct err *e)
{
	static char piece[PIECE];
	if (p->from[i] < 0)
		return 0;
	ssize_t n = read(p->from[i], piece, sizeof piece);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 :
		       err_sys(e, "cannot read what the job prints");
	if (n == 0) {
		p->from[i] = -1;
		return 0;
	}
	if (i == 1)
		note_first(p, piece, (size_t)n);
	return put(p->to[i], piece, (size_t)n, e) < 0 ? -1 : 1;
}

int pump_some(struct pump *p, struct err *e)
{
	int a = move_piece(p, 0, e);
	int b = a < 0 ? a : move_piece(p, 1, e);
	return b < 0 ? -1 : 0;
}

int pump_rest(struct pump *p, struct err *e)
{
	for (int i = 0; i < 2; i++) {
		int r;
		while ((r = move_piece(p, i, e)) > 0)
			;
		if (r < 0)
			return -1;
	}
	return 0;
}

bool pump_cancelled(struct pump *p)
{
	char events[4096];
	while (p->inotify >= 0 && read(p->inotify, events, sizeof events) > 0)
		;
	return faccessat(p->dir, "cancelled", F_OK, 0) == 0;
}

void pump_close(struct pump *p)
{
	int *all[] = { &p->inotify, &p->to[0], &p->to[1] };
	for (size_t i = 0; i < 3; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
}
