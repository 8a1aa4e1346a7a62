/* SPDX-License-Identifier: MIT
 *
 * log: what happened, one line each: a growing file, encrypted on disk, kept
 * across mounts and cut to its last 8 MiB at each, and where it grows beyond
 * 32 MiB. */
#ifndef AIRLOXFS_LOG_H
#define AIRLOXFS_LOG_H

#include "airloxfs/fs.h"
#include "core/host/vault.h"

#define LOG_KEEP_BYTES (8u * 1024 * 1024)
#define LOG_MAX_BYTES (4 * LOG_KEEP_BYTES) /* then it is cut at once */

struct log;

struct log *log_new(struct vault *v, struct err *e);	/* takes the vault */
/* Cuts it to its last LOG_KEEP_BYTES, at a line. */
int log_cut(struct vault *v, struct err *e);
void log_append(struct mount *m, struct log *l, struct bytes text);
uint64_t log_size(struct log *l);
void log_free(struct log *l);	/* makes it durable first */

extern const struct node_ops log_ops;	/* node->data: the struct log */

#endif
