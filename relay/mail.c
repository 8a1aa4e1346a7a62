/* SPDX-License-Identifier: MIT */
#include <sys/eventfd.h>
#include <unistd.h>

#include "relay/mail.h"

int mailbox_init(struct mailbox *mb)
{
	pthread_mutex_init(&mb->lock, NULL);
	mb->first = NULL;
	mb->last = &mb->first;
	mb->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return mb->fd < 0 ? -1 : 0;
}

void mailbox_free(struct mailbox *mb)
{
	if (mb->fd >= 0)
		close(mb->fd);
	pthread_mutex_destroy(&mb->lock);
}

void mailbox_ring(struct mailbox *mb)
{
	uint64_t one = 1;
	ssize_t n = write(mb->fd, &one, sizeof one);
	(void)n;	/* full means that it rings already */
}

void mail_post(struct mailbox *mb, struct mail *m)
{
	m->next = NULL;
	pthread_mutex_lock(&mb->lock);
	bool empty = !mb->first;
	*mb->last = m;
	mb->last = &m->next;
	pthread_mutex_unlock(&mb->lock);
	if (empty)
		mailbox_ring(mb);
}

struct mail *mail_take(struct mailbox *mb)
{
	uint64_t n;
	ssize_t r = read(mb->fd, &n, sizeof n);
	(void)r;	/* nothing there is no fault */
	pthread_mutex_lock(&mb->lock);
	struct mail *m = mb->first;
	mb->first = NULL;
	mb->last = &mb->first;
	pthread_mutex_unlock(&mb->lock);
	return m;
}
