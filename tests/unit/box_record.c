/* SPDX-License-Identifier: MIT
 *
 * A record: made, checked, shown; and every byte of it changed. */
#include <fcntl.h>
#include <sys/stat.h>

#include "runner/record/chain.h"
#include "runner/record/page.h"
#include "runner/record/proof.h"
#include "runner/record/plain.h"
#include "tests/unit/tap.h"

#define RUN "r-20260102-abc"
#define EVIL "</script><script>alert(1)</script><!-- \\u003c \x1b[2J"

static char dir[] = "/tmp/airloxfs-record-XXXXXX";
static int dir_fd;
static struct buf lines;

static void slurp(const char *name, struct buf *to)
{
	int fd = openat(dir_fd, name, O_RDONLY);
	uint8_t *p = buf_room(to, 1 << 20);
	ssize_t n = p ? read(fd, p, 1 << 20) : -1;
	to->len += n > 0 ? (size_t)n : 0;
	close(fd);
}

static void make_chain(void)
{
	struct err e = { 0 };
	struct chain *c = chain_new(dir_fd, "record.jsonl", RUN, &e);
	ok(c != NULL, "a chain (%s)", e.why);
	ok(!chain_new(dir_fd, "record.jsonl", RUN, &e), "not over another");
	ok(!chain_new(dir_fd, "other", "../x", &e), "a run's name is checked");
	ok(chain_add(c, PART_RUN, 1000, bytes_str("{\"argv\":[\"sh\"]}"),
		     &e) == 0, "run");
	ok(chain_say(c, 1500, "stdout", bytes_str(EVIL "\nsecond"), &e) == 0,
	   "text");
	ok(chain_say(c, 1600, "stderr", (struct bytes){
		(const uint8_t *)"\xff\x00z", 3 }, &e) == 0, "no UTF-8");
	ok(chain_add(c, PART_EGRESS, 2000, bytes_str("{\"decision\":\"denied\","
		     "\"host\":\"<b>\"}"), &e) == 0, "egress");
	ok(chain_add(c, PART_EGRESS, 2100, bytes_str("{\"decision\":"
		     "\"allowed\",\"host\":\"api.example\",\"method\":"
		     "\"GET\",\"path\":\"/v1\",\"port\":443,\"status\":200}"),
		     &e) == 0, "egress, allowed");
	ok(chain_add(c, PART_TOOL, 2200, bytes_str("{\"title\":\"<img src=x "
		     "onerror=alert(2)>\"}"), &e) == 0, "tool");
	ok(chain_add(c, PART_FILE, 2300, bytes_str("{\"change\":\"changed\","
		     "\"diff\":\"@@ -1 +1 @@\\n-old\\n+new <b>\","
		     "\"path\":\"src/a.py\"}"), &e) == 0, "file");
	ok(chain_add(c, PART_SESSION, 2400, bytes_str("{\"path\":"
		     "\"out/answer.md\",\"sha256\":\"00\"}"), &e) == 0,
	   "session");
	ok(chain_add(c, PART_END, 61500, bytes_str("{\"exit\":0}"), &e) == 0,
	   "end");
	chain_free(c);
	slurp("record.jsonl", &lines);
}

static void make_page(struct buf *page, const char *key)
{
	struct err e = { 0 };
	struct signer *s = signer_open(dir_fd, key, &e);
	ok(s != NULL, "a key (%s)", e.why);
	ok(page_put(page, bytes_str(RUN), buf_bytes(&lines), s, &e) == 0,
	   "a page (%s)", e.why);
	signer_free(s);
}

static void check_good(struct buf *page)
{
	struct err e = { 0 };
	struct proof p;
	cleanup_buf struct buf shown = { 0 };
	ok(proof_check(&p, buf_bytes(page), NULL, &e) == 0, "it holds (%s)",
	   e.why);
	ok(p.parts == 9 && !p.pinned, "nine parts, nobody pinned");
	char key[SIGNER_FINGERPRINT];
	strcpy(key, p.fingerprint);
	ok(proof_check(&p, buf_bytes(page), key, &e) == 0 && p.pinned,
	   "pinned");
	key[0] = key[0] == '0' ? '1' : '0';
	ok(proof_check(&p, buf_bytes(page), key, &e) < 0 &&
	   e.code == ERR_FORBIDDEN, "another key is refused: %s", e.why);
	ok(plain_put(&shown, &p, &e) == 0, "shown");
	ok(strstr(buf_cstr(&shown), "+1:00.500  end  exit=0"), "with times");
	ok(!memchr(shown.data, 0x1b, shown.len), "escaped");
	ok(strstr(buf_cstr(&shown), "<!-- \\\\u003c \\x1B[2J"), "and whole");
	char *data = strstr(buf_cstr(page), PAGE_DATA) + strlen(PAGE_DATA);
	char *end = strstr(data, "</script>");
	ok(strncmp(end, PAGE_DATA_END "<script>", 18) == 0 &&
	   !memchr(data, '<', (size_t)(end - data)), "no markup in the data");
}

/* Whatever byte is changed, it is seen, and never by another key's word. */
static void check_changed(struct buf *page)
{
	struct err e;
	struct proof p;
	size_t unseen = 0, unnamed = 0;
	for (size_t i = 0; i < page->len; i++) {
		page->data[i] ^= 1;
		unseen += proof_check(&p, buf_bytes(page), NULL, &e) == 0;
		unnamed += !strstr(e.why, "altered") &&
			!strstr(e.why, "not a record");
		page->data[i] ^= 1;
	}
	ok(unseen == 0, "each of %zu bytes changed is seen, but %zu",
	   page->len, unseen);
	ok(unnamed == 0, "and said");
	char *at = strstr(buf_cstr(page), "\"host\":\"");
	at[9] ^= 1;
	ok(proof_check(&p, buf_bytes(page), NULL, &e) < 0 &&
	   strstr(e.why, "part 4"), "the part is named: %s", e.why);
	at[9] ^= 1;
	char *title = strstr(buf_cstr(page), "<title>");
	title[8] ^= 1;
	ok(proof_check(&p, buf_bytes(page), NULL, &e) < 0 &&
	   strstr(e.why, "the page around"), "the page: %s", e.why);
	title[8] ^= 1;
	struct bytes cut = { page->data, page->len - 1 };
	ok(proof_check(&p, cut, NULL, &e) < 0 && e.code == ERR_INVALID,
	   "cut: %s", e.why);
	buf_add_str(page, "\n");
	ok(proof_check(&p, buf_bytes(page), NULL, &e) < 0, "grown");
	page->len--;
}

/* A part taken out, and the page signed again by another. */
static void check_broken(void)
{
	struct err e = { 0 };
	cleanup_buf struct buf page = { 0 };
	struct signer *s = signer_open(dir_fd, "key", &e);
	char *second = strchr(buf_cstr(&lines), '\n') + 1;
	char *third = strchr(second, '\n') + 1;
	cleanup_buf struct buf less = { 0 };
	buf_add(&less, lines.data, (size_t)(second - (char *)lines.data));
	buf_add_str(&less, third);
	ok(page_put(&page, bytes_str(RUN), buf_bytes(&less), s, &e) < 0 &&
	   strstr(e.why, "part 2"), "nobody signs a broken chain: %s", e.why);
	struct bytes torn = { lines.data, lines.len - 5 };
	buf_reset(&page);
	ok(page_put(&page, bytes_str(RUN), torn, s, &e) == 0,
	   "a torn end loses its part");
	struct proof p;
	ok(proof_check(&p, buf_bytes(&page), NULL, &e) == 0 && p.parts == 8,
	   "and the rest holds");
	signer_free(s);
}

static void check_key(void)
{
	struct err e = { 0 };
	uint8_t a[PRIM_PUB], b[PRIM_PUB];
	struct stat st;
	struct signer *s = signer_open(dir_fd, "key", &e);
	struct signer *t = signer_open(dir_fd, "key", &e);
	signer_pub(s, a);
	signer_pub(t, b);
	ok(memcmp(a, b, sizeof a) == 0, "the key is kept");
	signer_free(s);
	signer_free(t);
	fstatat(dir_fd, "key", &st, 0);
	ok((st.st_mode & 07777) == 0600, "0600");
	ok(fchmodat(dir_fd, "key", 0640, 0) == 0 &&
	   !signer_open(dir_fd, "key", &e), "others may read it: %s", e.why);
	ok(fchmodat(dir_fd, "key", 0600, 0) == 0, "ours again");
	int fd = openat(dir_fd, "key", O_WRONLY | O_TRUNC);
	close(fd);
	ok(!signer_open(dir_fd, "key", &e), "an empty key: %s", e.why);
}

int main(void)
{
	cleanup_buf struct buf page = { 0 };
	if (prim_init() < 0 || !mkdtemp(dir))
		return 1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	make_chain();
	make_page(&page, "key");
	check_good(&page);
	check_changed(&page);
	check_broken();
	check_key();
	if (getenv("RECORD_OUT")) {	/* for a browser test */
		int fd = open(getenv("RECORD_OUT"),
			      O_WRONLY | O_CREAT | O_TRUNC, 0600);
		ok(write(fd, page.data, page.len) == (ssize_t)page.len, "kept");
		close(fd);
	}
	unlinkat(dir_fd, "key", 0);
	unlinkat(dir_fd, "record.jsonl", 0);
	rmdir(dir);
	buf_free(&lines);
	return done_testing();
}
