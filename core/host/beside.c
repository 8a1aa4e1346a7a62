/* SPDX-License-Identifier: MIT */
#include "core/host/beside.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/prim.h"

#define ROOMS 4
#define ALONE_MAX (1024 * 1024)	/* less than this is not worth a thread */

struct beside {
	void (*take)(void *arg, const void *p, size_t n);
	void *arg;
	pthread_t thread;
	bool runs;
	uint8_t *room[ROOMS];
	size_t size;		/* of each room */
	size_t n[ROOMS];

	pthread_mutex_t lock;	/* guards all below */
	pthread_cond_t change;
	size_t given, taken;	/* chunks; room i % ROOMS has chunk i */
	bool ending;
};

static void *beside_thread(void *arg)
{
	struct beside *b = arg;
	pthread_mutex_lock(&b->lock);
	for (;;) {
		while (!b->ending && b->taken == b->given)
			pthread_cond_wait(&b->change, &b->lock);
		if (b->taken == b->given)
			break;
		size_t i = b->taken % ROOMS;
		pthread_mutex_unlock(&b->lock);
		b->take(b->arg, b->room[i], b->n[i]);
		pthread_mutex_lock(&b->lock);
		b->taken++;
		pthread_cond_signal(&b->change);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

struct beside *beside_new(uint64_t total,
			  void (*take)(void *arg, const void *p, size_t n),
			  void *arg, struct err *e)
{
	struct beside *b = calloc(1, sizeof *b);
	size_t rooms = total > ALONE_MAX ? ROOMS : 1;
	bool ok = b != NULL;
	if (b)
		b->size = total < BESIDE_CHUNK ? (size_t)total + 1
					       : BESIDE_CHUNK;
	for (size_t i = 0; ok && i < rooms; i++)
		ok = (b->room[i] = malloc(b->size)) != NULL;
	if (!ok) {
		beside_free(b);
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	b->take = take;
	b->arg = arg;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->change, NULL);
	b->runs = rooms > 1 &&
		pthread_create(&b->thread, NULL, beside_thread, b) == 0;
	return b;
}

uint8_t *beside_room(struct beside *b)
{
	if (!b->runs)
		return b->room[0];
	pthread_mutex_lock(&b->lock);
	while (b->given - b->taken == ROOMS)
		pthread_cond_wait(&b->change, &b->lock);
	uint8_t *room = b->room[b->given % ROOMS];
	pthread_mutex_unlock(&b->lock);
	return room;
}

void beside_give(struct beside *b, size_t n)
{
	if (!b->runs) {
		b->take(b->arg, b->room[0], n);
		return;
	}
	pthread_mutex_lock(&b->lock);
	b->n[b->given % ROOMS] = n;
	b->given++;
	pthread_cond_signal(&b->change);
	pthread_mutex_unlock(&b->lock);
}

void beside_wait(struct beside *b)
{
	if (!b->runs)
		return;
	pthread_mutex_lock(&b->lock);
	while (b->taken != b->given)
		pthread_cond_wait(&b->change, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

void beside_free(struct beside *b)
{
	if (!b)
		return;
	if (b->runs) {
		pthread_mutex_lock(&b->lock);
		b->ending = true;
		pthread_cond_signal(&b->change);
		pthread_mutex_unlock(&b->lock);
		pthread_join(b->thread, NULL);
	}
	for (size_t i = 0; i < ROOMS; i++) {
		if (b->room[i])
			prim_wipe(b->room[i], b->size);
		free(b->room[i]);
	}
	if (b->take) {
		pthread_cond_destroy(&b->change);
		pthread_mutex_destroy(&b->lock);
	}
	free(b);
}
