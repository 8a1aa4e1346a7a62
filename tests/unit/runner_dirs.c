/* SPDX-License-Identifier: MIT
 *
 * Directories that somebody hostile wrote: copied in, measured, collected and
 * removed. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/buf.h"
#include "runner/sandbox/collect.h"
#include "runner/sandbox/dirs.h"
#include "tests/unit/tap.h"

static int top;

static int dir(int at, const char *name)
{
	mkdirat(at, name, 0755);
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void file(int at, const char *name, const char *text)
{
	cleanup_fd int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC,
				   0600);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
}

static bool has(int at, const char *name)
{
	return faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void read_text(int at, const char *name, char *to, size_t cap)
{
	cleanup_fd int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, cap - 1);
	to[n > 0 ? n : 0] = 0;
}

static void make_socket(int at, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", at,
		 name);
	cleanup_fd int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s, (struct sockaddr *)&a, sizeof a) < 0)
		abort();
}

/* Hostile things beside honest ones. */
static void fill(int from)
{
	cleanup_fd int a = dir(from, "a"), b = dir(a, "b");
	file(from, "x.txt", "hello");
	file(b, "deep.txt", "deep");
	file(from, "big", "0123456789");
	ok(symlinkat("/etc/passwd", from, "link") == 0 &&
	   symlinkat("/etc", a, "etc") == 0 &&
	   symlinkat("loop", from, "loop") == 0 &&
	   mkfifoat(from, "fifo", 0600) == 0, "made");
	make_socket(from, "sock");
	file(from, "line\nfeed\033[2J", "n");
}

static void test_collect(void)
{
	cleanup_fd int from = dir(top, "from"), to = dir(top, "to");
	const struct collect_limits l = { 1000, 100 };
	struct collected c;
	struct err e = { 0 };
	char text[64];

	fill(from);
	is_int(collect_out(from, to, &l, &c, &e), 0, "collected");
	read_text(to, "x.txt", text, sizeof text);
	is_str(text, "hello", "a file");
	read_text(to, "a/b/deep.txt", text, sizeof text);
	is_str(text, "deep", "one below");
	ok(!has(to, "link") && !has(to, "a/etc") && !has(to, "loop") &&
	   !has(to, "fifo") && !has(to, "sock"), "nothing else");
	is_int(c.dropped, 5, "five left behind");
	const char *names = buf_cstr(&c.names);
	ok(strstr(names, "link (symbolic link)") &&
	   strstr(names, "a/etc (symbolic link)") &&
	   strstr(names, "fifo (fifo)") && strstr(names, "sock (socket)"),
	   "each by name: %s", names);
	is_int(c.files, 4, "four files");
	collected_free(&c);
}

static void test_limits(void)
{
	cleanup_fd int from = dir(top, "from"), to = dir(top, "few");
	struct collect_limits l = { 9, 100 };
	struct collected c;
	is_int(collect_out(from, to, &l, &c, NULL), 0, "by size");
	ok(!has(to, "big") && strstr(buf_cstr(&c.names), "big (too large)"),
	   "ten bytes are too many");
	ok(c.bytes <= 9, "what was taken fits");
	collected_free(&c);
	cleanup_fd int to2 = dir(top, "few2");
	l = (struct collect_limits){ 1000, 2 };
	is_int(collect_out(from, to2, &l, &c, NULL), 0, "by number");
	is_int(c.files, 2, "two files");
	ok(strstr(buf_cstr(&c.names), "(too many files)"), "and why");
	collected_free(&c);
}

/* A file's place is taken by a link between the look and the open. */
static void test_open(void)
{
	cleanup_fd int from = dir(top, "from");
	ok(dirs_open(from, "link", O_RDONLY) < 0, "no link");
	ok(dirs_open(from, "a/etc/passwd", O_RDONLY) < 0, "none on the way");
	ok(dirs_open(from, "../from/x.txt", O_RDONLY) < 0, "no way out");
	ok(dirs_open(from, "/etc/passwd", O_RDONLY) < 0, "not from the root");
	cleanup_fd int fine = dirs_open(from, "a/b/deep.txt", O_RDONLY);
	ok(fine >= 0, "but a file");
}

static void test_measure(void)
{
	cleanup_fd int from = dir(top, "from");
	struct dirs_use use = { 0 };
	dirs_measure(from, 1000, &use);
	is_int(use.entries, 11, "entries");
	ok(use.bytes >= 4096 * 3 && !use.too_deep, "bytes: %llu",
	   (unsigned long long)use.bytes);
	use = (struct dirs_use){ 0 };
	dirs_measure(from, 3, &use);
	is_int(use.entries, 4, "it stops when there are too many");
}

static void test_copy_in(void)
{
	cleanup_fd int from = dir(top, "in"), to = dir(top, "in2");
	cleanup_fd int sub = dir(from, "sub");
	uint64_t bytes;
	struct err e = { 0 };
	file(from, "main.py", "print(1)");
	file(sub, "data", "12345");
	is_int(dirs_copy_in(from, to, (uid_t)-1, (gid_t)-1, 100, &bytes, &e),
	       0, "copied");
	is_int(bytes, 13, "bytes");
	ok(has(to, "sub/data"), "with what is below");
	cleanup_fd int small = dir(top, "in3"), odd = dir(top, "in4");
	is_int(dirs_copy_in(from, small, (uid_t)-1, (gid_t)-1, 12, &bytes,
			    &e), -1, "too large");
	is_int(e.code, ERR_SIZE, "and says so");
	ok(symlinkat("/etc/passwd", from, "l") == 0, "a link");
	is_int(dirs_copy_in(from, odd, (uid_t)-1, (gid_t)-1, 100, &bytes,
			    &e), -1, "no link");
}

/* Far deeper than a path can be, and locked. */
static void test_deep(void)
{
	int at = dir(top, "deep");
	for (int i = 0; i < 400; i++) {
		int next = dir(at, "d");
		file(next, "f", "x");
		close(at);
		at = next;
	}
	close(at);
	cleanup_fd int deep = dir(top, "deep"), d = dir(deep, "d");
	struct dirs_use use = { 0 };
	dirs_measure(deep, 100000, &use);
	ok(use.too_deep, "too deep to be measured");
	cleanup_fd int to = dir(top, "deep2");
	struct collected c;
	is_int(collect_out(deep, to, &(struct collect_limits){ 9999, 9999 },
			   &c, NULL), 0, "or to be collected");
	ok(c.dropped >= 1, "and that is said");
	collected_free(&c);
	ok(fchmodat(d, "d", 0, 0) == 0, "locked");
	struct err e = { 0 };
	is_int(dirs_remove(top, "deep", &e), 0, "but removed %s", e.why);
	ok(!has(top, "deep"), "it is gone");
	is_int(dirs_remove(top, "deep", &e), 0, "twice is fine");
}

int main(void)
{
	char path[] = "/tmp/runner-dirs.XXXXXX";
	if (!mkdtemp(path))
		return skip_all("no /tmp");
	top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_collect();
	test_limits();
	test_open();
	test_measure();
	test_copy_in();
	test_deep();
	close(top);
	struct err e = { 0 };
	is_int(dirs_remove(AT_FDCWD, path, &e), 0, "all is removed");
	ok(access("/etc/passwd", R_OK) == 0, "and nothing that was linked to");
	return done_testing();
}
