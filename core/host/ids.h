/* SPDX-License-Identifier: MIT
 *
 * ids: a set of item ids. */
#ifndef AIRLOX_HOST_IDS_H
#define AIRLOX_HOST_IDS_H

#include <stdbool.h>

struct ids;

struct ids *ids_new(void);
/* True if it is new and was added; false if it is there, is no item id, or
 * memory is short. */
bool ids_add(struct ids *s, const char *item_id);
bool ids_has(const struct ids *s, const char *item_id);
void ids_free(struct ids *s);

#endif
