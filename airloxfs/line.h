/* SPDX-License-Identifier: MIT
 *
 * line: a file of lines that blocks: a read waits for the next line, poll
 * works, the end of the session is end of file.  Each handle starts at the
 * first line of this mount and has a place of its own.
 *
 * A waiting reader is a kept request, not a thread. */
#ifndef AIRLOXFS_LINE_H
#define AIRLOXFS_LINE_H

#include "airloxfs/fs.h"
#include "core/host/vault.h"

struct line;

/* Takes over the vault that holds the lines; NULL: they are in memory. */
struct line *line_new(struct vault *v, struct err *e);
/* Adds text (whole lines) and wakes every reader. */
void line_append(struct mount *m, struct line *l, struct bytes text);
void line_end(struct mount *m, struct line *l);	/* EOF from here on */
/* In memory: this is all there is from here on, and the end. */
void line_set(struct mount *m, struct line *l, struct bytes text);
bool line_is_read(struct line *l);	/* somebody has it open */
/* After the end: waits until every reader has closed it, at most so long. */
void line_wait(struct line *l, int64_t wait_ms);
void line_free(struct line *l);

extern const struct node_ops line_ops;	/* node->data: the struct line */
/* For a node whose line is found otherwise: what line_ops is made of. */
int line_open_at(struct line *l, struct handle *h);
void line_release(struct mount *m, struct handle *h);
void line_read(struct mount *m, struct fuse_req *req, struct handle *h,
	       size_t n, uint64_t off);
bool line_poll(struct mount *m, struct handle *h, struct fuse_pollhandle *ph);

#endif
