/* SPDX-License-Identifier: MIT
 *
 * store's inside: what store.c (writing, reading, dropping) and store_load.c
 * (the start) share.  Nobody else includes it. */
#ifndef RELAY_STORE_PARTS_H
#define RELAY_STORE_PARTS_H

#include <pthread.h>

#include "relay/store.h"

#define STORE_MAGIC 0x41584c52u
#define STORE_VERSION 1
#define HEAD_N 32u		/* of a record */
#define SEG_HEAD_N 24u		/* of a segment */
#define SEG_MARK_N 12u
#define SEG_CRC_AT 16u
#define SEG_NAME 16
#define HEAD_TYPE_AT 5u		/* in a record's head */
#define HEAD_BODY_AT 8u
#define HEAD_BLOB_AT 12u
#define HEAD_CRC_AT 28u
#define STORE_NEW "compacted"	/* before it takes a segment's name */

extern const uint8_t store_mark[SEG_MARK_N];

struct segment {
	uint32_t number, nonce;
	int fd;
	uint32_t size, live;	/* bytes; records not dropped */
	uint32_t dead;		/* bytes of records that were */
	uint32_t gen;
	uint64_t ahead;		/* reserved up to here */
};

struct store {
	int dirfd;		/* DIR/log, or -1 */
	pthread_mutex_t lock;	/* the table of segments */
	struct segment *seg;	/* by number, rising */
	size_t seg_n, seg_cap;
	struct buf batch;
	bool look;		/* only reading */
	bool torn;		/* a failed write is still to be cut off */
};

static inline uint32_t store_padded(uint32_t n) { return (n + 7u) & ~7u; }
uint32_t store_crc(const uint8_t *p, size_t n);
uint32_t store_record_size(uint32_t body_n, uint32_t blob_n);
void store_segment_name(char name[SEG_NAME], uint32_t number);
/* A fresh head: mark, nonce, crc, zeros. */
int store_write_head(int fd);
/* fd belongs to the table from here on, unless it fails. */
int store_push_segment(struct store *st, uint32_t number, int fd,
		       uint32_t size, struct err *e);
int store_write_all(int fd, const uint8_t *p, size_t n, off_t at);
int store_read_all(int fd, uint8_t *p, size_t n, off_t at);

#endif
