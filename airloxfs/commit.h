/* SPDX-License-Identifier: MIT
 *
 * commit: when a write is a message.
 *
 *   A FLUSH with unsent bytes looks for another descriptor of the file, in
 *   the flusher and in the opener; a flusher that is exiting, or an opener
 *   that is gone, makes it look at every process of the user.  If there is
 *   one, the next flush decides; if not, the draft is committed now.
 *   A draft whose writer was killed, or whose write failed, is poisoned: no
 *   close sends it.
 *   Names of drafts and files made as mkstemp makes them are sent by a
 *   rename.  Empty files are not sent. */
#ifndef AIRLOXFS_COMMIT_H
#define AIRLOXFS_COMMIT_H

#include "airloxfs/out.h"

enum commit { COMMIT_NOT, COMMIT_NOW, COMMIT_FAILED };

/* Called with f->lock.  COMMIT_FAILED: f->write_errno. */
enum commit commit_decide(struct outgoing *f, uint64_t ino, const char *name,
			  pid_t tid);
/* A process wrote to the draft. */
void commit_wrote(struct outgoing *f, pid_t tid);

#endif
