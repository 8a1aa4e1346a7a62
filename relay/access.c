/* SPDX-License-Identifier: MIT
 *
 * Lines are gathered per reactor and written once a second, or when there
 * are many. */
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "relay/access.h"
#include "relay/route.h"
#include "relay/tell.h"

#define GATHER (32u * 1024)

static struct {
	const char *path;	/* NULL: no log */
	int fd;
	bool addresses;
} lg;

static int open_file(struct err *e)
{
	int fd = open(lg.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		      0600);
	return fd < 0 ? err_sys(e, "cannot open %s", lg.path) : fd;
}

int access_open(const char *path, bool addresses, struct err *e)
{
	lg.path = path;
	lg.addresses = addresses;
	lg.fd = STDERR_FILENO;
	if (path && strcmp(path, "-") != 0)
		lg.fd = open_file(e);
	return lg.fd < 0 ? -1 : 0;
}

void access_reopen(void)
{
	struct err e;
	if (!lg.path || lg.fd == STDERR_FILENO)
		return;
	int fd = open_file(&e);
	if (fd < 0 || dup3(fd, lg.fd, O_CLOEXEC) < 0)
		tell("the access log goes on in the old file: %s", e.why);
	if (fd >= 0)
		close(fd);
}

static const char *method_word(const struct conn *c)
{
	static const char *const words[] = { "GET", "POST", "PUT", "-" };
	return words[c->req ? c->req->method : HTTP_OTHER];
}

void access_note(struct conn *c, int status)
{
	struct buf *b = &c->loop->access;
	char at[32], who[ADDR_TEXT];
	struct tm tm;
	time_t now = time(NULL);
	if (!lg.path)
		return;
	gmtime_r(&now, &tm);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_addf(b, "%s %s %s %d %lldms", at, method_word(c),
		 c->req && c->req->route ? c->req->route->path : "-", status,
		 c->req ? (long long)(c->loop->now_ms - c->req->began_ms) :
			  0LL);
	if (lg.addresses) {
		addr_text(who, c->req ? &c->req->client : &c->peer);
		buf_addf(b, " %s", who);
	}
	buf_add_byte(b, '\n');
	if (b->len > GATHER)
		access_flush(c->loop);
}

void access_flush(struct loop *l)
{
	if (l->access.len && !buf_failed(&l->access) &&
	    write(lg.fd, l->access.data, l->access.len) < 0)
		tell("cannot write the access log");
	buf_reset(&l->access);
}
