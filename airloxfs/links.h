/* SPDX-License-Identifier: MIT
 *
 * links: an owner's invite links, printed: they are secrets, and this is the
 * one room that writes them out. */
#ifndef AIRLOX_MOUNT_LINKS_H
#define AIRLOX_MOUNT_LINKS_H

#include "core/invite.h"
#include "core/manifest.h"

/* owner_file: where the owner's link was written instead; NULL prints it. */
int links_print(const struct invite *owner, const struct manifest *m,
		const char *owner_file, bool json, struct err *e);

#endif
