/* SPDX-License-Identifier: MIT
 *
 * show: an item on stdout, as a line of text or of JSON, and its file into a
 * directory. */
#ifndef AIRLOX_MOUNT_SHOW_H
#define AIRLOX_MOUNT_SHOW_H

#include "airloxfs/feed.h"

struct show {
	bool json;
	int save_dir;		/* -1: nothing is saved */
	const char *save_path;	/* of save_dir, for what is printed */
};

/* A directory for --save, created where missing; NULL path: none. */
int show_open(struct show *s, const char *path, bool json, struct err *e);
void show_close(struct show *s);
/* For struct feed; arg is a struct show. */
int show_item(void *arg, const struct shown *item, struct err *e);

#endif
