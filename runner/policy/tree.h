/* SPDX-License-Identifier: MIT
 *
 * tree: YAML as a tree of texts, lists and maps that know their lines.  The
 * one room for libyaml.  What a policy has no need of is refused: anchors and
 * aliases, tags, a second document, keys that are not plain texts, a key
 * twice, tabs; and all is bounded. */
#ifndef RUNNER_POLICY_TREE_H
#define RUNNER_POLICY_TREE_H

#include "core/buf.h"
#include "core/err.h"

#define TREE_BYTES_MAX (256u * 1024)
#define TREE_NODES_MAX 8192u
#define TREE_DEPTH_MAX 8u

enum tree_type { TREE_TEXT, TREE_LIST, TREE_MAP };

struct tree {
	enum tree_type type;
	unsigned line;		/* from 1 */
	char *key;		/* in a map, else NULL */
	char *text;		/* TREE_TEXT: UTF-8 without control bytes */
	struct tree *child, *next;
	size_t count;		/* of children */
};

/* NULL with e filled: the sentence begins with "line N: ". */
struct tree *tree_read(struct bytes in, struct err *e);
void tree_free(struct tree *t);

#endif
