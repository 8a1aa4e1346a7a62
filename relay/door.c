/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "relay/door.h"

#define BACKLOG 4096

/* A socket that nobody answers on is a left-over; anything else is kept. */
static int clear_path(const struct sockaddr_un *a, struct err *e)
{
	struct stat sb;
	if (lstat(a->sun_path, &sb) < 0)
		return 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, "cannot make a socket");
	int rc = connect(fd, (const struct sockaddr *)a, sizeof *a);
	int why = errno;
	close(fd);
	if (!S_ISSOCK(sb.st_mode) || rc == 0 || why != ECONNREFUSED)
		return err_set(e, ERR_EXISTS, "%s is in use; give another "
			       "path to --listen", a->sun_path);
	return unlink(a->sun_path) < 0 ?
	       err_sys(e, "cannot remove the old %s", a->sun_path) : 0;
}

static int open_unix(struct door *d, const char *path, struct err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof a.sun_path || !*path)
		return err_set(e, ERR_USAGE, "a path of 1 to 107 bytes is "
			       "needed after unix:");
	strcpy(a.sun_path, path);
	if (clear_path(&a, e) < 0)
		return -1;
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&a, sizeof a) < 0)
		return err_sys(e, "cannot listen on unix:%s", path);
	strcpy(d->path, path);
	/* as open as a port of this machine; its directory says to whom */
	if (chmod(path, 0666) < 0)
		return err_sys(e, "cannot open unix:%s to others", path);
	snprintf(d->where, sizeof d->where, "unix:%s", path);
	return 0;
}

static int resolve(struct addrinfo **ai, const char *listen, struct err *e)
{
	char host[128];
	const char *colon = strrchr(listen, ':');
	size_t n = colon ? (size_t)(colon - listen) : 0;
	if (!colon || n == 0 || n >= sizeof host)
		return err_set(e, ERR_USAGE, "--listen takes ADDR:PORT or "
			       "unix:PATH");
	bool v6 = listen[0] == '[' && listen[n - 1] == ']';
	memcpy(host, listen + v6, n - 2u * v6);
	host[n - 2u * v6] = 0;
	struct addrinfo want = { .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICSERV | AI_PASSIVE };
	int rc = getaddrinfo(host, colon + 1, &want, ai);
	return rc ? err_set(e, ERR_USAGE, "cannot listen on %s: %s", listen,
			    gai_strerror(rc)) : 0;
}

static void name_tcp(struct door *d, const struct sockaddr_storage *a,
		     socklen_t n)
{
	char host[64] = "?", port[16] = "?";
	getnameinfo((const struct sockaddr *)a, n, host, sizeof host, port,
		    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
	bool v6 = a->ss_family == AF_INET6;
	snprintf(d->where, sizeof d->where, "%s://%s%s%s:%s",
		 d->tls ? "https" : "http", v6 ? "[" : "", host,
		 v6 ? "]" : "", port);
}

static int open_tcp(struct door *d, const char *listen, struct err *e)
{
	struct addrinfo *ai;
	struct sockaddr_storage a;
	socklen_t n = sizeof a;
	int one = 1;
	if (resolve(&ai, listen, e) < 0)
		return -1;
	d->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK |
		       SOCK_CLOEXEC, 0);
	setsockopt(d->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	int rc = d->fd < 0 ? -1 : bind(d->fd, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	if (rc < 0 || getsockname(d->fd, (struct sockaddr *)&a, &n) < 0)
		return err_sys(e, "cannot listen on %s", listen);
	name_tcp(d, &a, n);
	return 0;
}

static int open_one(struct door *d, const char *where, struct err *e)
{
	*d = (struct door){ .fd = -1 };
	d->tls = strncmp(where, "tls:", 4) == 0;
	int rc = d->tls ? open_tcp(d, where + 4, e) :
		 strncmp(where, "unix:", 5) == 0 ?
		 open_unix(d, where + 5, e) : open_tcp(d, where, e);
	if (rc == 0 && listen(d->fd, BACKLOG) < 0)
		rc = err_sys(e, "cannot listen on %s", where);
	return rc;
}

/* ---- sockets that were handed over ---- */

/* The n-th of the names, with colons between. */
static bool named_tls(const char *names, int n)
{
	while (names && n-- > 0) {
		names = strchr(names, ':');
		names = names ? names + 1 : NULL;
	}
	return names && strncmp(names, "tls", 3) == 0 &&
	       (names[3] == 0 || names[3] == ':');
}

static int inherit(struct doors *ds, struct err *e)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	if (!pid || !fds || atol(pid) != (long)getpid())
		return 0;
	int n = atoi(fds);
	if (n < 1 || n > DOORS_MAX)
		return err_set(e, ERR_USAGE, "1 to %d sockets can be handed "
			       "over", DOORS_MAX);
	for (; ds->n < n; ds->n++) {
		struct door *d = &ds->door[ds->n];
		struct sockaddr_storage a = { 0 };
		struct sockaddr_un *un = (struct sockaddr_un *)&a;
		socklen_t size = sizeof a;
		*d = (struct door){ .fd = 3 + ds->n };
		d->tls = named_tls(getenv("LISTEN_FDNAMES"), ds->n);
		if (fcntl(d->fd, F_SETFD, FD_CLOEXEC) < 0 ||
		    fcntl(d->fd, F_SETFL, O_NONBLOCK) < 0 ||
		    getsockname(d->fd, (struct sockaddr *)&a, &size) < 0)
			return err_sys(e, "no socket was handed over as %d",
				       d->fd);
		if (a.ss_family == AF_UNIX)
			snprintf(d->where, sizeof d->where, "unix:%.100s",
				 un->sun_path);
		else
			name_tcp(d, &a, size);
	}
	return 0;
}

static int open_list(struct doors *ds, const char *list, struct err *e)
{
	while (*list) {
		char where[160];
		size_t n = strcspn(list, ", ");
		if (n >= sizeof where || ds->n == DOORS_MAX)
			return err_set(e, ERR_USAGE, "--listen takes at most "
				       "%d places", DOORS_MAX);
		memcpy(where, list, n);
		where[n] = 0;
		if (n && open_one(&ds->door[ds->n++], where, e) < 0)
			return -1;
		list += n + (list[n] != 0);
	}
	return ds->n ? 0 : err_set(e, ERR_USAGE, "--listen needs a place");
}

int doors_open(struct doors *ds, const char *list, struct err *e)
{
	*ds = (struct doors){ .n = 0 };
	int rc = inherit(ds, e);
	if (rc == 0 && ds->n == 0)
		rc = open_list(ds, list ? list : "127.0.0.1:8440", e);
	if (rc < 0)
		doors_close(ds);
	return rc;
}

void doors_close(struct doors *ds)
{
	for (int i = 0; i < ds->n; i++) {
		if (ds->door[i].fd >= 0)
			close(ds->door[i].fd);
		if (ds->door[i].path[0])
			unlink(ds->door[i].path);
	}
}
