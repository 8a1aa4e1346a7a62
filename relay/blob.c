/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/prim.h"
#include "relay/blob.h"

static const uint8_t blob_head[BLOB_HEAD_N] = "airlox-blob\1";

struct blobs {
	int dirfd;	/* DIR/blobs, or -1 */
	bool look;
};

static void file_name(char name[17], uint64_t v)
{
	snprintf(name, 17, "%016llx", (unsigned long long)v);
}

struct blobs *blobs_open(int dirfd, struct err *e)
{
	struct blobs *bs = malloc(sizeof *bs);
	if (!bs) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	bs->dirfd = -1;
	bs->look = false;
	if (dirfd < 0)
		return bs;
	if (mkdirat(dirfd, "blobs", 0700) == 0 || errno == EEXIST)
		bs->dirfd = openat(dirfd, "blobs",
				   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (bs->dirfd < 0) {
		err_sys(e, "cannot open blobs in the data directory");
		free(bs);
		return NULL;
	}
	return bs;
}

void blobs_close(struct blobs *bs)
{
	if (bs && bs->dirfd >= 0)
		close(bs->dirfd);
	free(bs);
}

void blobs_look_only(struct blobs *bs) { bs->look = true; }

int blob_check_head(int fd)
{
	uint8_t head[BLOB_HEAD_N];
	return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
	       memcmp(head, blob_head, sizeof head) == 0 ? 0 : -1;
}

int blobs_sweep(struct blobs *bs, bool (*keep)(void *arg, uint64_t name),
		void *arg, size_t *removed, struct err *e)
{
	*removed = 0;
	if (bs->dirfd < 0)
		return 0;
	int fd = openat(bs->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_sys(e, "cannot list the blobs");
	for (struct dirent *de; (de = readdir(d));) {
		char name[17];
		unsigned long long v = strtoull(de->d_name, NULL, 16);
		file_name(name, v);
		if (strcmp(name, de->d_name) != 0 || keep(arg, v))
			continue;
		if (bs->look || unlinkat(bs->dirfd, name, 0) == 0)
			(*removed)++;
	}
	closedir(d);
	return 0;
}

int blob_create(struct blobs *bs, struct blob *b, int *fd, struct err *e)
{
	char name[17];
	do
		prim_random(&b->name, sizeof b->name);
	while (!b->name);
	b->fd = -1;
	file_name(name, b->name);
	*fd = bs->dirfd < 0 ? memfd_create("blob", MFD_CLOEXEC) :
	      openat(bs->dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
		     0600);
	if (*fd < 0)
		return err_sys(e, "cannot store the blob");
	if (write(*fd, blob_head, BLOB_HEAD_N) != BLOB_HEAD_N) {
		err_sys(e, "cannot store the blob");
		close(*fd);
		*fd = -1;
		blob_remove(bs, b);
		return -1;
	}
	return 0;
}

int blob_seal(struct blobs *bs, struct blob *b, int fd, struct err *e)
{
	if (bs->dirfd < 0) {
		b->fd = fd;
		return 0;
	}
	int rc = fdatasync(fd);
	if (close(fd) < 0 || rc < 0 || fsync(bs->dirfd) < 0)
		return err_sys(e, "cannot store the blob");
	return 0;
}

int blob_open(struct blobs *bs, const struct blob *b, struct err *e)
{
	char name[17];
	file_name(name, b->name);
	int fd = b->fd >= 0 ? fcntl(b->fd, F_DUPFD_CLOEXEC, 0) :
		 openat(bs->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		err_sys(e, "cannot open the blob");
	return fd;
}

bool blob_exists(struct blobs *bs, const struct blob *b)
{
	char name[17];
	file_name(name, b->name);
	return b->fd >= 0 || faccessat(bs->dirfd, name, F_OK, 0) == 0;
}

void blob_remove(struct blobs *bs, struct blob *b)
{
	char name[17];
	if (!b->name)
		return;
	file_name(name, b->name);
	if (b->fd >= 0)
		close(b->fd);
	else if (bs->dirfd >= 0 && !bs->look)
		unlinkat(bs->dirfd, name, 0);
	*b = (struct blob){ 0, -1 };
}
