/* SPDX-License-Identifier: MIT
 *
 * Goal: the child finds what is wrong with a file; a child that a file has
 * broken or turned gets nothing out, and nothing in.
 *
 * This program is its own checker, as airloxfs is.  With a word in the file
 * MODE it is a bad one. */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

/* Both sides, with less patience. */
#define CHECK_DEADLINE_MS 5000
#include "core/host/check.c"
#include "core/host/check_child.c"
#include "core/host/file.h"
#include "core/prim.h"
#include "tests/unit/tap.h"

#define MODE "/tmp/airlox-check-%d"

/* --- bad checkers --- */

static void say(uint32_t op, uint32_t n, uint64_t off)
{
	put(&(struct check_frame){ op, n, off }, sizeof(struct check_frame));
}

/* The question is read: an end that closes with bytes unread takes its last
 * words with it. */
static void done_well(void)
{
	struct check_ask ask;
	get(&ask, sizeof ask);
	say(CHECK_DONE, 0, ERR_NONE);
	_exit(0);
}

static void flood(void)
{
	static uint8_t chunk[CHECK_CHUNK];
	for (;;) {
		say(CHECK_OUT, sizeof chunk, 0);
		put(chunk, sizeof chunk);
	}
}

static void talk_badly(const char *mode)
{
	static uint8_t junk[1 << 20];
	static const char words[] = "\x1b[31mred\n\u202e\xff\x07 \u00e9";
	static char long_word[CHECK_WHY + 1];

	memset(junk, 0xff, sizeof junk);
	memset(long_word, '\x01', sizeof long_word);
	if (!strcmp(mode, "junk"))
		put(junk, sizeof junk);
	else if (!strcmp(mode, "read past the end"))
		say(CHECK_READ, 2, 3);
	else if (!strcmp(mode, "read far away"))
		say(CHECK_READ, 1, UINT64_MAX);
	else if (!strcmp(mode, "read too much"))
		say(CHECK_READ, UINT32_MAX, 0);
	else if (!strcmp(mode, "give too much"))
		flood();
	else if (!strcmp(mode, "give a chunk too large"))
		say(CHECK_OUT, UINT32_MAX, 0);
	else if (!strcmp(mode, "give nothing"))
		say(CHECK_DONE, 0, ERR_NONE);
	else if (!strcmp(mode, "no word"))
		say(CHECK_DONE, 0, ERR_CONTENT);
	else if (!strcmp(mode, "words too long"))
		say(CHECK_DONE, CHECK_WHY + 1, ERR_CONTENT);
	else if (!strcmp(mode, "long words")) {
		say(CHECK_DONE, CHECK_WHY, ERR_CONTENT);
		put(long_word, CHECK_WHY);
	} else if (!strcmp(mode, "words")) {
		say(CHECK_DONE, sizeof words - 1, 99999);
		put(words, sizeof words - 1);
	} else if (!strcmp(mode, "crash")) {
		raise(SIGSEGV);
	} else if (!strcmp(mode, "not locked")) {
		_exit(CHECK_EXIT_SANDBOX);
	} else if (!strcmp(mode, "leave")) {
		_exit(0);
	}
	for (;;)	/* "hang", and the others when they have said it */
		pause();
}

/* What the walls must stop.  Who is not stopped says that all is well. */
static void break_out(const char *mode)
{
	static int target;

	if (lock_in() < 0)
		_exit(CHECK_EXIT_SANDBOX);
	if (!strcmp(mode, "out: open"))
		open("/etc/passwd", O_RDONLY);
	else if (!strcmp(mode, "out: write elsewhere"))
		(void)!write(2, "x", 1);
	else if (!strcmp(mode, "out: socket"))
		socket(AF_INET, SOCK_STREAM, 0);
	else if (!strcmp(mode, "out: fork"))
		fork();
	else if (!strcmp(mode, "out: exec"))
		execl("/bin/true", "true", NULL);
	else if (!strcmp(mode, "out: signal"))
		kill(getppid(), 0);
	else if (!strcmp(mode, "out: code"))
		mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else if (!strcmp(mode, "out: code made"))
		mprotect((void *)((uintptr_t)&target & ~(uintptr_t)4095), 4096,
			 PROT_READ | PROT_EXEC);
	else if (!strcmp(mode, "out: file mapped"))
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0);
	else if (!strcmp(mode, "out: limits"))
		limit(RLIMIT_AS, RLIM_INFINITY);
	done_well();
}

static void take_memory(void)
{
	size_t all = 0;

	if (lock_in() < 0)
		_exit(CHECK_EXIT_SANDBOX);
	while (all < MEMORY && malloc(1 << 20))
		all += 1 << 20;
	if (all < MEMORY)
		done_well();
	_exit(1);
}

/* What the child inherits: three times /dev/null and its socket. */
static void look_around(void)
{
	int found = 0;
	struct stat null, st;

	for (int i = CHECK_FD + 1; i < 4096; i++)
		found += fcntl(i, F_GETFD) >= 0;
	stat("/dev/null", &null);
	for (int i = 0; i < CHECK_FD; i++)
		found += fstat(i, &st) < 0 || st.st_rdev != null.st_rdev;
	sigset_t blocked;
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	found += sigismember(&blocked, SIGTERM) == 1;
	found += signal(SIGPIPE, SIG_DFL) != SIG_DFL;
	if (found == 0 && (!environ || !environ[0]))
		done_well();
	_exit(1);
}

static int be_a_checker(void)
{
	char path[64], mode[40] = "";

	snprintf(path, sizeof path, MODE, (int)getppid());
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return check_main();
	if (read(fd, mode, sizeof mode - 1) < 0)
		_exit(9);
	close(fd);
	if (!strcmp(mode, "around"))
		look_around();
	if (!strcmp(mode, "memory"))
		take_memory();
	if (!strncmp(mode, "out:", 4))
		break_out(mode);
	talk_badly(mode);
	return 0;
}

/* --- the parent --- */

struct kept { struct buf b; bool refuse; };

static int keep(void *arg, const void *p, size_t n)
{
	struct kept *k = arg;
	buf_add(&k->b, p, n);
	return k->refuse ? -1 : 0;
}

static int no_read(void *arg, uint64_t off, void *to, size_t n)
{
	(void)arg, (void)off, (void)to, (void)n;
	return -1;
}

static int zip_of(struct bytes file, struct err *e)
{
	struct zip_source s = zip_source_bytes(&file);
	return check_content(TYPE_ZIP, "application/zip", &s, e);
}

static int image_of(struct bytes file, const char *mime, struct kept *k,
		    struct err *e)
{
	struct zip_source s = zip_source_bytes(&file);
	struct zip_sink sink = { keep, k };
	return check_image(mime, &s, &sink, e);
}

static struct buf make_zip(int entries)
{
	struct kept k = { 0 };
	struct zip_writer *w = zip_writer_new((struct zip_sink){ keep, &k });

	for (int i = 0; i < entries; i++) {
		char path[32];
		int n = snprintf(path, sizeof path, "d/%d.txt", i);
		struct bytes b = { (uint8_t *)path, (size_t)n };
		if (zip_writer_begin(w, b, false, false, NULL) < 0 ||
		    zip_writer_data(w, path, b.n, NULL) < 0 ||
		    zip_writer_end(w, NULL) < 0)
			abort();
	}
	if (zip_writer_finish(w, NULL) < 0)
		abort();
	zip_writer_free(w);
	return k.b;
}

static void check_zips(void)
{
	struct err e = { 0 };
	cleanup_buf struct buf z = make_zip(2000);

	is_int(zip_of(buf_bytes(&z), &e), 0, "an archive: %s", e.why);
	z.data[z.len / 3] ^= 0x55;
	is_int(zip_of((struct bytes){ z.data, z.len - 1 }, &e), -1, "cut");
	is_int(e.code, ERR_CONTENT, "  is its fault: %s", e.why);
	is_int(zip_of(bytes_str(""), &e), -1, "nothing is no archive");
	is_int(zip_of(bytes_str("no archive at all, this"), &e), -1, "nor text");
	is_int(e.code, ERR_CONTENT, "  its fault: %s", e.why);
	struct zip_source s = { no_read, NULL, 1000 };
	is_int(check_content(TYPE_ZIP, "application/zip", &s, &e), -1,
	       "a file that cannot be read");
	is_int(e.code, ERR_SYS, "  is not its fault: %s", e.why);
	struct bytes md = bytes_str("# \xff");
	s = zip_source_bytes(&md);
	is_int(check_content(TYPE_MD, "text/markdown", &s, &e), -1, "text");
	is_int(e.code, ERR_CONTENT, "  is looked at too: %s", e.why);
}

static void check_images(void)
{
	struct err e = { 0 };
	cleanup_buf struct buf jpg = { 0 };
	struct kept k = { 0 };

	if (file_read(AT_FDCWD, "tests/data/tagged.jpg", 1 << 20, &jpg, &e))
		abort();
	ok(memmem(jpg.data, jpg.len, "Exif", 4), "an image with a past");
	is_int(image_of(buf_bytes(&jpg), "image/jpeg", &k, &e), 0,
	       "  is taken: %s", e.why);
	cleanup_buf struct buf here = { 0 };
	is_int(image_clean(buf_bytes(&jpg), "image/jpeg", &here, &e), 0,
	       "  cleaned here");
	ok(bytes_eq(buf_bytes(&here), buf_bytes(&k.b)), "  is the same");
	buf_reset(&k.b);
	is_int(image_of(buf_bytes(&jpg), "image/png", &k, &e), -1, "no PNG");
	is_int(e.code, ERR_CONTENT, "  its fault: %s", e.why);
	is_int(image_of((struct bytes){ jpg.data, jpg.len / 2 }, "image/jpeg",
			&k, &e), -1, "half of it");
	is_int(e.code, ERR_CONTENT, "  its fault: %s", e.why);
	is_int(k.b.len, 0, "  of which nothing came out");
	k.refuse = true;
	is_int(image_of(buf_bytes(&jpg), "image/jpeg", &k, &e), -1,
	       "nowhere to keep it");
	is_int(e.code, ERR_SYS, "  is not its fault: %s", e.why);
	struct zip_source s = { no_read, NULL, CHECK_IMAGE_BYTES + 1 };
	is_int(check_image("image/png", &s, &(struct zip_sink){ keep, &k }, &e),
	       -1, "an image beyond all limits");
	is_int(e.code, ERR_CONTENT, "  its fault: %s", e.why);
	buf_free(&k.b);
}

/* Each decoder finds all it needs within the walls. */
static void check_decoders(void)
{
	static const struct { const char *name, *mime; } t[] = {
		{ "png", "image/png" }, { "png-interlaced", "image/png" },
		{ "jpeg", "image/jpeg" }, { "jpeg-progressive", "image/jpeg" },
		{ "webp", "image/webp" }, { "webp-lossy", "image/webp" },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct err e = { 0 };
		char path[64];
		struct kept k = { 0 };
		cleanup_buf struct buf b = { 0 };
		snprintf(path, sizeof path, "tests/fuzz/seeds/image/%s",
			 t[i].name);
		is_int(file_read(AT_FDCWD, path, 1 << 20, &b, &e), 0, "%s",
		       path);
		is_int(image_check(buf_bytes(&b), t[i].mime, &e), 0,
		       "  is good: %s", e.why);
		is_int(image_of(buf_bytes(&b), t[i].mime, &k, &e), 0,
		       "  and found to be: %s", e.why);
		buf_free(&k.b);
	}
}

/* The verdict of a bad checker on a file of four bytes. */
static int bad(const char *mode, bool image, struct err *e)
{
	char path[64];
	struct kept k = { 0 };

	snprintf(path, sizeof path, MODE, (int)getpid());
	*e = (struct err){ 0 };
	if (file_write(AT_FDCWD, path, bytes_str(mode), 0600, e) < 0)
		abort();
	int r = image ? image_of(bytes_str("four"), "image/png", &k, e)
		      : zip_of(bytes_str("four"), e);
	unlink(path);
	if (k.b.len > 4 + CHECK_IMAGE_MORE)
		r = 0;		/* too much was let out */
	buf_free(&k.b);
	return r;
}

static void check_bad_talk(void)
{
	static const struct {
		const char *mode;
		bool image;
		enum err_code code;
		const char *why;
	} t[] = {
		{ "junk", false, ERR_CONTENT, "astray" },
		{ "read past the end", false, ERR_CONTENT, "astray" },
		{ "read far away", false, ERR_CONTENT, "astray" },
		{ "read too much", false, ERR_CONTENT, "astray" },
		{ "give too much", true, ERR_CONTENT, "astray" },
		{ "give too much", false, ERR_CONTENT, "astray" },
		{ "give a chunk too large", true, ERR_CONTENT, "astray" },
		{ "give nothing", true, ERR_CONTENT, "astray" },
		{ "no word", false, ERR_CONTENT, "astray" },
		{ "words too long", false, ERR_CONTENT, "astray" },
		{ "long words", false, ERR_CONTENT, "\\x01\\x01" },
		{ "words", false, ERR_CONTENT,
		  "\\x1b[31mred\\n\\u{202E}\\xff\\x07 \u00e9" },
		{ "leave", false, ERR_SYS, "without a word" },
		{ "not locked", false, ERR_SYS, "lock" },
		{ "hang", true, ERR_TIMEOUT, "within" },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct err e;
		is_int(bad(t[i].mode, t[i].image, &e), -1, "%s", t[i].mode);
		is_int(e.code, t[i].code, "  code");
		ok(strcasestr(e.why, t[i].why), "  %s", e.why);
	}
}

static void is_stopped(const char *mode, int sig)
{
	struct err e;
	char want[64];

	snprintf(want, sizeof want, "stopped (signal %d)", sig);
	is_int(bad(mode, false, &e), -1, "%s", mode);
	ok(e.code == ERR_CONTENT && strstr(e.why, want), "  %s", e.why);
}

static void check_walls(void)
{
	struct err e;
	static const char *const out[] = {
		"out: open", "out: write elsewhere", "out: socket",
		"out: fork", "out: exec", "out: signal", "out: code",
		"out: code made", "out: file mapped", "out: limits",
	};
	if (!WALLS) {
		printf("# no walls in this build: not tried\n");
		return;
	}
	is_stopped("crash", SIGSEGV);
	for (size_t i = 0; i < sizeof out / sizeof *out; i++)
		is_stopped(out[i], SIGSYS);
	is_int(bad("memory", false, &e), 0, "memory ends: %s", e.why);
}

static void check_inherited(void)
{
	struct err e;
	sigset_t set;
	int fd = open("/etc/passwd", O_RDONLY);	/* without O_CLOEXEC */

	setenv("AIRLOX_INVITE", "secret", 1);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	dup2(fd, 200);
	is_int(bad("around", false, &e), 0, "it inherits nothing: %s", e.why);
	close(200);
	close(fd);
}

static void *thread_main(void *arg)
{
	intptr_t wrong = 0;
	for (int i = 0; i < 5; i++)
		wrong += zip_of(*(struct bytes *)arg, NULL) != 0;
	return (void *)wrong;
}

static void check_threads(void)
{
	cleanup_buf struct buf z = make_zip(20);
	struct bytes file = buf_bytes(&z);
	pthread_t t[4];
	intptr_t wrong = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread_main, &file);
	for (int i = 0; i < 4; i++) {
		void *r;
		pthread_join(t[i], &r);
		wrong += (intptr_t)r;
	}
	is_int(wrong, 0, "several at a time");
}

/* Told, not asserted: the suite has no timed assertion. */
static void tell_speed(void)
{
	cleanup_buf struct buf z = make_zip(1);
	int64_t a = now_ms();

	for (int i = 0; i < 20; i++)
		zip_of(buf_bytes(&z), NULL);
	printf("# one check: %.1f ms\n", (double)(now_ms() - a) / 20);
}

static int open_fds(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], CHECK_ARG) == 0)
		return be_a_checker();
	if (prim_init() < 0)
		return 1;
	int before = open_fds();
	check_zips();
	check_images();
	check_decoders();
	check_bad_talk();
	check_walls();
	check_inherited();
	check_threads();
	tell_speed();
	is_int(open_fds(), before, "no descriptor is left");
	is_int(waitpid(-1, NULL, WNOHANG), -1, "no child either");
	return done_testing();
}
