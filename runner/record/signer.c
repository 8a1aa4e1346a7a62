/* SPDX-License-Identifier: MIT */
#include "runner/record/signer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/enc.h"
#include "core/hash.h"

struct signer {
	uint8_t seed[PRIM_SEED];
};

/* Under a name of its own first: two that come at once have one key. */
static int make(int dir_fd, const char *file, struct err *e)
{
	char tmp[80];
	uint8_t seed[PRIM_SEED];
	uint64_t tag;
	prim_random(&tag, sizeof tag);
	prim_random(seed, sizeof seed);
	snprintf(tmp, sizeof tmp, ".key-%016llx", (unsigned long long)tag);
	int fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			0600);
	if (fd < 0) {
		prim_wipe(seed, sizeof seed);
		return err_sys(e, "cannot make the key that signs records");
	}
	int bad = write(fd, seed, sizeof seed) != (ssize_t)sizeof seed ||
		fsync(fd) < 0;
	prim_wipe(seed, sizeof seed);
	if (close(fd) < 0 || bad ||
	    (linkat(dir_fd, tmp, dir_fd, file, 0) < 0 && errno != EEXIST)) {
		err_sys(e, "cannot make the key that signs records");
		unlinkat(dir_fd, tmp, 0);
		return -1;
	}
	unlinkat(dir_fd, tmp, 0);
	return fsync(dir_fd) < 0 ? err_sys(e, "cannot keep the key that signs "
					   "records") : 0;
}

static int read_seed(int fd, struct signer *s, const char *file, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "cannot look at the key %s", file);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 077)
		return err_set(e, ERR_INVALID, "the key %s is not yours "
			       "alone: see who made it, then chmod 600 or "
			       "move it away", file);
	if (st.st_size != PRIM_SEED ||
	    read(fd, s->seed, PRIM_SEED) != PRIM_SEED)
		return err_set(e, ERR_INVALID, "the key %s is damaged: move "
			       "it away and a new one is made", file);
	return 0;
}

struct signer *signer_open(int dir_fd, const char *file, struct err *e)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
	cleanup_fd int fd = openat(dir_fd, file, flags);
	if (fd < 0 && errno == ENOENT) {
		if (make(dir_fd, file, e) < 0)
			return NULL;
		fd = openat(dir_fd, file, flags);
	}
	if (fd < 0) {
		err_sys(e, "cannot open the key %s", file);
		return NULL;
	}
	struct signer *s = prim_secret_alloc(sizeof *s);
	if (!s) {
		err_set(e, ERR_MEMORY, "no locked memory for the key: raise "
			"the limit (ulimit -l)");
		return NULL;
	}
	if (read_seed(fd, s, file, e) < 0) {
		signer_free(s);
		return NULL;
	}
	return s;
}

void signer_pub(const struct signer *s, uint8_t pub[PRIM_PUB])
{
	prim_pub(pub, s->seed);
}

void signer_sign(const struct signer *s, uint8_t sig[PRIM_SIG],
		 struct bytes statement)
{
	prim_sign(sig, s->seed, statement.p, statement.n);
}

void signer_free(struct signer *s)
{
	prim_secret_free(s);
}

void signer_fingerprint(char out[SIGNER_FINGERPRINT],
			const uint8_t pub[PRIM_PUB])
{
	uint8_t hash[HASH_SIZE];
	hash_sha256(hash, pub, PRIM_PUB);
	enc_hex(out, hash, (SIGNER_FINGERPRINT - 1) / 2);
}
