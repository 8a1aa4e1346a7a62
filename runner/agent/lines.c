/* SPDX-License-Identifier: MIT */
#include "runner/agent/lines.h"

#include <string.h>

int lines_add(struct lines *l, struct bytes in)
{
	if (l->from) {
		buf_consume(&l->have, l->from);
		l->seen -= l->from;
		l->from = 0;
	}
	buf_add(&l->have, in.p, in.n);
	if (buf_failed(&l->have))
		return -1;
	/* longer than a line may be, and no end in it */
	return l->have.len > LINES_MAX &&
	       !memchr(l->have.data, '\n', LINES_MAX + 1) ? -1 : 0;
}

bool lines_next(struct lines *l, struct bytes *line)
{
	size_t left = l->have.len - l->seen;
	const uint8_t *lf = left ? memchr(l->have.data + l->seen, '\n', left) :
				   NULL;
	if (!lf) {
		l->seen = l->have.len;
		return false;
	}
	*line = (struct bytes){ l->have.data + l->from,
				(size_t)(lf - l->have.data) - l->from };
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	l->from = l->seen = (size_t)(lf - l->have.data) + 1;
	return true;
}

void lines_free(struct lines *l)
{
	buf_free(&l->have);
	*l = (struct lines){ 0 };
}
