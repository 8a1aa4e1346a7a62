/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "airloxfs/fs.h"
#include "airloxfs/tree.h"
#include "core/prim.h"

/* Children: a list in order of cookie for readdir (binary search), and a hash
 * by name for lookup. */
struct dir {
	struct node **order;
	size_t n, cap;
	struct node **table;
	size_t slots;
	uint64_t cookie;	/* the newest given */
};

struct tree {
	struct node *root;
	struct node **inos;	/* by inode number */
	size_t slots, n;
	uint64_t base, next;	/* inode numbers: random high half, so that a
				 * number of ours is nobody else's (proc.h) */
};

static size_t hash_name(const char *s)
{
	size_t h = 1469598103934665603u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return h;
}

bool tree_is_dir(const struct node *n) { return S_ISDIR(n->mode); }
size_t tree_count(const struct node *dir) { return dir->dir->n; }
struct node *tree_last(const struct node *dir)
{
	return dir->dir->n ? dir->dir->order[dir->dir->n - 1] : NULL;
}

static int ino_insert(struct tree *t, struct node *n)
{
	if (t->n >= t->slots) {
		size_t slots = t->slots ? t->slots * 2 : 256;
		struct node **v = calloc(slots, sizeof *v);
		if (!v)
			return -1;
		for (size_t i = 0; i < t->slots; i++)
			for (struct node *k = t->inos[i], *next; k; k = next) {
				next = k->ino_next;
				k->ino_next = v[k->ino % slots];
				v[k->ino % slots] = k;
			}
		free(t->inos);
		t->inos = v;
		t->slots = slots;
	}
	n->ino_next = t->inos[n->ino % t->slots];
	t->inos[n->ino % t->slots] = n;
	t->n++;
	return 0;
}

static void ino_remove(struct tree *t, struct node *n)
{
	struct node **at = &t->inos[n->ino % t->slots];
	while (*at && *at != n)
		at = &(*at)->ino_next;
	if (*at) {
		*at = n->ino_next;
		t->n--;
	}
}

static void node_free(struct tree *t, struct node *n)
{
	if (!n)
		return;
	ino_remove(t, n);
	if (n->ops && n->ops->free)
		n->ops->free(n);
	if (n->dir) {
		free(n->dir->order);
		free(n->dir->table);
		free(n->dir);
	}
	free(n->name);
	free((char *)n->target);
	free(n);
}

static struct node *node_new(struct tree *t, const char *name, mode_t mode,
			     const struct node_ops *ops, void *data)
{
	struct node *n = calloc(1, sizeof *n);
	char *copy = strdup(name);
	struct dir *dir = S_ISDIR(mode) ? calloc(1, sizeof *dir) : NULL;
	if (!n || !copy || (S_ISDIR(mode) && !dir))
		goto fail;
	*n = (struct node){ .name = copy, .mode = mode, .dir = dir,
			    .uid = geteuid(), .gid = getegid() };
	n->ino = t->root ? t->base | t->next++ : 1;
	clock_gettime(CLOCK_REALTIME, &n->mtime);
	if (ino_insert(t, n) < 0)
		goto fail;
	n->ops = ops;
	n->data = data;
	return n;
fail:
	free(n);
	free(copy);
	free(dir);
	return NULL;
}

struct tree *tree_new(void)
{
	struct tree *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	uint32_t high;
	prim_random(&high, sizeof high);
	t->base = (uint64_t)(high | 0x10000000u) << 32;
	t->next = 2;
	t->root = node_new(t, "", S_IFDIR | 0700, NULL, NULL);
	if (!t->root) {
		free(t->inos);
		free(t);
		return NULL;
	}
	return t;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->slots; i++)
		while (t->inos[i])
			node_free(t, t->inos[i]);
	free(t->inos);
	free(t);
}

struct node *tree_root(struct tree *t) { return t->root; }

struct node *tree_by_ino(struct tree *t, uint64_t ino)
{
	struct node *n = t->inos[ino % t->slots];
	while (n && n->ino != ino)
		n = n->ino_next;
	return n;
}

static int dir_grow(struct dir *d)
{
	if (d->n < d->cap)
		return 0;
	size_t cap = d->cap ? d->cap * 2 : 16;
	struct node **order = realloc(d->order, cap * sizeof *order);
	if (!order)
		return -1;
	d->order = order;
	struct node **table = calloc(cap * 2, sizeof *table);
	if (!table)
		return -1;
	for (size_t i = 0; i < d->n; i++) {
		struct node *n = d->order[i];
		size_t slot = hash_name(n->name) % (cap * 2);
		n->hash_next = table[slot];
		table[slot] = n;
	}
	free(d->table);
	d->table = table;
	d->slots = cap * 2;
	d->cap = cap;
	return 0;
}

static int dir_insert(struct node *dir, struct node *n)
{
	struct dir *d = dir->dir;
	if (dir_grow(d) < 0)
		return -1;
	size_t slot = hash_name(n->name) % d->slots;
	n->hash_next = d->table[slot];
	d->table[slot] = n;
	n->cookie = ++d->cookie;
	d->order[d->n++] = n;
	n->parent = dir;
	return 0;
}

/* Index of the first child whose cookie is at least `cookie`. */
static size_t dir_seek(const struct dir *d, uint64_t cookie)
{
	size_t low = 0, high = d->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (d->order[mid]->cookie < cookie)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void dir_remove(struct node *n)
{
	struct dir *d = n->parent->dir;
	struct node **at = &d->table[hash_name(n->name) % d->slots];
	while (*at != n)
		at = &(*at)->hash_next;
	*at = n->hash_next;
	size_t i = dir_seek(d, n->cookie);
	memmove(d->order + i, d->order + i + 1,
		(d->n - i - 1) * sizeof *d->order);
	d->n--;
	n->parent = NULL;
}

struct node *tree_find(const struct node *dir, const char *name)
{
	const struct dir *d = dir->dir;
	if (!d || !d->slots)
		return NULL;
	struct node *n = d->table[hash_name(name) % d->slots];
	while (n && strcmp(n->name, name) != 0)
		n = n->hash_next;
	return n;
}

struct node *tree_add(struct tree *t, struct node *dir, const char *name,
		      mode_t mode, const struct node_ops *ops, void *data)
{
	if (tree_find(dir, name))
		return NULL;
	struct node *n = node_new(t, name, mode, ops, data);
	if (n && dir_insert(dir, n) < 0) {
		n->data = NULL;
		n->ops = NULL;
		node_free(t, n);
		n = NULL;
	}
	return n;
}

void tree_unlink(struct tree *t, struct node *n)
{
	if (n->parent)
		dir_remove(n);
	tree_settle(t, n);
}

int tree_rename(struct tree *t, struct node *n, struct node *dir,
		const char *name)
{
	(void)t;
	char *copy = strdup(name);
	if (!copy || dir_grow(dir->dir) < 0) {
		free(copy);
		return -1;
	}
	dir_remove(n);
	free(n->name);
	n->name = copy;
	return dir_insert(dir, n);
}

void tree_settle(struct tree *t, struct node *n)
{
	if (!n->parent && !n->lookups && !n->opens && n != t->root)
		node_free(t, n);
}

void tree_drop(struct tree *t, struct node *n)
{
	n->opens--;
	tree_settle(t, n);
}

struct node *tree_next(const struct node *dir, uint64_t after)
{
	const struct dir *d = dir->dir;
	for (size_t i = dir_seek(d, after + 1); i < d->n; i++)
		if (!d->order[i]->hidden)
			return d->order[i];
	return NULL;
}
