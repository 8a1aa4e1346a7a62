/* SPDX-License-Identifier: MIT
 *
 * Goal: the protocol's file names, and the names that in/ makes of any. */
#include "core/clear.h"
#include "core/name.h"
#include "tests/unit/tap.h"

static const char *const good[] = {
	"r.md", "R.MD", " a.md", "com10.md", "console.md", "a b.md", "a..md",
	"a\u00a0.md", "donn\u00e9es.md", "\U0001f600.md", "COM\u00b9.md",
	"conin$.md", " con.md", "~a.md", "-a.md", "#a.md", "a\u0300.md",
	"a\u2028.md", "a\u3000.md", "icon", "com", "x",
};

static const char *const bad[] = {
	"", ".", "..", ".a", "a.", "a ", "a/b", "a\\b", "a:b", "a\nb", "a\x7f",
	"a\xc2\x85", "con", "CON.md", "con .md", "nul.tar.gz", "Com0",
	"lpt9.x",
	"aux.", "prn", "x\u200by", "x\u202ey", "x\u00ady", "x\u061cy",
	"\ufeffx", "x\u2066",
	"x\ufffb", "x\U000e0041", "x\u180e", "a\xff", "\xed\xa0\x80",
};

static void check_names(void)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		is_int(name_check(bytes_str(good[i]), NULL), 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = { 0 };
		is_int(name_check(bytes_str(bad[i]), &e), -1, "bad %zu: %s",
		       i, e.why);
		is_int(e.code, ERR_NAME, "  is a matter of the name");
	}
	char s[256];
	memset(s, 'x', sizeof s);
	is_int(name_check((struct bytes){ (uint8_t *)s, 255 }, NULL), 0,
	       "255 bytes");
	is_int(name_check((struct bytes){ (uint8_t *)s, 256 }, NULL), -1,
	       "256 bytes");
	is_int(name_check((struct bytes){ (uint8_t *)"a\0b", 3 }, NULL), -1,
	       "a NUL");
}

static void check_paths(void)
{
	static const char *const no[] = {
		"", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a/.", "C:/x",
		"d/NUL.txt", "a./b", "a\\b",
	};
	is_int(name_check_entry(bytes_str(".git/config"), NULL), 0,
	       "a leading dot may be in an archive");
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		is_int(name_check_entry(bytes_str(no[i]), NULL), -1,
		       "path '%s' is refused", no[i]);
	char deep[2 * 33];
	for (size_t i = 0; i < sizeof deep; i++)
		deep[i] = i % 2 ? '/' : 'a';
	is_int(name_check_entry((struct bytes){ (uint8_t *)deep, 63 }, NULL),
	       0, "32 parts");
	is_int(name_check_entry((struct bytes){ (uint8_t *)deep, 65 }, NULL),
	       -1, "33 parts");
}

static void is_reduced(const char *from, size_t max, const char *want)
{
	cleanup_buf struct buf b = { 0 };
	name_reduce(&b, bytes_str(from), max);
	is_str(buf_cstr(&b), want, "reduced to %s", want);
}

static void check_reduce(void)
{
	is_reduced("report.md", 255, "report.md");
	is_reduced(".bashrc", 255, "_bashrc");
	is_reduced("-rf", 255, "_rf");
	is_reduced("..", 255, "_.");
	is_reduced("", 255, "_");
	is_reduced("~root", 255, "_root");
	is_reduced("a b\nc\x1b[0m.md", 255, "a_b_c__0m.md");
	is_reduced("$(id)`;'\"&|<>*?", 255, "__id___________");
	is_reduced("caf\xe9.py", 255, "caf_.py");
	is_reduced("caf\u00e9.py", 255, "caf\u00e9.py");
	is_reduced("a\u202egnp.exe", 255, "a_gnp.exe");
	is_reduced("c++.md", 255, "c__.md");
	is_reduced("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.tar.gz", 32,
		   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa.gz");
	is_reduced("aaaaaaaaaaaaaaaaaaaaaaaaaaa\u00e9\u00e9.md", 32,
		   "aaaaaaaaaaaaaaaaaaaaaaaaaaa\u00e9.md");
	is_reduced("aaaaaaaaaaaaaaaaaaaaaaaaaaaa\u00e9\u00e9.md", 32,
		   "aaaaaaaaaaaaaaaaaaaaaaaaaaaa.md");
	is_reduced("aaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 32,
		   "aaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbb");
}

static void is_in(uint64_t seq, const char *author, const char *name,
		  const char *want)
{
	cleanup_buf struct buf b = { 0 };
	name_in(&b, seq, author, bytes_str(name));
	is_str(buf_cstr(&b), want, "in/%s", want);
}

static void check_in(void)
{
	is_in(12, "alice", "report.md", "000012-alice-report.md");
	is_in(12, "alice", "", "000012-alice.txt");
	is_in(1234567, "a-b", "c", "1234567-a_b-c");
	is_in(3, "alice+0a1b2c3d", "x.py", "000003-alice+0a1b2c3d-x.py");
	is_in(3, "../e\x1bvil", "/etc/passwd", "000003-_._e_vil-_etc_passwd");
	is_in(3, "", "x", "000003-_-x");

	char name[300], author[120];
	memset(name, 'n', sizeof name);
	memcpy(name + 296, ".md", 4);
	memset(author, 'u', 96);
	strcpy(author + 96, "+01234567");
	cleanup_buf struct buf b = { 0 };
	name_in(&b, (1ull << 53) - 1, author, bytes_str(name));
	is_int(b.len, 255, "at most 255 bytes");
	is_str(buf_cstr(&b) + 252, ".md", "with its extension");
	ok(strstr((char *)b.data, "u+01234567-n"), "and its author whole");
}

int main(void)
{
	check_names();
	check_paths();
	check_reduce();
	check_in();
	is_int(name_ext(bytes_str("a.tar.gz")), 5, "the last dot");
	is_int(name_ext(bytes_str(".git")), 4, "a leading dot is none");
	return done_testing();
}
