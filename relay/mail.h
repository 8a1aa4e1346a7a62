/* SPDX-License-Identifier: MIT
 *
 * mail: what one thread hands to a reactor.  A mail is the first member of
 * what it carries, and belongs to the reactor from mail_post on. */
#ifndef RELAY_MAIL_H
#define RELAY_MAIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum mail_kind { MAIL_CONN, MAIL_DONE, MAIL_NEWS, MAIL_HASHED };

struct mail {
	struct mail *next;
	enum mail_kind kind;
};

struct mailbox {
	pthread_mutex_t lock;
	struct mail *first, **last;
	int fd;			/* eventfd, readable when there is mail */
};

int mailbox_init(struct mailbox *mb);	/* 0 or -1 and errno */
void mailbox_free(struct mailbox *mb);
void mail_post(struct mailbox *mb, struct mail *m);
void mailbox_ring(struct mailbox *mb);	/* wakes without mail */
struct mail *mail_take(struct mailbox *mb);	/* all of it, in order */

#endif
