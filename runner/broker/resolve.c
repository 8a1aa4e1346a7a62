/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "runner/broker/resolve.h"

struct job {
	struct job *next;
	uint64_t token;
	struct host host;
	bool local;
	struct resolved answer;
};

static struct {
	pthread_mutex_t lock;	/* all below */
	pthread_cond_t more;
	struct job *todo, **todo_last;
	struct job *done;
	int fd;
} resolver = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.todo_last = &resolver.todo,
	.fd = -1,
};

/* Why this address may not be dialled; ADDR_PUBLIC: it may. */
static enum addr_class judge(const struct addr *a, const struct host *h,
			     bool local)
{
	enum addr_class c = addr_class(a);
	if (!local)
		return c != ADDR_PUBLIC ? c :
		       addr_is_own(a) ? ADDR_OWN : ADDR_PUBLIC;
	if (c == ADDR_UNSPECIFIED || c == ADDR_MULTICAST)
		return c;
	/* "localhost" means this machine, whatever a resolver says */
	if (h->kind == HOST_NAME && c != ADDR_LOOPBACK)
		return ADDR_RESERVED;
	return ADDR_PUBLIC;
}

static void add(struct resolved *r, const struct addr *a,
		const struct host *h, bool local)
{
	enum addr_class c = judge(a, h, local);
	if (c != ADDR_PUBLIC)
		r->refused = c;
	else if (r->n < RESOLVE_MAX)
		r->addr[r->n++] = *a;
}

void resolve_literal(struct resolved *r, const struct host *h, bool local)
{
	struct addr a = { .family = h->kind == HOST_V4 ? AF_INET : AF_INET6 };
	*r = (struct resolved){ 0 };
	if (inet_pton(a.family, h->name, a.bytes) == 1)
		add(r, &a, h, local);
}

static void look_up(struct job *j)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	struct resolved *r = &j->answer;
	int rc = getaddrinfo(j->host.name, NULL, &hints, &list);
	if (rc != 0) {
		r->why = rc == EAI_NONAME ? "there is no such name" :
			 rc == EAI_AGAIN ? "no answer from the name service" :
			 "the name service failed";
		return;
	}
	for (struct addrinfo *i = list; i; i = i->ai_next) {
		struct addr a;
		if (addr_from(&a, i->ai_addr))
			add(r, &a, &j->host, j->local);
	}
	freeaddrinfo(list);
}

static void *work(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&resolver.lock);
		while (!resolver.todo)
			pthread_cond_wait(&resolver.more, &resolver.lock);
		struct job *j = resolver.todo;
		resolver.todo = j->next;
		if (!resolver.todo)
			resolver.todo_last = &resolver.todo;
		pthread_mutex_unlock(&resolver.lock);
		look_up(j);
		pthread_mutex_lock(&resolver.lock);
		j->next = resolver.done;
		resolver.done = j;
		pthread_mutex_unlock(&resolver.lock);
		eventfd_write(resolver.fd, 1);
	}
	return arg;
}

int resolve_open(struct err *e)
{
	resolver.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (resolver.fd < 0)
		return err_sys(e, "cannot start the resolver");
	for (int i = 0; i < RESOLVE_THREADS; i++) {
		pthread_t t;
		errno = pthread_create(&t, NULL, work, NULL);
		if (errno)
			return err_sys(e, "cannot start the resolver");
		pthread_detach(t);
	}
	return resolver.fd;
}

int resolve_start(uint64_t token, const struct host *h, bool local)
{
	struct job *j = calloc(1, sizeof *j);
	if (!j)
		return -1;
	j->token = token;
	j->host = *h;
	j->local = local;
	pthread_mutex_lock(&resolver.lock);
	*resolver.todo_last = j;
	resolver.todo_last = &j->next;
	pthread_cond_signal(&resolver.more);
	pthread_mutex_unlock(&resolver.lock);
	return 0;
}

bool resolve_take(uint64_t *token, struct resolved *r)
{
	eventfd_t n;
	pthread_mutex_lock(&resolver.lock);
	struct job *j = resolver.done;
	if (j)
		resolver.done = j->next;
	else
		eventfd_read(resolver.fd, &n);
	pthread_mutex_unlock(&resolver.lock);
	if (!j)
		return false;
	*token = j->token;
	*r = j->answer;
	free(j);
	return true;
}
