/* SPDX-License-Identifier: MIT
 *
 * check: a child of ours, exec'd from our own binary, that looks into images
 * and archives: without keys, network, mount or environment, under seccomp
 * and limits of memory and time.  It asks for the file's bytes range by range
 * over a socket, so that neither side holds the whole of an archive; an image
 * is in the child's memory alone.
 *
 * What the two say to each other is in check_parts.h.  The child is waited for
 * by its id: a caller must not reap children it did not start. */
#ifndef AIRLOX_CHECK_H
#define AIRLOX_CHECK_H

#include "core/content.h"

/* The same contract as content_check; an archive is looked at in the child,
 * what has no parser (text, an image's magic) here.  ERR_CONTENT where the
 * file is at fault; ERR_SYS, ERR_TIMEOUT where the child could not be had:
 * then nothing is accepted. */
int check_content(enum item_type type, const char *mime,
		  const struct zip_source *body, struct err *e);

/* The same of content_check_whole: for what is to be sent. */
int check_content_whole(enum item_type type, const char *mime,
			const struct zip_source *body, struct err *e);

/* Decodes an image within limits and gives the cleaned file to `sink`
 * (core/image.h, image_check and image_clean).  On -1 what the sink took is
 * not to be used. */
int check_image(const char *mime, const struct zip_source *body,
		const struct zip_sink *sink, struct err *e);

/* An archive, checked and unpacked in the child: each entry in the archive's
 * order, then its bytes.  What is handed out keeps the limits of core/zip.h
 * and of core/name.h (paths), whatever the child says; on -1, or where a
 * callback gave -1 (then e is what `entry` set, or ERR_SYS), what was handed
 * out is not to be used. */
struct check_unpack {
	int (*entry)(void *arg, const char *path, uint64_t size, bool is_dir,
		     bool is_exec, struct err *e);
	int (*data)(void *arg, const void *p, size_t n, struct err *e);
	void *arg;
};
int check_unzip(const struct zip_source *body, const struct check_unpack *to,
		struct err *e);

/* The child's main: argv[1] is CHECK_ARG; the socket is descriptor 3. */
#define CHECK_ARG "--check-child"
int check_main(void);

#endif
