/* SPDX-License-Identifier: MIT */
#include <uninorm.h>
#include <unicase.h>

#include "core/clear.h"
#include "core/name.h"

struct range {
	uint32_t from, to;
};

#define IN(table, c) in_ranges(table, sizeof table / sizeof *table, c)

static bool in_ranges(const struct range *r, size_t n, uint32_t c)
{
	for (size_t i = 0; i < n; i++)
		if (c >= r[i].from && c <= r[i].to)
			return true;
	return false;
}

/* Section 5: never in display text. */
static const struct range forbidden[] = {
	{ 0x00, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x115f, 0x1160 },
	{ 0x17b4, 0x17b5 }, { 0x180e, 0x180f }, { 0x200b, 0x200b },
	{ 0x2028, 0x202e }, { 0x2060, 0x2064 }, { 0x2066, 0x206f },
	{ 0x2800, 0x2800 }, { 0x3164, 0x3164 }, { 0xe000, 0xf8ff },
	{ 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff9, 0xfffc },
	{ 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe007f }, { 0xe0100, 0xe01ef }, { 0xf0000, 0x10ffff },
};

/* Unicode's White_Space, which is not the C library's. */
static const struct range white[] = {
	{ 0x09, 0x0d }, { 0x20, 0x20 }, { 0x85, 0x85 }, { 0xa0, 0xa0 },
	{ 0x1680, 0x1680 }, { 0x2000, 0x200a }, { 0x2028, 0x2029 },
	{ 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x3000, 0x3000 },
};

static const struct range joiners[] = { { 0x200c, 0x200d } };

static const struct range selectors[] = {
	{ 0x34f, 0x34f }, { 0x180b, 0x180d }, { 0xfe00, 0xfe0f },
};

/* Beyond the forbidden: what moves or hides text where it is allowed. */
static const struct range hidden[] = {
	{ 0x61c, 0x61c }, { 0x200c, 0x200f }, { 0x2065, 0x2065 },
	{ 0xfdd0, 0xfdef }, { 0xfff0, 0xfff8 }, { 0xfffe, 0xffff },
	{ 0xe0080, 0xe0fff },
};

uint32_t clear_next(struct bytes s, size_t *at)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	size_t i = *at;
	uint8_t b = s.p[i];
	size_t more = b < 0x80 ? 0 : b < 0xc2 ? 4 : b < 0xe0 ? 1 :
		      b < 0xf0 ? 2 : b < 0xf5 ? 3 : 4;

	*at = i + 1;
	if (more == 0)
		return b;
	if (more == 4 || s.n - i - 1 < more)
		return UINT32_MAX;
	uint32_t c = b & (0x3fu >> more);
	for (size_t k = 1; k <= more; k++) {
		if ((s.p[i + k] & 0xc0) != 0x80)
			return UINT32_MAX;
		c = c << 6 | (s.p[i + k] & 0x3fu);
	}
	if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return UINT32_MAX;
	*at = i + 1 + more;
	return c;
}

void clear_put(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_add_byte(out, (uint8_t)c);
		return;
	}
	if (c < 0x800) {
		buf_add_byte(out, (uint8_t)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_add_byte(out, (uint8_t)(0xe0 | c >> 12));
		} else {
			buf_add_byte(out, (uint8_t)(0xf0 | (c >> 18 & 7)));
			buf_add_byte(out, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_add_byte(out, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
	}
	buf_add_byte(out, (uint8_t)(0x80 | (c & 0x3f)));
}

bool clear_utf8(struct bytes s)
{
	for (size_t at = 0; at < s.n;)
		if (clear_next(s, &at) == UINT32_MAX)
			return false;
	return true;
}

size_t clear_count(struct bytes s)
{
	size_t n = 0;

	for (size_t at = 0; at < s.n; n++)
		clear_next(s, &at);
	return n;
}

size_t clear_cut(struct bytes s, size_t max)
{
	size_t at = 0, end = 0;

	while (at < s.n && at <= max) {
		end = at;
		clear_next(s, &at);
	}
	return at <= max ? at : end;
}

bool clear_white(uint32_t c) { return IN(white, c); }

bool clear_hidden(uint32_t c)
{
	return c > 0x10ffff || IN(forbidden, c) || IN(joiners, c) ||
	       IN(selectors, c) || IN(hidden, c);
}

enum place { NOTHING, VISIBLE, SELECTOR, JOINER, WHITE };

static enum place place_of(uint32_t c)
{
	return IN(white, c) ? WHITE : IN(joiners, c) ? JOINER :
	       IN(selectors, c) ? SELECTOR : VISIBLE;
}

/* Whether a character of this kind may follow one of that kind. */
static bool may_follow(enum place before, enum place now)
{
	switch (now) {
	case JOINER:
		return before == VISIBLE || before == SELECTOR;
	case SELECTOR:
		return before == VISIBLE;
	case WHITE:
		return before == VISIBLE || before == SELECTOR ||
		       before == WHITE;
	case VISIBLE:
	case NOTHING:
		break;
	}
	return true;
}

static int check_char(uint32_t c, enum place *before, const char *what,
		      struct err *e)
{
	if (c == UINT32_MAX)
		return err_set(e, ERR_INVALID, "%s is not valid UTF-8", what);
	if (IN(forbidden, c))
		return err_set(e, ERR_INVALID,
			       "%s has a control or invisible character "
			       "(U+%04X)", what, c);
	enum place now = place_of(c);
	if (now == WHITE && *before == NOTHING)
		return err_set(e, ERR_INVALID, "%s begins with a space", what);
	if (!may_follow(*before, now))
		return err_set(e, ERR_INVALID,
			       "%s has a joiner or selector out of place",
			       what);
	*before = now;
	return 0;
}

int clear_check(struct bytes s, size_t max_chars, const char *what,
		struct err *e)
{
	enum place before = NOTHING;
	size_t n = 0;

	for (size_t at = 0; at < s.n; n++)
		if (check_char(clear_next(s, &at), &before, what, e))
			return -1;
	if (n == 0 || n > max_chars)
		return err_set(e, ERR_INVALID,
			       "%s must have 1 to %zu characters", what,
			       max_chars);
	if (before == WHITE)
		return err_set(e, ERR_INVALID, "%s ends with a space", what);
	if (before == JOINER)
		return err_set(e, ERR_INVALID, "%s ends with a joiner", what);
	return 0;
}

void clear_escape(struct buf *out, struct bytes s)
{
	for (size_t at = 0; at < s.n;) {
		size_t from = at;
		uint32_t c = clear_next(s, &at);

		if (c == UINT32_MAX)
			buf_addf(out, "\\x%02X", s.p[from]);
		else if (c == '\n')
			buf_add_str(out, "\\n");
		else if (c == '\t')
			buf_add_str(out, "\\t");
		else if (c == '\r')
			buf_add_str(out, "\\r");
		else if (c == '\\')
			buf_add_str(out, "\\\\");
		else if (c < 0x20 || c == 0x7f)
			buf_addf(out, "\\x%02X", c);
		else if (clear_hidden(c))
			buf_addf(out, "\\u{%X}", c);
		else
			buf_add(out, s.p + from, at - from);
	}
}

/* The shown name first, so that names shown alike are alike. */
void clear_fold(struct buf *out, struct bytes s)
{
	cleanup_buf struct buf shown = { 0 };
	name_reduce(&shown, s, NAME_AUTHOR_BYTES);
	size_t n = 0;
	cleanup_free uint8_t *folded = shown.failed ? NULL :
		u8_casefold(shown.data, shown.len, NULL, UNINORM_NFKC,
			    NULL, &n);
	if (!folded) {
		out->failed = true;
		return;
	}
	size_t from = out->len;
	name_reduce(out, (struct bytes){ folded, n }, SIZE_MAX / 4);
	if (out->failed)
		return;
	/* name_in shows a dash in an author's name as `_` */
	for (size_t i = from; i < out->len; i++)
		if (out->data[i] == '-')
			out->data[i] = '_';
}
