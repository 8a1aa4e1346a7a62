/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "core/clear.h"
#include "core/name.h"

#define KEPT_EXT_BYTES 16

/* Section 6, File names: narrower than what display text forbids. */
static bool is_invisible(uint32_t c)
{
	return c == 0xad || c == 0x61c || c == 0x180e ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x2064) || (c >= 0x2066 && c <= 0x206f) ||
	       c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || c == 0xe0001 ||
	       (c >= 0xe0020 && c <= 0xe007f);
}

static int check_char(uint32_t c, struct err *e)
{
	if (c == UINT32_MAX)
		return err_set(e, ERR_NAME, "the name is not valid UTF-8");
	if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
		return err_set(e, ERR_NAME,
			       "the name has a control character (U+%04X)", c);
	if (c == '/' || c == '\\' || c == ':')
		return err_set(e, ERR_NAME,
			       "the name has a '%c', which no file name may "
			       "have", (int)c);
	if (is_invisible(c))
		return err_set(e, ERR_NAME,
			       "the name has an invisible character (U+%04X)",
			       c);
	return 0;
}

/* The part before the first dot, without white space of any kind at its end. */
static size_t stem_length(struct bytes name)
{
	size_t n = 0;

	for (size_t at = 0; at < name.n && name.p[at] != '.';)
		if (!clear_white(clear_next(name, &at)))
			n = at;
	return n;
}

/* Windows reads con.md, "NUL .txt" and Com1 as devices. */
static bool is_device(struct bytes name)
{
	static const char *const words[] = { "con", "prn", "aux", "nul" };
	size_t n = stem_length(name);
	const char *s = (const char *)name.p;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (n == 3 && strncasecmp(s, words[i], 3) == 0)
			return true;
	return n == 4 && s[3] >= '0' && s[3] <= '9' &&
	       (strncasecmp(s, "com", 3) == 0 ||
		strncasecmp(s, "lpt", 3) == 0);
}

/* What holds for a file's name and for each part of a path. */
static int check_part(struct bytes name, struct err *e)
{
	if (name.n == 0)
		return err_set(e, ERR_NAME, "the name is empty");
	if (name.n > NAME_MAX_BYTES)
		return err_set(e, ERR_NAME, "the name is longer than %d bytes",
			       NAME_MAX_BYTES);
	for (size_t at = 0; at < name.n;)
		if (check_char(clear_next(name, &at), e))
			return -1;
	if (name.p[name.n - 1] == '.' || name.p[name.n - 1] == ' ')
		return err_set(e, ERR_NAME,
			       "the name ends in a dot or a space");
	if (is_device(name))
		return err_set(e, ERR_NAME,
			       "the name is one of a Windows device");
	return 0;
}

int name_check(struct bytes name, struct err *e)
{
	if (name.n && name.p[0] == '.')
		return err_set(e, ERR_NAME, "the name begins with a dot");
	return check_part(name, e);
}

int name_check_entry(struct bytes path, struct err *e)
{
	size_t parts = 0, from = 0;

	if (path.n == 0)
		return err_set(e, ERR_NAME, "the path is empty");
	if (path.n > NAME_PATH_BYTES)
		return err_set(e, ERR_NAME, "the path is longer than %d bytes",
			       NAME_PATH_BYTES);
	for (size_t i = 0; i <= path.n; i++) {
		if (i < path.n && path.p[i] != '/')
			continue;
		if (++parts > NAME_PATH_PARTS)
			return err_set(e, ERR_NAME,
				       "the path has more than %d parts",
				       NAME_PATH_PARTS);
		struct bytes part = { path.p + from, i - from };
		if (part.n == 0)
			return err_set(e, ERR_NAME,
				       "the path has an empty part");
		if (check_part(part, e))
			return -1;
		from = i + 1;
	}
	return 0;
}

size_t name_ext(struct bytes name)
{
	for (size_t i = name.n; i > 1; i--)
		if (name.p[i - 1] == '.')
			return i - 1;
	return name.n;
}

static bool is_safe(uint32_t c)
{
	if (c < 0x80)
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		       (c >= '0' && c <= '9') ||
		       (c && strchr("._-,=@%~", (int)c));
	return c != UINT32_MAX && !clear_hidden(c) && !clear_white(c);
}

void name_reduce(struct buf *out, struct bytes s, size_t max_bytes)
{
	cleanup_buf struct buf all = { 0 };

	for (size_t at = 0; at < s.n;) {
		size_t from = at;
		uint32_t c = clear_next(s, &at);
		bool lead = from == 0 && (c == '.' || c == '-' || c == '~');
		if (is_safe(c) && !lead)
			buf_add(&all, s.p + from, at - from);
		else
			buf_add_byte(&all, '_');
	}
	if (all.len == 0)
		buf_add_byte(&all, '_');
	if (all.failed) {
		out->failed = true;
		return;
	}
	struct bytes name = buf_bytes(&all);
	if (name.n > max_bytes) {
		size_t ext = name_ext(name);
		if (name.n - ext > KEPT_EXT_BYTES)
			ext = name.n;
		size_t stem = clear_cut((struct bytes){ name.p, ext },
				  max_bytes - (name.n - ext));
		buf_add(out, name.p, stem);
		buf_add(out, name.p + ext, name.n - ext);
	} else {
		buf_add(out, name.p, name.n);
	}
}

void name_author(struct buf *out, const char *author_shown)
{
	const char *plus = strrchr(author_shown, '+');
	size_t n = plus ? (size_t)(plus - author_shown) : strlen(author_shown);
	size_t from = out->len;

	name_reduce(out, (struct bytes){ (const uint8_t *)author_shown, n },
		    NAME_AUTHOR_BYTES);
	if (plus) {
		buf_add_byte(out, '+');
		name_reduce(out, bytes_str(plus + 1), 32);
	}
	for (size_t i = from; !out->failed && i < out->len; i++)
		if (out->data[i] == '-')
			out->data[i] = '_';
}

void name_in(struct buf *out, uint64_t seq, const char *author_shown,
	     struct bytes name)
{
	size_t from = out->len;

	buf_addf(out, "%06" PRIu64 "-", seq);
	name_author(out, author_shown);
	if (name.n == 0) {
		buf_add_str(out, ".txt");
		return;
	}
	buf_add_byte(out, '-');
	if (!out->failed)
		name_reduce(out, name, NAME_MAX_BYTES - (out->len - from));
}
