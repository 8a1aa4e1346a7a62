/* SPDX-License-Identifier: MIT
 *
 * Goal: an archive is unpacked in the child; what comes out is what the rules
 * on archives allow, whatever the child says.
 *
 * This program is its own checker, as airloxfs is; the file MODE makes it a
 * bad one. */
#include <sys/stat.h>

#include "core/host/check.c"
#include "core/host/check_child.c"
#include "core/host/file.h"
#include "core/prim.h"
#include "tests/unit/tap.h"

#define MODE "/tmp/airlox-unzip-%d"

static void entry(const char *path, uint64_t off)
{
	put_frame(CHECK_ENTRY, path, strlen(path), off);
}

static void out(const char *text)
{
	put_frame(CHECK_OUT, text, strlen(text), 0);
}

static void talk_badly(const char *mode)
{
	struct check_ask ask;
	get(&ask, sizeof ask);
	if (!strcmp(mode, "dot-dot"))
		entry("../x", 0);
	else if (!strcmp(mode, "absolute"))
		entry("/x", 0);
	else if (!strcmp(mode, "control"))
		entry("a\nb", 0);
	else if (!strcmp(mode, "empty name"))
		entry("", 0);
	else if (!strcmp(mode, "too large"))
		entry("x", ZIP_MAX_ENTRY_BYTES + 1);
	else if (!strcmp(mode, "a directory with bytes"))
		entry("x", 5 | CHECK_IS_DIR);
	else if (!strcmp(mode, "more than it said"))
		entry("x", 2), out("abc");
	else if (!strcmp(mode, "less than it said"))
		entry("x", 4), out("abc"), entry("y", 0);
	else if (!strcmp(mode, "the last is cut"))
		entry("x", 4), out("abc");
	else if (!strcmp(mode, "bytes of nothing"))
		out("abc");
	else if (!strcmp(mode, "in all too large"))
		for (int i = 0; i < 3; i++)
			entry("x", ZIP_MAX_ENTRY_BYTES), out("x");
	else if (!strcmp(mode, "too many"))
		for (int i = 0; i <= ZIP_MAX_ENTRIES; i++)
			entry("x", 0);
	put_frame(CHECK_DONE, "", 0, ERR_NONE);
	_exit(0);
}

static int be_a_checker(void)
{
	cleanup_buf struct buf mode = { 0 };
	struct err e;
	char path[64];

	snprintf(path, sizeof path, MODE, (int)getppid());
	if (file_read(AT_FDCWD, path, 100, &mode, &e) == 0)
		talk_badly(buf_cstr(&mode));
	return check_main();
}

/* --- taking --- */

struct taken {
	struct buf log;		/* "path size dir exec\n", then the bytes */
	bool refuse;
};

static int take_it(void *arg, const char *path, uint64_t size, bool is_dir,
		   bool is_exec, struct err *e)
{
	struct taken *t = arg;
	buf_addf(&t->log, "%s %d %d %d\n", path, (int)size, is_dir, is_exec);
	return t->refuse ? err_set(e, ERR_FULL, "no room for it") : 0;
}

static int take_bytes(void *arg, const void *p, size_t n, struct err *e)
{
	(void)e;
	struct taken *t = arg;
	buf_add(&t->log, p, n);
	return 0;
}

static int unzip(struct bytes file, struct taken *t, struct err *e)
{
	struct zip_source s = zip_source_bytes(&file);
	struct check_unpack to = { take_it, take_bytes, t };
	*e = (struct err){ 0 };
	return check_unzip(&s, &to, e);
}

static int keep(void *arg, const void *p, size_t n)
{
	buf_add(arg, p, n);
	return 0;
}

static void add(struct zip_writer *w, const char *path, const char *text,
		bool is_dir, bool is_exec)
{
	if (zip_writer_begin(w, bytes_str(path), is_dir, is_exec, NULL) < 0 ||
	    zip_writer_data(w, text, strlen(text), NULL) < 0 ||
	    zip_writer_end(w, NULL) < 0)
		abort();
}

static struct buf make_zip(size_t big)
{
	struct buf b = { 0 };
	struct zip_writer *w = zip_writer_new((struct zip_sink){ keep, &b });
	cleanup_buf struct buf text = { 0 };
	memset(buf_room(&text, big + 1), 'x', big);
	text.len = big;
	add(w, "a.txt", "one\n", false, false);
	add(w, "d", "", true, false);
	add(w, "d/run", "two\n", false, true);
	add(w, "big", buf_cstr(&text), false, false);
	if (zip_writer_finish(w, NULL) < 0)
		abort();
	zip_writer_free(w);
	return b;
}

static void check_good(void)
{
	struct err e;
	struct taken t = { 0 };
	cleanup_buf struct buf z = make_zip(200000);

	is_int(unzip(buf_bytes(&z), &t, &e), 0, "unpacked: %s", e.why);
	static const char head[] = "a.txt 4 0 0\none\nd 0 1 1\n"
		"d/run 4 0 1\ntwo\nbig 200000 0 0\nxxxx";
	ok(t.log.len > sizeof head &&
	   memcmp(t.log.data, head, sizeof head - 1) == 0, "in its order");
	is_int((int)t.log.len, (int)sizeof head - 5 + 200000, "all of it");
	buf_reset(&t.log);
	z.data[36] ^= 1;	/* a byte of a.txt */
	is_int(unzip(buf_bytes(&z), &t, &e), -1, "a damaged one");
	is_int(e.code, ERR_CONTENT, "  its fault: %s", e.why);
	is_int(unzip(bytes_str("no archive"), &t, &e), -1, "none");
	z.data[36] ^= 1;
	t.refuse = true;
	is_int(unzip(buf_bytes(&z), &t, &e), -1, "the taker may refuse");
	is_int(e.code, ERR_FULL, "  and says why: %s", e.why);
	buf_free(&t.log);
}

static void check_bad(void)
{
	static const char *const modes[] = {
		"dot-dot", "absolute", "control", "empty name", "too large",
		"a directory with bytes", "more than it said",
		"less than it said", "the last is cut", "bytes of nothing",
		"in all too large", "too many",
	};
	char path[64];
	snprintf(path, sizeof path, MODE, (int)getpid());
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		struct err e;
		struct taken t = { 0 };
		if (file_write(AT_FDCWD, path, bytes_str(modes[i]), 0600,
			       &e) < 0)
			abort();
		is_int(unzip(bytes_str("four"), &t, &e), -1, "%s", modes[i]);
		ok(e.code == ERR_CONTENT && strstr(e.why, "astray"), "  %s",
		   e.why);
		buf_free(&t.log);
	}
	unlink(path);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], CHECK_ARG) == 0)
		return be_a_checker();
	if (prim_init() < 0)
		return 1;
	check_good();
	check_bad();
	return done_testing();
}
