/* SPDX-License-Identifier: MIT
 *
 * jobfile: the small files of a job's directory in a queue. */
#ifndef AIRLOX_QUEUE_JOBFILE_H
#define AIRLOX_QUEUE_JOBFILE_H

#include "core/buf.h"
#include "core/err.h"

/* At most cap bytes; ERR_SIZE. */
int jobfile_read(int dir, const char *name, size_t cap, struct buf *to,
		 struct err *e);
/* All of it, replacing what was there; e->sys is the errno. */
int jobfile_write(int dir, const char *name, const char *text, struct err *e);
/* A verb in ctl; reason NULL: none.  Its newlines become spaces. */
int jobfile_verb(int dir, const char *verb, const char *reason,
		 struct err *e);

#endif
