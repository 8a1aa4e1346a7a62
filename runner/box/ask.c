/* SPDX-License-Identifier: MIT */
#include "runner/box/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "core/clear.h"

#define LINE_MAX_BYTES 512
#define GIVEN_MS 150

static const char *const words[ASK_WORDS] = { "yes", "no", "always" };

const char *ask_word(enum ask_word w) { return words[w]; }

int ask_open(struct asks *a, int dir, int64_t patience_ms, struct err *e)
{
	*a = (struct asks){ .dir = dir, .answer = -1,
			    .patience_ms = patience_ms };
	if (mkfifoat(dir, ASK_FILE, 0600) < 0 ||
	    mkfifoat(dir, ASK_ANSWER, 0600) < 0)
		return err_sys(e, "cannot make the files for questions");
	/* for reading and writing: it never ends */
	a->answer = openat(dir, ASK_ANSWER, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	cleanup_fd int present = openat(dir, ASK_PRESENT, O_RDWR | O_CREAT |
					O_EXCL | O_CLOEXEC, 0600);
	if (a->answer < 0 || present < 0)
		return err_sys(e, "cannot open the files for questions");
	return 0;
}

void ask_close(struct asks *a)
{
	if (a->answer >= 0)
		close(a->answer);
	a->answer = -1;
	buf_free(&a->rest);
	/* who waits for a question gets an end, and nobody waits any more: a
	 * pipe that is open for both lets them in */
	cleanup_fd int fd = a->dir < 0 ? -1 : openat(a->dir, ASK_FILE, O_RDWR |
						     O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		unlinkat(a->dir, ASK_FILE, 0);
}

void ask_add(struct asks *a, unsigned tag, struct bytes text, int64_t now_ms)
{
	cleanup_buf struct buf clean = { 0 };
	if (a->n == ASK_MAX)
		return;
	struct question *q = &a->q[a->n++];
	*q = (struct question){ .tag = tag, .since_ms = now_ms };
	clear_escape(&clean, text);
	size_t n = clear_cut(buf_bytes(&clean), ASK_TEXT - 1);
	if (n)
		memcpy(q->text, clean.data, n);
}

void ask_drop(struct asks *a, unsigned tag)
{
	for (size_t i = 0; i < a->n; i++) {
		if (a->q[i].tag != tag)
			continue;
		memmove(&a->q[i], &a->q[i + 1],
			(--a->n - i) * sizeof a->q[0]);
		return;
	}
}

/* --- answers --- */

static bool is_open(const struct asks *a, unsigned tag)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->q[i].tag == tag)
			return true;
	return false;
}

static bool parse(const struct asks *a, struct ask_answer *to, char *line)
{
	char *save = NULL, *end;
	const char *tag = strtok_r(line, " \t\r", &save);
	const char *word = strtok_r(NULL, " \t\r", &save);
	const char *who = strtok_r(NULL, "\r", &save);
	cleanup_buf struct buf clean = { 0 };
	if (!tag || !word || *tag < '0' || *tag > '9')
		return false;
	unsigned long n = strtoul(tag, &end, 10);
	int w = 0;
	while (w < ASK_WORDS && strcmp(word, words[w]) != 0)
		w++;
	if (*end || n > UINT32_MAX || w == ASK_WORDS ||
	    !is_open(a, (unsigned)n))
		return false;
	*to = (struct ask_answer){ .tag = (unsigned)n,
				   .word = (enum ask_word)w };
	clear_escape(&clean, bytes_str(who ? who : "the answer file"));
	size_t cut = clear_cut(buf_bytes(&clean), ASK_WHO - 1);
	if (cut)
		memcpy(to->who, clean.data, cut);
	return true;
}

bool ask_read(struct asks *a, struct ask_answer *to, struct buf *bad)
{
	uint8_t block[4096];
	ssize_t n = a->answer < 0 ? 0 : read(a->answer, block, sizeof block);
	if (n > 0)
		buf_add(&a->rest, block, (size_t)n);
	for (;;) {
		uint8_t *lf = a->rest.len ? memchr(a->rest.data, '\n',
						   a->rest.len) : NULL;
		if (!lf && a->rest.len <= LINE_MAX_BYTES)
			return false;
		char line[LINE_MAX_BYTES + 1];
		size_t size = lf ? (size_t)(lf - a->rest.data) : a->rest.len;
		size_t kept = size > LINE_MAX_BYTES ? LINE_MAX_BYTES : size;
		memcpy(line, a->rest.data, kept);
		line[kept] = 0;
		buf_reset(bad);
		buf_add(bad, line, kept);
		buf_consume(&a->rest, size + (lf != NULL));
		if (size == kept && parse(a, to, line)) {
			buf_reset(bad);
			return true;
		}
		if (kept)
			return false;
	}
}

static bool is_present(const struct asks *a)
{
	cleanup_fd int fd = openat(a->dir, ASK_PRESENT, O_RDWR | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

bool ask_expire(struct asks *a, struct ask_answer *to, int64_t now_ms)
{
	if (a->n && is_present(a)) {
		for (size_t i = 0; i < a->n; i++)
			a->q[i].since_ms = now_ms;
		return false;
	}
	for (size_t i = 0; i < a->n; i++) {
		const struct question *q = &a->q[i];
		int64_t most = q->seen ? ASK_SEEN_MS : a->patience_ms;
		if (now_ms - q->since_ms < most)
			continue;
		*to = (struct ask_answer){ .tag = q->tag, .word = ASK_NO };
		snprintf(to->who, sizeof to->who, q->seen ?
			 "nobody: it was read, not answered" :
			 "nobody: nobody was there");
		return true;
	}
	return false;
}

/* --- the file --- */

/* A reader gets what is open and then its end of file; the next one gets it
 * again, as long as it is open.  Who has not read yet is given nothing more,
 * and who has just read has a while to close. */
void ask_offer(struct asks *a, int64_t now_ms)
{
	cleanup_buf struct buf b = { 0 };
	int unread = 0;
	if (a->n == 0 || now_ms - a->given_ms < GIVEN_MS)
		return;
	cleanup_fd int fd = openat(a->dir, ASK_FILE, O_WRONLY | O_NONBLOCK |
				   O_CLOEXEC);
	if (fd < 0 || ioctl(fd, FIONREAD, &unread) < 0 || unread)
		return;
	for (size_t i = 0; i < a->n; i++)
		buf_addf(&b, "%u %s\n", a->q[i].tag, a->q[i].text);
	if (buf_failed(&b) || write(fd, b.data, b.len) != (ssize_t)b.len)
		return;
	a->given_ms = now_ms;
	for (size_t i = 0; i < a->n; i++) {
		a->q[i].seen = true;
		a->q[i].since_ms = now_ms;
	}
}

/* --- the other side --- */

int ask_be_present(int dir, int *lock)
{
	*lock = openat(dir, ASK_PRESENT, O_RDWR | O_CLOEXEC);
	return *lock >= 0 && flock(*lock, LOCK_SH | LOCK_NB) == 0 ? 0 : -1;
}

int ask_send(int dir, unsigned tag, enum ask_word word, const char *who)
{
	char line[LINE_MAX_BYTES];
	cleanup_fd int fd = openat(dir, ASK_ANSWER, O_WRONLY | O_NONBLOCK |
				   O_CLOEXEC);
	int n = snprintf(line, sizeof line, "%u %s %s\n", tag, words[word],
			 who);
	return fd >= 0 && write(fd, line, (size_t)n) == n ? 0 : -1;
}
