/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/enc.h"
#include "relay/flat.h"
#include "relay/aim.h"

_Static_assert(FLAT_LIST >= LABELS_MAX, "room for every label");

static int take_label(char to[LABEL_MAX + 1], struct bytes from)
{
	if (!label_ok(from))
		return -1;
	memcpy(to, from.p, from.n);
	to[from.n] = 0;
	return 0;
}

static int take_labels(struct aim *t, const struct flat *f)
{
	const struct flat_field *v = flat_get(f, "labels", FLAT_STRINGS);
	if (f->n != 2 || !v || v->list_n == 0 || v->list_n > LABELS_MAX)
		return -1;
	for (; t->label_n < v->list_n; t->label_n++)
		if (take_label(t->label[t->label_n], v->list[t->label_n]) < 0)
			return -1;
	t->kind = AIM_LABELS;
	return 0;
}

static int take_runner(struct aim *t, const struct flat *f)
{
	const struct flat_field *name = flat_get(f, "name", FLAT_STRING);
	const struct flat_field *pub = flat_get(f, "participant_pub",
						FLAT_STRING);
	if (f->n != 3 || !name || !pub ||
	    take_label(t->name, name->str) < 0 ||
	    enc_b64_fixed(t->pub, PRIM_PUB, pub->str) < 0)
		return -1;
	t->kind = AIM_RUNNER;
	return 0;
}

int aim_parse(struct aim *t, struct bytes in, struct err *e)
{
	struct flat f;
	*t = (struct aim){ .kind = AIM_ANY };
	if (flat_parse(&f, in, "Airlox-Target", e) < 0)
		return -1;
	const struct flat_field *type = flat_get(&f, "type", FLAT_STRING);
	struct bytes word = type ? type->str : (struct bytes){ 0 };
	int rc = -1;
	if (bytes_eq(word, bytes_str("any")))
		rc = f.n == 1 ? 0 : -1;
	else if (bytes_eq(word, bytes_str("labels")))
		rc = take_labels(t, &f);
	else if (bytes_eq(word, bytes_str("runner")))
		rc = take_runner(t, &f);
	return rc == 0 ? 0 :
	       err_set(e, ERR_INVALID, "Airlox-Target names no target: "
		       "{\"type\":\"any\"}, labels or a runner");
}
