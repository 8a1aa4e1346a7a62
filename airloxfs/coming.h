/* SPDX-License-Identifier: MIT
 *
 * coming: a large item is decrypted and described by a second thread while it
 * still streams in.  What the thread finds stands only if the first one says
 * in the end that length and signature are right. */
#ifndef AIRLOXFS_COMING_H
#define AIRLOXFS_COMING_H

#include "airloxfs/in.h"

/* peer_fetch and in_verify in one: the blob's descriptor, or -1.  Where it
 * came in and was verified, *fresh is what in_verify gives, or NULL and why it
 * is to be refused; *verified says that in_verify's word was had at all. */
int coming_fetch(struct mount *m, struct wire *w, struct incoming *inc,
		 struct in_new **fresh, bool *verified, struct err *e);

#endif
