/* SPDX-License-Identifier: MIT
 *
 * aim: which runner a job is for, as its sender tells the relay in
 * Airlox-Target.  The relay cannot read what the job itself says of it; a
 * runner can, and refuses a job that names another. */
#ifndef RELAY_AIM_H
#define RELAY_AIM_H

#include "core/cert.h"

enum aim_kind { AIM_ANY, AIM_LABELS, AIM_RUNNER };

struct aim {
	enum aim_kind kind;
	char label[LABELS_MAX][LABEL_MAX + 1];	/* all of them */
	size_t label_n;				/* 1..16 */
	char name[LABEL_MAX + 1];
	uint8_t pub[PRIM_PUB];
};

/* Exactly the members of its type, each well formed.  ERR_INVALID. */
int aim_parse(struct aim *t, struct bytes in, struct err *e);

#endif
