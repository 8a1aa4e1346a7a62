/* SPDX-License-Identifier: MIT */
#include "runner/record/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/clear.h"
#include "core/enc.h"
#include "runner/put.h"

#define HEX (2 * HASH_SIZE)
#define START "airlox/record/v1"

struct chain {
	int fd;
	uint8_t hash[HASH_SIZE];
	size_t bytes, left_out;
};

static const char *const words[PART_KINDS] = {
	[PART_RUN] = "run", [PART_TEXT] = "text", [PART_EGRESS] = "egress",
	[PART_TOOL] = "tool", [PART_SESSION] = "session",
	[PART_FILE] = "file", [PART_NOTICE] = "notice", [PART_END] = "end",
};

const char *part_word(enum part_kind kind) { return words[kind]; }

static int kind_parse(enum part_kind *kind, struct bytes word)
{
	for (int k = 0; k < PART_KINDS; k++) {
		if (bytes_eq(word, bytes_str(words[k]))) {
			*kind = (enum part_kind)k;
			return 0;
		}
	}
	return -1;
}

bool chain_is_run(struct bytes name)
{
	if (name.n < 1 || name.n > CHAIN_RUN)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		uint8_t c = name.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      c == '-'))
			return false;
	}
	return true;
}

static void hash_start(uint8_t hash[HASH_SIZE], struct bytes run)
{
	uint8_t in[sizeof START + CHAIN_RUN];
	memcpy(in, START, sizeof START);	/* with its NUL */
	memcpy(in + sizeof START, run.p, run.n);
	hash_sha256(hash, in, sizeof START + run.n);
}

static int hash_step(uint8_t hash[HASH_SIZE], struct bytes json)
{
	struct hash *h = hash_new();
	if (!h)
		return -1;
	hash_add(h, hash, HASH_SIZE);
	hash_add(h, json.p, json.n);
	hash_final(h, hash);
	hash_free(h);
	return 0;
}

struct chain *chain_new(int dir_fd, const char *file, const char *run,
			struct err *e)
{
	if (!chain_is_run(bytes_str(run))) {
		err_set(e, ERR_INVALID, "a run's name is letters a to z, "
			"digits and dashes");
		return NULL;
	}
	struct chain *c = calloc(1, sizeof *c);
	if (!c) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	c->fd = openat(dir_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_APPEND |
		       O_CLOEXEC | O_NOFOLLOW, 0600);
	if (c->fd < 0) {
		err_sys(e, "cannot make the record's file %s", file);
		free(c);
		return NULL;
	}
	hash_start(c->hash, bytes_str(run));
	return c;
}

static int add_line(struct chain *c, enum part_kind kind, int64_t at_ms,
		    struct bytes data, struct err *e)
{
	cleanup_buf struct buf json = { 0 }, line = { 0 };
	buf_add_str(&json, "{\"at_ms\":");
	json_put_int(&json, at_ms);
	buf_add_str(&json, ",\"data\":");
	buf_add(&json, data.p, data.n);
	buf_addf(&json, ",\"kind\":\"%s\"}", words[kind]);
	if (buf_failed(&json) || hash_step(c->hash, buf_bytes(&json)) < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	char hex[HEX + 1];
	enc_hex(hex, c->hash, HASH_SIZE);
	buf_addf(&line, "%s ", hex);
	buf_add(&line, json.data, json.len);
	buf_add_byte(&line, '\n');
	if (buf_failed(&line))
		return err_set(e, ERR_MEMORY, "out of memory");
	c->bytes += line.len;
	return put_whole(c->fd, buf_bytes(&line)) == 0 ? 0 :
		err_sys(e, "cannot write the record");
}

/* What did not fit is said where it would have stood last. */
static int say_left_out(struct chain *c, int64_t at_ms, struct err *e)
{
	cleanup_buf struct buf b = { 0 };
	buf_addf(&b, "{\"text\":\"%zu further parts are not in this record: "
		 "it would have been over %u MiB\"}", c->left_out,
		 CHAIN_BYTES_MAX >> 20);
	c->left_out = 0;
	return add_line(c, PART_NOTICE, at_ms, buf_bytes(&b), e);
}

int chain_add(struct chain *c, enum part_kind kind, int64_t at_ms,
	      struct bytes data, struct err *e)
{
	bool last = kind == PART_END;
	if (!last && (c->bytes + data.n > CHAIN_BYTES_MAX ||
		      data.n > CHAIN_LINE_MAX - 256)) {
		c->left_out++;
		return 0;
	}
	if (last && c->left_out && say_left_out(c, at_ms, e) < 0)
		return -1;
	return add_line(c, kind, at_ms, data, e);
}

int chain_say(struct chain *c, int64_t at_ms, const char *stream,
	      struct bytes text, struct err *e)
{
	cleanup_buf struct buf clean = { 0 }, b = { 0 };
	if (!clear_utf8(text)) {
		clear_escape(&clean, text);
		text = buf_bytes(&clean);
	}
	buf_addf(&b, "{\"stream\":\"%s\",\"text\":", stream);
	json_put_string(&b, text);
	buf_add_byte(&b, '}');
	if (buf_failed(&b) || buf_failed(&clean))
		return err_set(e, ERR_MEMORY, "out of memory");
	return chain_add(c, PART_TEXT, at_ms, buf_bytes(&b), e);
}

void chain_free(struct chain *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

/* --- going on with one --- */

static void count_parts(struct chain_walk *w, struct chain_left *left)
{
	struct part p;
	while (chain_next(w, &p, NULL) > 0) {
		if (left->parts++ == 0)
			left->first_ms = p.at_ms;
		left->last_ms = p.at_ms;
		left->egress += p.kind == PART_EGRESS;
		left->ended |= p.kind == PART_END;
		part_free(&p);
	}
	left->cut_bytes = w->rest.n;
}

static int read_all(int fd, struct buf *out, struct err *e)
{
	for (;;) {
		uint8_t *to = buf_room(out, 65536);
		ssize_t n = to ? read(fd, to, 65536) : -1;
		if (n < 0 && to && errno == EINTR)
			continue;
		if (n < 0 || out->len > CHAIN_BYTES_MAX + CHAIN_LINE_MAX)
			return err_sys(e, "cannot read the record");
		if (n == 0)
			return 0;
		out->len += (size_t)n;
	}
}

struct chain *chain_resume(int dir_fd, const char *file, const char *run,
			   struct chain_left *left, struct err *e)
{
	cleanup_buf struct buf lines = { 0 };
	struct chain_walk w;
	*left = (struct chain_left){ 0 };
	struct chain *c = calloc(1, sizeof *c);
	if (!c) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	c->fd = openat(dir_fd, file, O_RDWR | O_APPEND | O_CLOEXEC |
		       O_NOFOLLOW);
	if (c->fd < 0)
		err_sys(e, "cannot open the record's file %s", file);
	else if (read_all(c->fd, &lines, e) == 0) {
		chain_begin(&w, bytes_str(run), buf_bytes(&lines));
		count_parts(&w, left);
		memcpy(c->hash, w.hash, HASH_SIZE);
		c->bytes = lines.len - left->cut_bytes;
		if (ftruncate(c->fd, (off_t)c->bytes) == 0)
			return c;
		err_sys(e, "cannot write the record");
	}
	chain_free(c);
	return NULL;
}

/* --- reading --- */

void part_free(struct part *p)
{
	json_free(p->doc);
	p->doc = NULL;
}

void chain_begin(struct chain_walk *w, struct bytes run, struct bytes lines)
{
	*w = (struct chain_walk){ .rest = lines };
	hash_start(w->hash, run);
}

static int part_parse(struct part *p, struct bytes json, struct err *e)
{
	p->doc = json_parse(json, e);
	if (!p->doc)
		return -1;
	struct json_reader r;
	json_open(&r, p->doc, "part");
	p->at_ms = json_take_int(&r, "at_ms", 0, JSON_INT_MAX);
	p->data = json_take_object(&r, "data");
	struct bytes kind = json_take_string(&r, "kind");
	if (json_close(&r, e) < 0)
		return -1;
	if (p->data->type != JSON_OBJECT || kind_parse(&p->kind, kind) < 0)
		return err_set(e, ERR_INVALID, "of no known kind");
	return 0;
}

int chain_next(struct chain_walk *w, struct part *p, struct err *e)
{
	*p = (struct part){ .at = w->at + 1 };
	if (!w->rest.n)
		return 0;
	const uint8_t *end = memchr(w->rest.p, '\n', w->rest.n);
	size_t n = end ? (size_t)(end - w->rest.p) : 0;
	if (!end || n < HEX + 2 || w->rest.p[HEX] != ' ')
		return err_set(e, ERR_INVALID, "part %zu is cut off", p->at);
	struct bytes json = { w->rest.p + HEX + 1, n - HEX - 1 };
	uint8_t said[HASH_SIZE];
	if (hash_step(w->hash, json) < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	if (enc_hex_decode(said, sizeof said,
			   (struct bytes){ w->rest.p, HEX }) < 0 ||
	    memcmp(said, w->hash, HASH_SIZE) != 0)
		return err_set(e, ERR_SIGNATURE, "part %zu was changed, or one "
			       "before it was taken out or put in", p->at);
	struct err why = { 0 };
	if (part_parse(p, json, &why) < 0) {
		part_free(p);
		return err_set(e, ERR_INVALID, "part %zu is no part of a "
			       "record: %s", p->at, why.why);
	}
	w->at = p->at;
	w->rest.p += n + 1;
	w->rest.n -= n + 1;
	return 1;
}
