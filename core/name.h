/* SPDX-License-Identifier: MIT
 *
 * name: file names, as the protocol allows them (docs/PROTOCOL.md, section
 * 6, File names) and as in/ shows them. */
#ifndef AIRLOX_NAME_H
#define AIRLOX_NAME_H

#include "core/buf.h"
#include "core/err.h"

#define NAME_MAX_BYTES 255
#define NAME_PATH_BYTES 512	/* of a path in an archive */
#define NAME_PATH_PARTS 32
#define NAME_AUTHOR_BYTES 96	/* of a reduced display name */

/* A file name of an item, of a job or of an out file.  ERR_NAME. */
int name_check(struct bytes name, struct err *e);

/* A path in an archive, without a trailing slash: relative, each part a file
 * name of at most 255 bytes, a leading dot allowed.  ERR_NAME. */
int name_check_entry(struct bytes path, struct err *e);

/* Where the extension begins, its dot included; name.n when there is none.
 * A dot in front of everything starts no extension. */
size_t name_ext(struct bytes name);

/* Any bytes to a name that is safe in a terminal, in an unquoted-glob script
 * and on a disk: valid UTF-8, no control or hidden character, no space of any
 * kind, no shell or path character, no plus (it sets apart participants of
 * one name: NAME+<fingerprint>), no leading dot or dash; what is not safe
 * becomes `_`, and so does an empty result.  At most max_bytes (>= 32), cut
 * between characters, with an extension of at most 16 bytes kept. */
void name_reduce(struct buf *out, struct bytes s, size_t max_bytes);

/* How a participant is called in in/ and participants/: author_shown reduced,
 * its last '+' kept, each '-' given up. */
void name_author(struct buf *out, const char *author_shown);

/* The name of an item in in/: "<seq, 6 digits or more>-<author>-<name>", and
 * "<seq>-<author>.txt" when name is empty.  At most 255 bytes, extension
 * kept.  author_shown is name_reduce(display name, NAME_AUTHOR_BYTES), with
 * "+<8 hex>" where there are two of them; a dash in it becomes `_`, so that
 * no author can look like another one's name with the start of a file name. */
void name_in(struct buf *out, uint64_t seq, const char *author_shown,
	     struct bytes name);

#endif
