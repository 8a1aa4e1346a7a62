/* SPDX-License-Identifier: MIT */
#include "runner/box/letters.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "runner/record/digest.h"

#define DEPTH 16		/* directories of a job's inputs */
#define INPUTS 256
#define SHOWN_TRIES 100

/* The raw value of a member.  The lines are our mount's own: no blank, and a
 * quote within a text has a backslash before it, so that ,"key": is none of a
 * text. */
static struct bytes member(struct bytes line, const char *key)
{
	char mark[40];
	int n = snprintf(mark, sizeof mark, "\"%s\":", key);
	const uint8_t *end = line.p + line.n, *p = line.p;
	while ((p = memmem(p, (size_t)(end - p), mark, (size_t)n))) {
		bool starts = p > line.p && (p[-1] == ',' || p[-1] == '{');
		p += n;
		if (!starts)
			continue;
		const uint8_t *q = p;
		if (q < end && *q == '"') {
			for (q++; q < end && *q != '"'; q++)
				q += *q == '\\';
			q++;
		} else {
			while (q < end && *q != ',' && *q != '}')
				q++;
		}
		return q <= end ? (struct bytes){ p, (size_t)(q - p) } :
				  (struct bytes){ 0 };
	}
	return (struct bytes){ 0 };
}

static bool is_word(struct bytes raw, const char *word)
{
	size_t n = strlen(word);
	return raw.n == n + 2 && !memcmp(raw.p + 1, word, n);
}

/* A raw value as a document of its own, "v", which borrows doc; NULL: it is
 * none. */
static struct json *parse(struct bytes raw, struct buf *doc)
{
	buf_add_str(doc, "{\"v\":");
	buf_add(doc, raw.p, raw.n);
	buf_add_byte(doc, '}');
	return raw.n && !buf_failed(doc) ? json_parse(buf_bytes(doc), NULL) :
					   NULL;
}

/* The text of a raw string, or false. */
static bool decode(struct bytes raw, struct buf *out)
{
	cleanup_buf struct buf doc = { 0 };
	struct json *j = parse(raw, &doc);
	bool is = j && j->child && !j->child->next &&
		  j->child->type == JSON_STRING;
	if (is)
		buf_add(out, j->child->str.p, j->child->str.n);
	json_free(j);
	return is && buf_cstr(out);
}

static uint64_t number(struct bytes raw)
{
	char text[24] = "";
	if (raw.n && raw.n < sizeof text)
		memcpy(text, raw.p, raw.n);
	return strtoull(text, NULL, 10);
}

static void put_raw(struct buf *out, const char *key, struct bytes raw)
{
	cleanup_buf struct buf doc = { 0 };
	struct json *j = parse(raw, &doc);
	if (j && j->child && !j->child->next) {
		json_put_key(out, key);
		buf_add(out, raw.p, raw.n);
	}
	json_free(j);
}

/* A file that was written, its bytes and hash as they are now. */
static void put_file(struct buf *out, int dir, const char *name,
		     const char *shown)
{
	char hex[DIGEST_HEX] = "";
	uint64_t bytes = 0;
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW |
				   O_CLOEXEC);
	bool is = fd >= 0 && digest_fd(fd, hex, &bytes, NULL) == 0;
	buf_add_str(out, "session {");
	if (is)
		json_put_key_int(out, "bytes", (int64_t)bytes);
	json_put_key_string(out, "change", bytes_str("wrote"));
	json_put_key_string(out, "name", bytes_str(shown));
	json_put_key_string(out, "sha256", bytes_str(is ? hex :
			    "not known: it was gone"));
	buf_add_str(out, "}\n");
}

static void read_written(struct letters *l, struct bytes line,
			 struct buf *out)
{
	cleanup_buf struct buf name = { 0 }, shown = { 0 };
	l->on_way++;
	if (decode(member(line, "name"), &name)) {
		cleanup_fd int dir = openat(l->dir, "out", O_RDONLY |
					    O_DIRECTORY | O_CLOEXEC);
		buf_addf(&shown, "out/%s", buf_cstr(&name));
		if (buf_cstr(&shown))
			put_file(out, dir, buf_cstr(&name), buf_cstr(&shown));
		return;
	}
	buf_add_str(out, "session {");
	put_raw(out, "bytes", member(line, "bytes"));
	json_put_key_string(out, "change", bytes_str("wrote"));
	json_put_key_string(out, "name", bytes_str("say"));
	put_raw(out, "sha256", member(line, "sha256"));
	buf_add_str(out, "}\n");
}

static void read_outcome(struct letters *l, struct bytes line, bool sent,
			 struct buf *out)
{
	l->on_way -= l->on_way > 0;
	buf_add_str(out, "session {");
	json_put_key_string(out, "change", bytes_str(sent ? "sent" :
						      "not sent"));
	put_raw(out, "id", member(line, "id"));
	cleanup_buf struct buf name = { 0 }, shown = { 0 };
	if (decode(member(line, "name"), &name))
		buf_addf(&shown, "out/%s", buf_cstr(&name));
	else
		buf_add_str(&shown, "say");
	json_put_key_string(out, "name", buf_bytes(&shown));
	put_raw(out, "reason", member(line, "reason"));
	put_raw(out, "seq", member(line, "seq"));
	buf_add_str(out, "}\n");
}

/* --- a job's inputs ------------------------------------------------------- */

static bool is_own(const char *name, int depth)
{
	static const char *const own[] = { "ctl", "status", "stdout", "stderr",
					   "output", "wait", "exit", "reason",
					   "result.json", "out", NULL };
	for (int i = 0; own[i] && depth == 0; i++)
		if (!strcmp(own[i], name))
			return true;
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static void put_inputs(struct buf *out, int at, const char *path, int depth,
		       int *left)
{
	int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	struct stat st;
	if (!d && fd >= 0)
		close(fd);
	while (d && *left > 0 && (de = readdir(d))) {
		cleanup_buf struct buf shown = { 0 };
		if (is_own(de->d_name, depth) ||
		    fstatat(at, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		buf_addf(&shown, "%s/%s", path, de->d_name);
		if (S_ISREG(st.st_mode) && buf_cstr(&shown)) {
			(*left)--;
			put_file(out, at, de->d_name, buf_cstr(&shown));
		} else if (S_ISDIR(st.st_mode) && depth < DEPTH) {
			cleanup_fd int sub = openat(at, de->d_name, O_RDONLY |
				O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (sub >= 0 && buf_cstr(&shown))
				put_inputs(out, sub, buf_cstr(&shown),
					   depth + 1, left);
		}
	}
	if (d)
		closedir(d);
}

/* The mount shows a job a moment after it was run. */
static int open_job(int at, const char *path)
{
	int fd = -1;
	for (int i = 0; i < SHOWN_TRIES && fd < 0 && at >= 0; i++) {
		fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			usleep(20000);
	}
	return fd;
}

static void read_job(struct letters *l, struct bytes line, struct buf *out)
{
	cleanup_buf struct buf name = { 0 }, path = { 0 };
	int left = INPUTS;
	if (!decode(member(line, "job"), &name))
		return;
	buf_addf(&path, "jobs/%s", buf_cstr(&name));
	if (!buf_cstr(&path))
		return;
	if (!member(line, "state").n) {
		cleanup_fd int dir = open_job(l->dir, buf_cstr(&path));
		if (dir >= 0)
			put_inputs(out, dir, buf_cstr(&path), 0, &left);
		return;
	}
	buf_add_str(out, "session {");
	json_put_key_string(out, "change", bytes_str("job"));
	put_raw(out, "exit", member(line, "exit"));
	put_raw(out, "id", member(line, "id"));
	json_put_key_string(out, "name", buf_bytes(&path));
	put_raw(out, "reason", member(line, "reason"));
	put_raw(out, "state", member(line, "state"));
	buf_add_str(out, "}\n");
}

/* --- */

void letters_read(struct letters *l, struct bytes line, struct buf *out)
{
	struct bytes event = member(line, "event");
	uint64_t from = number(member(line, "pid_ns"));
	if (!from || from != l->pid_ns)
		return;
	if (member(line, "job").n)
		read_job(l, line, out);
	else if (is_word(event, "written"))
		read_written(l, line, out);
	else if (is_word(event, "sent"))
		read_outcome(l, line, true, out);
	else if (is_word(event, "failed"))
		read_outcome(l, line, false, out);
}

void letters_end(struct letters *l, bool gone, struct buf *out)
{
	if (gone)
		buf_add_str(out, "notice {\"text\":\"the session, or its "
			    "mount, ended while the box ran\"}\n");
	if (l->on_way)
		buf_addf(out, "notice {\"text\":\"%zu of what was written to "
			 "the session had not been sent when the run ended: "
			 "the mount goes on with it\"}\n", l->on_way);
}
