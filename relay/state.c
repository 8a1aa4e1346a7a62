/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "relay/loop.h"
#include "relay/task.h"
#include "relay/tell.h"

#define BUCKETS 4096

int state_init(struct state *st, const struct limits *limits, struct err *e)
{
	*st = (struct state){ .limits = *limits, .bucket_n = BUCKETS };
	pthread_mutex_init(&st->lock, NULL);
	st->bucket = calloc(BUCKETS, sizeof *st->bucket);
	st->makers = rate_table_new();
	pthread_mutex_init(&st->asking.lock, NULL);
	st->asking.asked = rate_table_new();
	st->free_bytes = -1;
	return st->bucket && st->makers && st->asking.asked ? 0 :
	       err_set(e, ERR_MEMORY, "out of memory");
}

bool state_can_write(struct state *st, struct err *e)
{
	if (st->low)
		err_set(e, ERR_FULL, "the relay's disk is full; try again "
			"later");
	else if (st->failing)
		err_set(e, ERR_SYS, "the relay cannot write now");
	return !st->low && !st->failing;
}

void state_look(struct state *st)
{
	int64_t left = store_free(st->store);
	bool low = left >= 0 && left < st->limits.free_bytes;
	st->free_bytes = left;
	if (low != st->low)
		tell(low ? "the disk has less than --min-free-bytes: nothing "
			   "new is taken" :
			   "the disk has room again");
	st->low = low;
}

void state_free(struct state *st)
{
	for (size_t i = 0; st->bucket && i < st->bucket_n; i++)
		for (struct session *s = st->bucket[i], *next; s; s = next) {
			next = s->next;
			state_unref(s);
		}
	free(st->bucket);
	rate_table_free(st->makers);
	rate_table_free(st->asking.asked);
	pthread_mutex_destroy(&st->asking.lock);
	pthread_mutex_destroy(&st->lock);
}

struct session *state_new(struct bytes signed_manifest, struct err *e)
{
	struct session *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	atomic_init(&s->refs, 1);
	if (manifest_parse(&s->m, signed_manifest, e) < 0) {
		free(s);
		return NULL;
	}
	s->signed_manifest = strndup((const char *)signed_manifest.p,
				     signed_manifest.n);
	if (!s->signed_manifest) {
		err_set(e, ERR_MEMORY, "out of memory");
		state_unref(s);
		return NULL;
	}
	memcpy(s->id, s->m.session_id, sizeof s->id);
	return s;
}

struct session *state_ref(struct session *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

static void item_free(struct item *it)
{
	if (it->file.fd >= 0 && it->file.name)
		close(it->file.fd);
	free(it->waiting);
	free(it->want);
	task_free(it->job);
	free(it);
}

void state_unref(struct session *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	for (uint32_t i = 0; i < s->bucket_n; i++)
		for (struct item *it = s->item[i], *next; it; it = next) {
			next = it->next;
			item_free(it);
		}
	for (uint32_t i = 0; i < s->part_n; i++) {
		task_free_runner(s->part[i]->runner);
		free(s->part[i]);
	}
	free(s->part);
	free(s->item);
	free(s->rec);
	free(s->event);
	free(s->signed_manifest);
	manifest_free(&s->m);
	hub_free(&s->hub);
	free(s);
}

struct session *state_find_any(struct state *st, const char *id)
{
	struct session *s = st->bucket[fact_tag(id) % st->bucket_n];
	while (s && strcmp(s->id, id) != 0)
		s = s->next;
	return s;
}

struct session *state_find(struct state *st, struct bytes id, int64_t now_ms)
{
	char z[SESSION_ID + 1];
	if (id.n != SESSION_ID)
		return NULL;
	memcpy(z, id.p, SESSION_ID);
	z[SESSION_ID] = 0;
	struct session *s = state_find_any(st, z);
	return s && !s->closed && now_ms < s->m.expires_at_ms ? s : NULL;
}

/* What is compared is the hash of a token, so that its first bytes tell
 * nothing that a guesser could use. */
struct participant *state_by_token(struct session *s,
				     const uint8_t token[HASH_SIZE])
{
	for (uint32_t i = 0; i < s->part_n; i++) {
		struct participant *p = s->part[i];
		if (memcmp(p->token, token, 4) == 0 && !p->gone &&
		    prim_equal(p->token, token, HASH_SIZE))
			return p;
	}
	return NULL;
}

struct participant *state_by_pub(struct session *s,
				   const uint8_t pub[PRIM_PUB])
{
	for (uint32_t i = 0; i < s->part_n; i++)
		if (memcmp(s->part[i]->cert.pub, pub, PRIM_PUB) == 0)
			return s->part[i];
	return NULL;
}

struct item *state_item(struct session *s, const char *id)
{
	if (!s->bucket_n)
		return NULL;
	struct item *it = s->item[fact_tag(id) & (s->bucket_n - 1)];
	while (it && strcmp(it->id, id) != 0)
		it = it->next;
	return it;
}

bool state_waits_for(const struct item *it, const struct participant *p)
{
	return p->index / 64 < it->waiting_words &&
	       (it->waiting[p->index / 64] >> p->index % 64 & 1);
}

struct item *state_take_due(struct session *s)
{
	int64_t now_ms = s->due ? loop_mono_ms() : 0;
	uint64_t before = s->due ? task_hold_before(s) : 0;
	struct item *it;
	while ((it = s->due)) {
		s->due = it->next_due;
		if (!task_holds(s, it, before, now_ms))
			break;
		it->next_due = s->held;
		s->held = it;
	}
	if (it)
		it->is_due = false;
	return it;
}

void state_unhold(struct session *s)
{
	int64_t now_ms = s->held ? loop_mono_ms() : 0;
	uint64_t before = s->held ? task_hold_before(s) : 0;
	for (struct item **slot = &s->held; *slot;) {
		struct item *it = *slot;
		if (task_holds(s, it, before, now_ms)) {
			slot = &it->next_due;
			continue;
		}
		*slot = it->next_due;
		it->next_due = s->due;
		s->due = it;
	}
}

int state_add_closed(struct state *st, const char *id, int64_t expires_ms)
{
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return -1;
	atomic_init(&s->refs, 1);
	memcpy(s->id, id, sizeof s->id);
	s->m.expires_at_ms = expires_ms;
	s->closed = true;
	struct session **slot = &st->bucket[fact_tag(id) % st->bucket_n];
	s->next = *slot;
	*slot = s;
	return 0;
}

void state_forget_closed(struct state *st, int64_t now_ms)
{
	for (size_t i = 0; i < st->bucket_n; i++) {
		struct session **slot = &st->bucket[i];
		while (*slot) {
			struct session *s = *slot;
			if (!s->closed || now_ms < s->m.expires_at_ms) {
				slot = &s->next;
				continue;
			}
			*slot = s->next;
			state_unref(s);
		}
	}
}
