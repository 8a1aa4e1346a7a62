/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host/cache.h"
#include "core/session.h"
#include "tests/unit/tap.h"

#define SID "ax_aaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID "AAAAAAAAAAAAAAAAAAAAAA"

static struct err e;
static char root[] = "/tmp/airloxfs-cache.XXXXXX";

static int mode_of(const char *tail)
{
	char path[256];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", root, tail);
	return stat(path, &st) < 0 ? -1 : (int)(st.st_mode & 07777);
}

static void put(const char *tail, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", root, tail);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || file_put(fd, text, strlen(text), &e) < 0)
		printf("Bail out! %s\n", path);
	close(fd);
}

static void identities(struct cache *c)
{
	struct identity id = { .role = ROLE_SENDER, .token = "tok-_3",
			       .base_url = strdup("http://localhost:1") };
	struct identity back;
	cleanup_buf struct buf text = { 0 };
	is_int(cache_load_identity(c, ROLE_SENDER, &back, &e), 1, "none yet");
	identity_free(&back);
	memset(id.seed, 0xa1, PRIM_SEED);
	is_int(cache_save_identity(c, &id, &e), 0, "saved");
	is_int(mode_of(SID "/identity-sender.json"), 0600, "for us alone");
	file_read(c->dir, "identity-sender.json", 4096, &text, &e);
	is_str(buf_cstr(&text), "{\"participant_seed\":\"a1a1a1a1a1a1a1a1a1a1"
	       "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1\",\"token\":"
	       "\"tok-_3\",\"role\":\"sender\",\"base_url\":"
	       "\"http://localhost:1\"}",
	       "as the published client writes it");
	is_int(cache_load_identity(c, ROLE_SENDER, &back, &e), 0, "loaded");
	is_mem(back.seed, id.seed, PRIM_SEED, "the seed");
	is_str(back.token, "tok-_3", "the token");
	is_str(back.base_url, "http://localhost:1", "the relay");
	identity_free(&back);
	identity_free(&id);
}

/* The SDK writes with spaces; an early one without a relay. */
static void foreign_identity(struct cache *c)
{
	struct identity id;
	put(SID "/identity-owner.json", "{\"participant_seed\": \""
	    "000102030405060708090a0b0c0d0e0f"
	    "101112131415161718191a1b1c1d1e1f\", \"token\": \"t\", "
	    "\"role\": \"owner\"}");
	is_int(cache_load_identity(c, ROLE_OWNER, &id, &e), 0, "the SDK's");
	ok(id.seed[31] == 0x1f && !id.base_url, "is read");
	identity_free(&id);
	static const char *const bad[] = {
		"", "{", "[]", "{\"participant_seed\":\"00\",\"token\":\"t\"}",
		"{\"participant_seed\":\"000102030405060708090a0b0c0d0e0f"
		"101112131415161718191a1b1c1d1e1f\",\"role\":\"owner\"}",
		"{\"participant_seed\":\"000102030405060708090a0b0c0d0e0f"
		"101112131415161718191a1b1c1d1e1f\",\"token\":\"t\","
		"\"role\":\"sender\"}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put(SID "/identity-owner.json", bad[i]);
		is_int(cache_load_identity(c, ROLE_OWNER, &id, &e), -1,
		       "damaged: '%.20s'", bad[i]);
		identity_free(&id);
	}
}

static void blobs(struct cache *c)
{
	struct cache_stage s;
	char path[256], text[8] = "";
	ok(cache_open_blob(c, ID, &e) < 0 && e.code == ERR_NOT_FOUND,
	   "no blob yet");
	is_int(cache_stage(c, &s, &e), 0, "staged");
	file_put(s.fd, "cipher", 6, &e);
	ok(cache_open_blob(c, ID, &e) < 0, "not there before it is whole");
	is_int(cache_keep(c, &s, ID, &e), 0, "kept");
	close(s.fd);
	int fd = cache_open_blob(c, ID, &e);
	ok(fd >= 0 && read(fd, text, 6) == 6 && !strcmp(text, "cipher"),
	   "read again");
	close(fd);
	is_int(mode_of(SID "/blobs/" ID), 0600, "for us alone");
	is_int(cache_stage(c, &s, &e), 0, "another");
	ok(cache_keep(c, &s, "../manifest.json", &e) < 0,
	   "a name that is no id is refused");
	cache_drop(c, &s);
	close(s.fd);
	ok(cache_open_blob(c, "../../x", &e) < 0 && e.code == ERR_INVALID,
	   "also for reading");
	cache_remove_blob(c, ID);
	snprintf(path, sizeof path, "%s/" SID "/blobs/" ID, root);
	ok(symlink("/etc/hostname", path) == 0, "a link in its place");
	ok(cache_open_blob(c, ID, &e) < 0 && e.code == ERR_NOT_FOUND,
	   "is not followed, and is as good as nothing: %s", e.why);
	unlink(path);
	is_int(mkfifo(path, 0600), 0, "a fifo");
	ok(cache_open_blob(c, ID, &e) < 0, "does not hold us up");
	unlink(path);
}

/* A manifest that is over, and one whose time has not come. */
static void write_session(int64_t expires_ms, char sid[SESSION_ID + 1])
{
	uint8_t owner[PRIM_SEED];
	cleanup_buf struct buf text = { 0 };
	struct manifest m = { .created_at_ms = 1000, .max_item_bytes = 1000,
			      .expires_at_ms = expires_ms, .allowed_n = 1 };
	m.allowed[TYPE_TEXT] = true;
	m.order[0] = TYPE_TEXT;
	prim_random(owner, sizeof owner);
	for (int i = 0; i < ROLES; i++) {
		uint8_t seed[PRIM_SEED];
		session_role_seed(seed, owner, (enum role)i);
		prim_pub(m.pub[i], seed);
	}
	key_session_id(m.session_id, m.pub[ROLE_OWNER]);
	strcpy(sid, m.session_id);
	if (manifest_build(&text, &m, owner, &e) < 0)
		printf("Bail out! %s\n", e.why);
	struct cache *c = cache_open(root, sid, &e);
	is_int(cache_save_manifest(c, buf_bytes(&text), &e), 0, "a session");
	cache_free(c);
}

static void sweeping(void)
{
	char over[SESSION_ID + 1], alive[SESSION_ID + 1], endless[SESSION_ID + 1];
	write_session(2000, over);
	write_session(9000, alive);
	write_session(MANIFEST_FOREVER, endless);
	put(SID "/manifest.json", "{\"manifest\":{\"expires_at_ms\":1}}");
	cache_sweep(root, 5000);
	is_int(mode_of(over), -1, "what is over is swept");
	is_int(mode_of(alive), 0700, "what is not is not");
	is_int(mode_of(endless), 0700, "nor what has no end");
	is_int(mode_of(SID), 0700, "nor what nobody signed");
	is_int(cache_remove(root, alive, &e), 0, "removed by hand");
	is_int(mode_of(alive), -1, "gone");
	is_int(cache_remove(root, alive, &e), 0, "twice is fine");
	ok(cache_remove(root, "..", &e) < 0, "no session id, no removal");
	cache_remove(root, endless, &e);
}

int main(void)
{
	if (prim_init() < 0 || !mkdtemp(root))
		return 1;
	struct cache *c = cache_open(root, SID, &e);
	if (!ok(c != NULL, "a cache"))
		return done_testing();
	is_int(mode_of(SID), 0700, "its directory is private");
	identities(c);
	foreign_identity(c);
	blobs(c);
	cache_free(c);
	sweeping();
	cache_remove(root, SID, &e);
	is_int(rmdir(root), 0, "nothing is left");
	return done_testing();
}
