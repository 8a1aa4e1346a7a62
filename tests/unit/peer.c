/* SPDX-License-Identifier: MIT
 *
 * Two participants of one session in one process, and a relay that is this
 * test: what it tells may be true or not. */
#include <fcntl.h>

#include "core/enc.h"
#include "core/host/draft.h"
#include "core/host/ids.h"
#include "core/host/opened.h"
#include "tests/unit/tap.h"

struct world {
	uint8_t owner[PRIM_SEED];
	struct buf signed_manifest;
	struct peer *owner_peer, *alice, *viewer;
	uint64_t seq;		/* of the next event */
};

static struct err e;

static void sign_manifest(struct world *w)
{
	struct manifest m = { .created_at_ms = clock_now_ms() - 5000,
			      .expires_at_ms = clock_now_ms() + 3600000,
			      .max_item_bytes = 1024 * 1024 };
	static const enum item_type types[] = { TYPE_TEXT, TYPE_PY, TYPE_ZIP };
	prim_random(w->owner, PRIM_SEED);
	for (int i = 0; i < ROLES; i++) {
		uint8_t seed[PRIM_SEED];
		session_role_seed(seed, w->owner, (enum role)i);
		prim_pub(m.pub[i], seed);
	}
	key_session_id(m.session_id, m.pub[ROLE_OWNER]);
	for (size_t i = 0; i < 3; i++) {
		m.order[m.allowed_n++] = types[i];
		m.allowed[types[i]] = true;
	}
	if (manifest_build(&w->signed_manifest, &m, w->owner, &e) < 0)
		printf("Bail out! %s\n", e.why);
}

/* A peer as peer_open leaves it, but for a cache and a relay. */
static struct peer *peer_new(struct world *w, enum role role)
{
	struct peer *p = prim_secret_alloc(sizeof *p);
	cleanup_buf struct buf link = { 0 };
	memset(p, 0, sizeof *p);
	p->seq = -1;
	p->ids = ids_new();
	invite_build(&link, "http://localhost:1", w->owner, role, &e);
	if (invite_parse(&p->invite, buf_bytes(&link), &e) < 0 ||
	    manifest_parse(&p->manifest, buf_bytes(&w->signed_manifest),
			   &e) < 0)
		printf("Bail out! %s\n", e.why);
	prim_random(p->identity.seed, PRIM_SEED);
	p->identity.role = role;
	prim_pub(p->pub, p->identity.seed);
	return p;
}

static void join_text(struct buf *out, const struct peer *p, const char *name)
{
	cleanup_buf struct buf cert = { 0 };
	struct join j = { .cert.role = p->invite.role, .kind = KIND_CLI,
			  .display_name = (char *)name,
			  .created_at_ms = clock_now_ms() };
	j.cert.issued_at_ms = j.created_at_ms;
	memcpy(j.cert.pub, p->pub, PRIM_PUB);
	if (cert_build(&cert, &j.cert, &p->manifest, p->invite.keys.role_seed,
		       &e) < 0 ||
	    join_build(out, &j, buf_bytes(&cert), &p->manifest,
		       p->identity.seed, &e) < 0)
		printf("Bail out! %s\n", e.why);
}

/* One event to a peer; data {key: text}. */
static struct news tell(struct peer *p, uint64_t seq, const char *kind,
			const char *key, struct bytes text)
{
	cleanup_buf struct buf data = { 0 };
	struct event ev = { .has_seq = true, .seq = seq };
	struct news n;
	buf_addf(&data, "{\"%s\":", key);
	json_put_string(&data, text);
	buf_add_str(&data, "}");
	ev.data = buf_bytes(&data);
	strcpy(ev.kind, kind);
	if (peer_apply(p, &ev, &n, &e) < 0)
		printf("Bail out! %s\n", e.why);
	return n;
}

static struct news tell_join(struct world *w, struct peer *to,
			     const struct peer *who, const char *name)
{
	cleanup_buf struct buf text = { 0 };
	join_text(&text, who, name);
	return tell(to, w->seq++, "participant", "signed_join",
		    buf_bytes(&text));
}

/* --- who is who --- */

static void is_shown(struct world *w, enum role role, const char *name,
		     bool plain)
{
	struct peer *p = peer_new(w, role);
	struct news n = tell_join(w, w->viewer, p, name);
	char want[128], fp[KEY_FINGERPRINT];
	key_fingerprint(fp, p->pub);
	snprintf(want, sizeof want, plain ? "%s" : "%s+%.8s", name, fp);
	if (ok(n.kind == NEWS_PARTICIPANT && n.who, "%s is taken in", name))
		is_str(n.who->shown, want, "and shown so");
	news_free(&n);
	peer_free(p);
}

static void names(struct world *w)
{
	struct news n = tell_join(w, w->viewer, w->alice, "alice");
	ok(n.kind == NEWS_PARTICIPANT && !strcmp(n.who->shown, "alice"),
	   "the first alice is alice");
	news_free(&n);
	n = tell_join(w, w->viewer, w->alice, "somebody else");
	is_str(n.who->shown, "alice", "who joined stays who they are");
	news_free(&n);
	is_shown(w, ROLE_SENDER, "alice", false);
	is_shown(w, ROLE_SENDER, "ALICE", false);
	is_shown(w, ROLE_OBSERVER, "\xef\xbd\x81lice", false);
	is_shown(w, ROLE_SENDER, "bob", true);
	is_shown(w, ROLE_SENDER, "Owner", false);
	is_shown(w, ROLE_OBSERVER, "observer", true);
	is_int(w->viewer->people.n, 7, "seven keys, seven participants");
	ok(people_named(&w->viewer->people, bytes_str("alice"), &e) ==
	   people_find(&w->viewer->people, w->alice->pub), "alice by name");
	ok(!people_named(&w->viewer->people, bytes_str("carol"), &e) &&
	   e.code == ERR_NOT_FOUND, "carol is nobody");
}

static void forged_join(struct world *w)
{
	struct peer *p = peer_new(w, ROLE_SENDER);
	cleanup_buf struct buf text = { 0 };
	join_text(&text, p, "mallory");
	uint8_t *at = memmem(text.data, text.len, "mallory", 7);
	memcpy(at, "malicia", 7);
	struct news n = tell(w->viewer, w->seq++, "participant",
			     "signed_join", buf_bytes(&text));
	ok(n.kind == NEWS_REJECTED && n.why.code == ERR_SIGNATURE,
	   "a changed join is refused: %s", n.why.why);
	ok(!people_find(&w->viewer->people, p->pub), "and nobody came");
	news_free(&n);
	peer_free(p);
}

/* --- items --- */

static int scratch(void)
{
	return open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* Seals a draft of p's into fd and tells the viewer; the draft is freed. */
static struct news tell_item(struct world *w, struct peer *p, struct draft *d,
			     int fd)
{
	struct sealed s;
	struct news n = { 0 };
	if (draft_seal(d, p, fd, &s, &e) < 0)
		printf("# %s\n", e.why);
	n = tell(w->viewer, w->seq++, "item", "envelope",
		 buf_bytes(&s.envelope));
	sealed_free(&s);
	draft_free(d);
	return n;
}

static void text_item(struct world *w)
{
	struct draft d;
	cleanup_fd int fd = scratch();
	is_int(draft_text(&d, w->alice, bytes_str("h\xc3\xa9llo"), &e), 0,
	       "a text to send");
	struct news n = tell_item(w, w->alice, &d, fd);
	if (!ok(n.kind == NEWS_ITEM && n.item, "it is an item"))
		return;
	is_str(n.item->author_shown, "alice", "of alice");
	ok(!n.item->mine, "and not of ours");
	struct opened *o = opened_new(w->viewer, n.item, fd, NULL, NULL, &e);
	ok(o && bytes_eq(o->payload.u.text.text, bytes_str("h\xc3\xa9llo")),
	   "it opens");
	opened_free(o);

	uint8_t c;
	if (pread(fd, &c, 1, 20) == 1)
		c ^= 4;
	ok(pwrite(fd, &c, 1, 20) == 1, "one bit of the blob changes");
	o = opened_new(w->viewer, n.item, fd, NULL, NULL, &e);
	ok(!o && e.code == ERR_SIGNATURE, "it does not open: %s", e.why);
	ok(ftruncate(fd, 30) == 0, "a blob that is cut");
	o = opened_new(w->viewer, n.item, fd, NULL, NULL, &e);
	ok(!o && e.code == ERR_INVALID, "it does not open: %s", e.why);
	struct news again = tell(w->viewer, w->seq++, "item", "envelope",
				 buf_bytes(&n.item->raw));
	is_int(again.kind, NEWS_REJECTED, "the same item twice: %s",
	       again.why.why);
	news_free(&again);
	news_free(&n);
}

static void refuse_author(struct world *w, struct peer *p, enum err_code code,
			  const char *what)
{
	struct draft d = { .kind = ITEM_TEXT, .type = TYPE_NONE };
	cleanup_fd int fd = scratch();
	payload_put_text(&d.front, bytes_str("psst"));
	struct news n = tell_item(w, p, &d, fd);
	ok(n.kind == NEWS_REJECTED && n.why.code == code, "%s: %s", what,
	   n.why.why);
	news_free(&n);
}

static void authors(struct world *w)
{
	struct peer *stranger = peer_new(w, ROLE_SENDER);
	struct peer *mute = peer_new(w, ROLE_OBSERVER);
	refuse_author(w, stranger, ERR_POLICY, "an author that never joined");
	struct news n = tell_join(w, w->viewer, mute, "mute");
	news_free(&n);
	refuse_author(w, mute, ERR_ROLE, "an observer's item");
	peer_free(stranger);
	peer_free(mute);
}

static void file_item(struct world *w, const char *name, struct bytes body,
		      const char *want, bool wrapped)
{
	struct draft d;
	cleanup_fd int fd = scratch();
	struct zip_source src = zip_source_bytes(&body);
	if (!ok(draft_file(&d, w->alice, bytes_str(name), &src, NULL, &e) == 0,
		"%s can be sent", name)) {
		printf("# %s\n", e.why);
		return;
	}
	is_int(d.wrapped, wrapped, "wrapped or not");
	struct news n = tell_item(w, w->alice, &d, fd);
	struct opened *o = n.item ?
		opened_new(w->viewer, n.item, fd, NULL, NULL, &e) : NULL;
	if (ok(o, "%s arrives", name)) {
		bool text = o->payload.kind == ITEM_TEXT;
		struct bytes got = o->payload.u.file.name;
		ok(text ? !want : bytes_eq(got, bytes_str(want)), "as %s",
		   want ? want : "a text");
		uint8_t back[64];
		size_t n_back = body.n < sizeof back ? body.n : sizeof back;
		struct zip_list l = { 0 };
		uint64_t off = 0;
		if (wrapped && zip_check(&o->body, &l, &e) == 0) {
			ok(zip_is_wrap(&l), "as a wrap");
			off = l.v[0].data_offset;
		}
		zip_list_free(&l);
		if (!text && opened_read(o, off, back, n_back, &e) == 0)
			is_mem(back, body.p, n_back, "the same bytes");
		cleanup_fd int to = scratch();
		ok(opened_copy(o, n.item, to, &e) == 0 &&
		   file_size(to, &e) == (int64_t)o->body_n, "copied whole");
	}
	opened_free(o);
	news_free(&n);
}

static void files(struct world *w)
{
	static uint8_t big[300000];
	prim_random(big, sizeof big);
	const struct bytes noise = { big, sizeof big };
	file_item(w, "/tmp/x/main.py", bytes_str("print(1)\n"), "main.py",
		  false);
	file_item(w, "main.py", (struct bytes){ big, 0 }, "main.py", false);
	file_item(w, "notes.txt", bytes_str("a note"), NULL, false);
	file_item(w, "README", bytes_str("read me"), NULL, false);
	file_item(w, "notes.txt", noise, "notes.txt.zip", true);
	file_item(w, "table.csv", bytes_str("a,b\n"), "table.csv.zip", true);
	file_item(w, "data.bin", noise, "data.bin.zip", true);
}

static void refuse_file(struct world *w, const char *name, struct bytes body,
			enum err_code code)
{
	struct draft d;
	struct zip_source src = zip_source_bytes(&body);
	int r = draft_file(&d, w->alice, bytes_str(name), &src, NULL, &e);
	ok(r < 0 && e.code == code, "%s is refused: %s", name, e.why);
}

static void refusals(struct world *w)
{
	static uint8_t big[1024 * 1024];
	refuse_file(w, "notes.md", bytes_str("# no"), ERR_TYPE);
	refuse_file(w, "a.png", bytes_str("no"), ERR_TYPE);
	refuse_file(w, "b.zip", bytes_str("no zip"), ERR_CONTENT);
	refuse_file(w, "c.py", bytes_str("\xff"), ERR_CONTENT);
	refuse_file(w, "CON.py", bytes_str("x"), ERR_NAME);
	refuse_file(w, "big.bin", (struct bytes){ big, sizeof big }, ERR_SIZE);
	struct draft d;
	ok(draft_text(&d, w->viewer, bytes_str("x"), &e) < 0 &&
	   e.code == ERR_ROLE, "an observer says nothing: %s", e.why);
	ok(draft_text(&d, w->alice, bytes_str("\xc3"), &e) < 0 &&
	   e.code == ERR_CONTENT, "half a character is no text");
}

/* --- order, and the end --- */

static void order(struct world *w)
{
	struct peer *p = peer_new(w, ROLE_OBSERVER);
	struct event live = { .kind = "progress", .data = bytes_str("{}") };
	struct event silence = { .data = bytes_str(": keepalive") };
	struct news n;
	is_int(peer_apply(p, &silence, &n, &e), 0, "a comment");
	is_int(n.kind, NEWS_NOTHING, "says nothing");
	peer_apply(p, &live, &n, &e);
	is_int(n.kind, NEWS_LIVE, "an event without a number is live");
	is_int(p->seq, -1, "and moves nothing");
	n = tell(p, 10001, "left", "x", bytes_str(""));
	is_int(n.kind, NEWS_BEHIND, "a wild jump is ignored: %s", n.why.why);
	n = tell(p, 3, "unknown", "x", bytes_str(""));
	ok(n.kind == NEWS_NOTHING && n.gap == 3 && p->seq == 3,
	   "an unknown kind counts, and a gap is seen");
	n = tell(p, 3, "closed", "reason", bytes_str("no"));
	ok(n.kind == NEWS_BEHIND && p->state == PEER_ONLINE && p->seq == 3,
	   "an old number does nothing: %s", n.why.why);
	n = tell(p, 4, "evicted", "item", bytes_str("not an id"));
	is_int(n.kind, NEWS_NOTHING, "a name that is no id");
	n = tell(p, 5, "want", "item", bytes_str("AAAAAAAAAAAAAAAAAAAAAA"));
	ok(n.kind == NEWS_WANT && !strcmp(n.id, "AAAAAAAAAAAAAAAAAAAAAA"),
	   "a want");
	n = tell(p, 6, "closed", "reason", bytes_str("by owner"));
	ok(n.kind == NEWS_CLOSED && p->state == PEER_CLOSED, "closed");
	is_str(n.reason, "by owner", "with its reason");
	news_free(&n);
	peer_free(p);
}

static void revoked(struct world *w)
{
	struct peer *p = peer_new(w, ROLE_OBSERVER);
	cleanup_buf struct buf data = { 0 };
	struct event ev = { .has_seq = true, .kind = "revoked" };
	struct news n;
	buf_add_str(&data, "{\"role\":\"observer\",\"participants\":[");
	json_put_b64(&data, p->pub, PRIM_PUB);
	buf_add_str(&data, "]}");
	ev.data = buf_bytes(&data);
	peer_apply(p, &ev, &n, &e);
	ok(n.kind == NEWS_REVOKED && n.role == ROLE_OBSERVER &&
	   p->state == PEER_CLOSED, "we were revoked: %s", p->why.why);
	peer_free(p);
}

static void delays(void)
{
	bool in = true;
	for (unsigned i = 0; i < 200; i++) {
		int64_t ms = peer_delay_ms(i % 20, -1);
		in = in && ms >= 0 && ms <= 30000 &&
		     (i % 20 || ms <= 250);
	}
	ok(in, "delays are between 0 and 30 s, the first below 250 ms");
	ok(peer_delay_ms(0, 7000) >= 7000, "and not below what was asked");
}

int main(void)
{
	struct world w = { 0 };
	if (prim_init() < 0)
		return 1;
	sign_manifest(&w);
	w.owner_peer = peer_new(&w, ROLE_OWNER);
	w.alice = peer_new(&w, ROLE_SENDER);
	w.viewer = peer_new(&w, ROLE_OBSERVER);
	names(&w);
	forged_join(&w);
	text_item(&w);
	authors(&w);
	files(&w);
	refusals(&w);
	order(&w);
	revoked(&w);
	delays();
	peer_free(w.owner_peer);
	peer_free(w.alice);
	peer_free(w.viewer);
	buf_free(&w.signed_manifest);
	return done_testing();
}
