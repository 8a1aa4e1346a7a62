/* SPDX-License-Identifier: MIT
 *
 * What a relay may tell a peer: the first line is the kind, the rest the
 * data.  No event moves the number back or makes an item of a stranger. */
#include <stdlib.h>
#include <string.h>

#include "core/host/ids.h"
#include "core/host/peer.h"

static void make_session(struct peer *p)
{
	struct manifest m = { .created_at_ms = 1, .expires_at_ms = 1000000,
			      .max_item_bytes = 1000, .allowed_n = 1,
			      .allowed = { [TYPE_TEXT] = true } };
	uint8_t owner[PRIM_SEED] = { 7 };
	struct buf text = { 0 };
	for (int i = 0; i < ROLES; i++) {
		uint8_t seed[PRIM_SEED];
		session_role_seed(seed, owner, (enum role)i);
		prim_pub(m.pub[i], seed);
	}
	key_session_id(m.session_id, m.pub[ROLE_OWNER]);
	if (manifest_build(&text, &m, owner, NULL) < 0 ||
	    manifest_parse(&p->manifest, buf_bytes(&text), NULL) < 0)
		abort();
	buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *in, size_t n)
{
	static struct peer p;
	struct event ev = { .has_seq = true };
	struct news news;
	const uint8_t *end = n ? memchr(in, '\n', n) : NULL;
	if (!end || end - in > SSE_KIND_MAX || memchr(in, 0, end - in))
		return 0;
	if (prim_init() < 0)
		abort();
	if (!p.ids)
		make_session(&p);
	p.ids = p.ids ? p.ids : ids_new();
	p.seq = 4;
	p.state = PEER_ONLINE;
	memcpy(ev.kind, in, (size_t)(end - in));
	ev.seq = 5;
	ev.data = (struct bytes){ end + 1, n - (size_t)(end - in) - 1 };
	if (peer_apply(&p, &ev, &news, NULL) < 0 || p.seq < 4 ||
	    (news.kind == NEWS_ITEM && !people_find(&p.people,
						    news.item->author.pub)))
		abort();
	news_free(&news);
	return 0;
}
