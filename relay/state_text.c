/* SPDX-License-Identifier: MIT
 *
 * A session's facts as text: as events, as a stream's frames, as lines of the
 * audit trail. */
#include <string.h>

#include "core/json.h"
#include "relay/state.h"

/* A member that a line has beside those of the event's data. */
struct own {
	const char *key;
	size_t at, n;		/* its value, in the text behind */
};

struct line {
	struct own own[5];	/* in order of the keys */
	size_t n;
	struct buf text;
};

static struct buf *begin(struct line *l, const char *key)
{
	l->own[l->n++] = (struct own){ key, l->text.len, 0 };
	return &l->text;
}

static void end(struct line *l)
{
	l->own[l->n - 1].n = l->text.len - l->own[l->n - 1].at;
}

/* What makes the trail one that can be checked without us: the manifest, and
 * the hashes that the items' signatures cover. */
static void add_own(struct line *l, const struct fact *f)
{
	struct fact_reader r = { .left = f->extra };
	uint8_t skip[ITEM_ID + PRIM_PUB + 1], sha256[HASH_SIZE];
	json_put_int(begin(l, "at_ms"), f->at_ms);
	end(l);
	if (f->type == REC_ITEM) {
		fact_take(&r, skip, sizeof skip);
		fact_take(&r, sha256, sizeof sha256);
		json_put_b64(begin(l, "blob_sha256"), sha256, sizeof sha256);
		end(l);
	}
	json_put_string(begin(l, "event"), bytes_str(fact_audit(f->type)));
	end(l);
	if (f->seq != FACT_NO_SEQ) {
		json_put_int(begin(l, "seq"), (int64_t)f->seq);
		end(l);
	}
	if (f->type == REC_SESSION) {
		json_put_string(begin(l, "signed_manifest"), f->extra);
		end(l);
	}
}

static bool comes_before(const struct own *o, struct bytes key)
{
	size_t n = strlen(o->key), least = n < key.n ? n : key.n;
	int c = memcmp(o->key, key.p, least);
	return c < 0 || (c == 0 && n < key.n);
}

static void put_own(struct buf *out, const struct line *l, size_t i)
{
	json_put_key(out, l->own[i].key);
	buf_add(out, l->text.data + l->own[i].at, l->own[i].n);
}

/* Both are in order of their keys; so is the line, canonical as they are. */
static int put_line(struct buf *out, const struct fact *f, struct err *e)
{
	struct line l = { 0 };
	struct json *data = json_parse(f->data, e);
	size_t i = 0;
	if (!data)
		return -1;
	add_own(&l, f);
	buf_add_byte(out, '{');
	for (const struct json *c = data->child; c; c = c->next) {
		for (; i < l.n && comes_before(&l.own[i], c->key); i++)
			put_own(out, &l, i);
		json_put_sep(out);
		buf_addf(out, "\"%.*s\":", (int)c->key.n,
			 (const char *)c->key.p);
		buf_add(out, c->raw.p, c->raw.n);
	}
	for (; i < l.n; i++)
		put_own(out, &l, i);
	buf_add_str(out, "}\n");
	if (buf_failed(&l.text))
		out->failed = true;
	buf_free(&l.text);
	json_free(data);
	return 0;
}

static void put_event(struct buf *out, const struct fact *f)
{
	buf_addf(out, "{\"seq\":%llu,\"kind\":\"%s\",\"data\":",
		 (unsigned long long)f->seq, fact_event(f->type));
	buf_add(out, f->data.p, f->data.n);
	buf_add_byte(out, '}');
}

int state_text(struct state *st, struct session *s, enum text_kind as,
		 uint32_t *n, uint32_t end, size_t enough, struct buf *out,
		 struct err *e)
{
	cleanup_buf struct buf body = { 0 };
	if (s->closed)
		return err_set(e, ERR_GONE, "the session is closed");
	for (; *n < end && out->len < enough; (*n)++) {
		struct fact f;
		uint32_t i = as == TEXT_AUDIT ? *n : s->event[*n];
		buf_reset(&body);
		if (store_read(st->store, &s->rec[i], &body, e) < 0 ||
		    fact_parse(&f, buf_bytes(&body), e) < 0)
			return -1;
		if (as == TEXT_AUDIT) {
			if (put_line(out, &f, e) < 0)
				return -1;
		} else if (as == TEXT_STREAM) {
			hub_frame(out, f.seq, fact_event(f.type), f.data);
		} else {
			put_event(out, &f);
			if (*n + 1 < end)
				buf_add_byte(out, ',');
		}
	}
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}
