/* SPDX-License-Identifier: MIT
 *
 * Eugene Myers, An O(ND) Difference Algorithm (1986): the furthest points of
 * each number of edits, kept to find the way back. */
#include "runner/record/diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT 3
#define EDITS 600		/* most of them that are searched for */
#define LINES 100000

struct side {
	struct bytes *line;	/* each with its newline, if it has one */
	bool *edit;		/* taken out, or put in */
	size_t n;
};

static int split(struct side *s, struct bytes text)
{
	size_t n = 0;
	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	n += text.n && text.p[text.n - 1] != '\n';
	s->line = calloc(n + 1, sizeof *s->line);
	s->edit = calloc(n + 1, sizeof *s->edit);
	if (!s->line || !s->edit)
		return -1;
	while (text.n) {
		const uint8_t *lf = memchr(text.p, '\n', text.n);
		size_t len = lf ? (size_t)(lf - text.p) + 1 : text.n;
		s->line[s->n++] = (struct bytes){ text.p, len };
		text.p += len;
		text.n -= len;
	}
	return 0;
}

static bool same(const struct side *a, size_t i, const struct side *b,
		 size_t j)
{
	return bytes_eq(a->line[i], b->line[j]);
}

/* Without what is the same at both ends. */
struct middle {
	const struct side *a, *b;
	size_t from, a_n, b_n;
};

static bool same_at(const struct middle *m, int x, int y)
{
	return same(m->a, m->from + (size_t)x, m->b, m->from + (size_t)y);
}

/* v[k] for k of -d..d stands at row[d * d + d + k]: the rows of all d before
 * it have d * d places. */
static int *place(int *rows, int d, int k)
{
	return rows + d * d + d + k;
}

static int step(const struct middle *m, int *rows, int d, int k)
{
	int x;
	if (d == 0)
		x = 0;
	else if (k == -d || (k != d && *place(rows, d - 1, k - 1) <
				       *place(rows, d - 1, k + 1)))
		x = *place(rows, d - 1, k + 1);
	else
		x = *place(rows, d - 1, k - 1) + 1;
	while (x < (int)m->a_n && x - k < (int)m->b_n && x - k >= 0 &&
	       same_at(m, x, x - k))
		x++;
	return x;
}

/* How many edits lead from one to the other, or -1: too many. */
static int search(const struct middle *m, int *rows)
{
	int most = m->a_n + m->b_n < EDITS ? (int)(m->a_n + m->b_n) : EDITS;
	for (int d = 0; d <= most; d++) {
		for (int k = -d; k <= d; k++)
			*place(rows, d, k) = INT32_MIN / 2;
		for (int k = -d; k <= d; k += 2) {
			int x = step(m, rows, d, k);
			*place(rows, d, k) = x;
			if (x >= (int)m->a_n && x - k >= (int)m->b_n)
				return d;
		}
	}
	return -1;
}

static void go_back(struct side *a, struct side *b, const struct middle *m,
		    int *rows, int d)
{
	int x = (int)m->a_n, y = (int)m->b_n;
	for (; d > 0; d--) {
		int k = x - y;
		bool down = k == -d || (k != d &&
			*place(rows, d - 1, k - 1) <
			*place(rows, d - 1, k + 1));
		int from = down ? k + 1 : k - 1;
		x = *place(rows, d - 1, from);
		y = x - from;
		if (down)
			b->edit[m->from + (size_t)y] = true;
		else
			a->edit[m->from + (size_t)x] = true;
	}
}

static void mark(struct side *a, struct side *b)
{
	struct middle m = { a, b, 0, a->n, b->n };
	while (m.from < a->n && m.from < b->n && same(a, m.from, b, m.from))
		m.from++;
	m.a_n -= m.from;
	m.b_n -= m.from;
	while (m.a_n && m.b_n && same(a, m.from + m.a_n - 1, b,
				      m.from + m.b_n - 1))
		m.a_n--, m.b_n--;
	size_t most = m.a_n + m.b_n < EDITS ? m.a_n + m.b_n : EDITS;
	int *rows = m.a_n + m.b_n > LINES ? NULL :
		    malloc((most + 1) * (most + 1) * sizeof *rows);
	int d = rows ? search(&m, rows) : -1;
	if (d >= 0)
		go_back(a, b, &m, rows, d);
	for (size_t i = 0; d < 0 && i < m.a_n; i++)
		a->edit[m.from + i] = true;
	for (size_t i = 0; d < 0 && i < m.b_n; i++)
		b->edit[m.from + i] = true;
	free(rows);
}

/* --- writing it ----------------------------------------------------------- */

static void put_line(struct buf *out, char sign, struct bytes line)
{
	buf_add_byte(out, (uint8_t)sign);
	buf_add(out, line.p, line.n);
	if (!line.n || line.p[line.n - 1] != '\n')
		buf_add_str(out, "\n\\ no newline at the end\n");
}

/* The next edit at or after i and j, which stand at the same place. */
static bool seek(const struct side *a, const struct side *b, size_t *i,
		 size_t *j)
{
	while (*i < a->n && *j < b->n && !a->edit[*i] && !b->edit[*j])
		++*i, ++*j;
	return *i < a->n || *j < b->n;
}

static void skip_edits(const struct side *a, const struct side *b, size_t *i,
		       size_t *j)
{
	while (*i < a->n && a->edit[*i])
		++*i;
	while (*j < b->n && b->edit[*j])
		++*j;
}

static void put_hunk(struct buf *out, const struct side *a,
		     const struct side *b, size_t i, size_t j, size_t i_end,
		     size_t j_end)
{
	buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", i + (i < i_end), i_end - i,
		 j + (j < j_end), j_end - j);
	while (i < i_end || j < j_end) {
		if (i < i_end && a->edit[i])
			put_line(out, '-', a->line[i++]);
		else if (j < j_end && b->edit[j])
			put_line(out, '+', b->line[j++]);
		else
			put_line(out, ' ', a->line[i]), i++, j++;
	}
}

/* Edits with few lines between them are one hunk. */
static void put_hunks(struct buf *out, const struct side *a,
		      const struct side *b)
{
	size_t i = 0, j = 0;
	while (seek(a, b, &i, &j)) {
		size_t before = i < CONTEXT ? i : CONTEXT;
		size_t i0 = i - before, j0 = j - before, x, y;
		for (;;) {
			skip_edits(a, b, &i, &j);
			x = i, y = j;
			if (!seek(a, b, &x, &y) || x - i > 2 * CONTEXT)
				break;
			i = x, j = y;
		}
		size_t after = a->n - i < CONTEXT ? a->n - i : CONTEXT;
		put_hunk(out, a, b, i0, j0, i + after, j + after);
	}
}

/* Cut at the end of a line. */
static void put_most(struct buf *out, const struct buf *all, size_t max)
{
	size_t n = all->len < max ? all->len : max;
	while (n < all->len && n > 0 && all->data[n - 1] != '\n')
		n--;
	buf_add(out, all->data, n);
	if (n < all->len)
		buf_addf(out, "\\ %zu bytes more\n", all->len - n);
	out->failed |= all->failed;
}

void diff_put(struct buf *out, struct bytes was, struct bytes is, size_t max)
{
	struct side a = { 0 }, b = { 0 };
	cleanup_buf struct buf all = { 0 };
	if (split(&a, was) < 0 || split(&b, is) < 0) {
		out->failed = true;
	} else {
		mark(&a, &b);
		put_hunks(&all, &a, &b);
		put_most(out, &all, max);
	}
	free(a.line);
	free(a.edit);
	free(b.line);
	free(b.edit);
}
