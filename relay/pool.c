/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "relay/pool.h"

#define POOL_THREADS 4

struct task {
	struct task *next;
	void (*fn)(void *);
	void *arg;
};

struct pool {
	pthread_mutex_t lock;	/* all below */
	pthread_cond_t more;
	struct task *first, **last;
	bool stop;
	pthread_t thread[POOL_THREADS];
	int thread_n;
};

static void *work(void *arg)
{
	struct pool *p = arg;
	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->first && !p->stop)
			pthread_cond_wait(&p->more, &p->lock);
		struct task *t = p->first;
		if (!t)
			break;
		p->first = t->next;
		if (!p->first)
			p->last = &p->first;
		pthread_mutex_unlock(&p->lock);
		t->fn(t->arg);
		free(t);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct pool *pool_start(struct err *e)
{
	struct pool *p = calloc(1, sizeof *p);
	if (!p) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->more, NULL);
	p->last = &p->first;
	while (p->thread_n < POOL_THREADS &&
	       pthread_create(&p->thread[p->thread_n], NULL, work, p) == 0)
		p->thread_n++;
	if (p->thread_n == 0) {
		err_set(e, ERR_MEMORY, "cannot start a thread");
		pool_stop(p);
		return NULL;
	}
	return p;
}

int pool_run(struct pool *p, void (*fn)(void *arg), void *arg)
{
	struct task *t = malloc(sizeof *t);
	if (!t)
		return -1;
	*t = (struct task){ .fn = fn, .arg = arg };
	pthread_mutex_lock(&p->lock);
	*p->last = t;
	p->last = &t->next;
	pthread_cond_signal(&p->more);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

void pool_stop(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	for (int i = 0; i < p->thread_n; i++)
		pthread_join(p->thread[i], NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->more);
	free(p);
}
