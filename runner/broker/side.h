/* SPDX-License-Identifier: MIT
 *
 * side: one end of a connection: a socket, TLS or none, what was read and not
 * yet used, what waits to be sent.  And watches: what the reactor calls. */
#ifndef RUNNER_BROKER_SIDE_H
#define RUNNER_BROKER_SIDE_H

#include "core/buf.h"
#include "runner/broker/tls.h"

/* Called with the events of epoll(7) when fd is ready. */
struct watch {
	int fd;			/* -1: none */
	int epfd;
	uint32_t armed;
	void (*ready)(struct watch *w, uint32_t events);
};
/* Takes no descriptor over.  -1: the system has no room. */
int watch_add(struct watch *w, int epfd, int fd, uint32_t events);
/* 0: what is always told, a hang-up, is told once. */
void watch_arm(struct watch *w, uint32_t events);

#define SIDE_READ (16u * 1024)	/* at once */
#define SIDE_OUT_MAX (32u * 1024)	/* above it nothing more is made */

struct side {
	struct watch watch;	/* must be first */
	struct tls *tls;
	struct buf in, out;
	size_t out_at;		/* sent */
	bool eof;		/* the peer will send no more */
	bool broken;		/* reset, or TLS failed: nothing goes on */
	bool ready;		/* there may be something to read; else the
				 * reactor says when */
};

static inline size_t side_pending(const struct side *s)
{
	return s->out.len - s->out_at;
}
static inline bool side_is_open(const struct side *s)
{
	return s->watch.fd >= 0;
}

/* Reads as long as there is less than max bytes.  True: something came, the
 * end included. */
bool side_fill(struct side *s, size_t max);
/* Sends.  True: something went. */
bool side_flush(struct side *s);
/* Asks for what it waits for next. */
void side_arm(struct side *s, bool reads);
void side_shut(struct side *s);		/* nothing more will be sent */
void side_close(struct side *s);	/* and everything wiped; once more
					 * does nothing */
void side_rest(struct side *s);		/* gives back memory while idle */
/* What the reactor says of it. */
void side_seen(struct side *s, uint32_t events);

#endif
