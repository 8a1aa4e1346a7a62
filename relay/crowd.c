/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>

#include "core/prim.h"
#include "relay/crowd.h"

#define BUCKETS 4096u

struct count {
	struct count *next;
	struct addr net;
	uint32_t n;
};

static struct {
	pthread_mutex_t lock;
	uint64_t key;		/* so that nobody can aim at a bucket */
	struct count *bucket[BUCKETS];
} crowd = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool counts(const struct limits *l, const struct addr *a)
{
	static const struct addr none;
	return memcmp(a, &none, sizeof none) != 0 &&
	       !addr_set_has(&l->proxies, a);
}

/* Under the lock: where the address is, or would be. */
static struct count **find(const struct addr *net)
{
	uint64_t w[2];
	while (!crowd.key)
		prim_random((uint8_t *)&crowd.key, sizeof crowd.key);
	memcpy(w, net->b, sizeof w);
	uint64_t h = (w[0] ^ crowd.key) * 0x9e3779b97f4a7c15u;
	h = ((h ^ h >> 29) + (w[1] ^ crowd.key)) * 0xbf58476d1ce4e5b9u;
	struct count **at = &crowd.bucket[(h ^ h >> 32) % BUCKETS];
	while (*at && memcmp(&(*at)->net, net, sizeof *net) != 0)
		at = &(*at)->next;
	return at;
}

static bool enter(const struct addr *net, uint32_t most)
{
	struct count **at = find(net);
	if (!*at && (*at = calloc(1, sizeof **at)))
		(*at)->net = *net;
	if (!*at || (*at)->n >= most)
		return false;
	(*at)->n++;
	return true;
}

static void leave(const struct addr *net)
{
	struct count **at = find(net), *c = *at;
	if (!c || --c->n)
		return;
	*at = c->next;
	free(c);
}

bool crowd_enter(const struct limits *l, const struct addr *a)
{
	if (!counts(l, a))
		return true;
	struct addr net = addr_net(*a);
	pthread_mutex_lock(&crowd.lock);
	bool may = enter(&net, l->address_connections);
	pthread_mutex_unlock(&crowd.lock);
	return may;
}

void crowd_leave(const struct limits *l, const struct addr *a)
{
	if (!counts(l, a))
		return;
	struct addr net = addr_net(*a);
	pthread_mutex_lock(&crowd.lock);
	leave(&net);
	pthread_mutex_unlock(&crowd.lock);
}
