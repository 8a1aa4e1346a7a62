/* SPDX-License-Identifier: MIT
 *
 * vault_parts: what vault.c (headers, open, sync) and vault_data.c (sectors,
 * read, write) share; nobody else includes it. */
#ifndef AIRLOX_VAULT_PARTS_H
#define AIRLOX_VAULT_PARTS_H

#include "core/aead.h"
#include "core/host/vault.h"

#define VAULT_SECTOR ((uint64_t)AEAD_SECTOR)
#define VAULT_SLOTS 2
#define VAULT_BYTES_MAX ((uint64_t)1 << 53)

struct vault {
	int fd;
	int dir;		/* -1 when the file's name is durable */
	char id[VAULT_ID_MAX + 1];
	uint8_t head_key[AEAD_KEY];
	struct aead_xts *xts;
	uint8_t *batch;		/* ciphertext on its way out, or NULL */
	uint64_t size;		/* bytes */
	uint64_t sectors;	/* the file's, holes counted */
	bool stale_tail;
	struct buf record;
	uint64_t generation;
	bool head_stale;	/* size or record are newer than any header */
	int kept, last;		/* slots: to keep, last written; -1: none */
	bool kept_durable;
};

static inline uint64_t vault_sectors_of(uint64_t bytes)
{
	return (bytes + VAULT_SECTOR - 1) / VAULT_SECTOR;
}

/* Where a sector is in the file. */
static inline uint64_t vault_place(uint64_t sector)
{
	return (VAULT_SLOTS + sector) * VAULT_SECTOR;
}

/* Resizes the file to this many sectors. */
int vault_set_length(struct vault *v, uint64_t sectors, struct err *e);

#endif
