/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/buf.h"
#include "runner/run.h"
#include "runner/runtime/libs.h"
#include "runner/sandbox/dirs.h"

#define TRACE_MS 20000
#define LIBS_MAX 400

/* What a wheel may rely on, beside libc and its parts. */
static const char *const extra[] = {
	"libgcc_s.so.1", "libstdc++.so.6", "libm.so.6", "libdl.so.2",
	"librt.so.1", "libpthread.so.0", "libutil.so.1", "libresolv.so.2",
	"libnsl.so.1", "libnss_files.so.2", "libnss_dns.so.2", "libz.so.1",
	"libanl.so.1", "libatomic.so.1",
};

struct lib {
	char name[128];
	char path[512];
};

struct list {
	struct lib v[LIBS_MAX];
	size_t n;
};

static void add_preload(struct buf *b, const char *dir, const char *name)
{
	buf_addf(b, "%s%s/%s", b->data[b->len - 1] == '=' ? "" : ":", dir,
		 name);
}

static void add_extensions(struct buf *b, const char *dir)
{
	DIR *d = dir[0] ? opendir(dir) : NULL;
	struct dirent *de;
	while (d && (de = readdir(d))) {
		size_t n = strlen(de->d_name);
		if (n > 3 && !strcmp(de->d_name + n - 3, ".so"))
			add_preload(b, dir, de->d_name);
	}
	if (d)
		closedir(d);
}

static void add_extra(struct buf *b, const char *dir)
{
	char path[PATH_MAX + 64];
	for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, extra[i]);
		if (access(path, R_OK) == 0)
			add_preload(b, dir, extra[i]);
	}
}

/* "\tNAME => PATH (0x...)", or "\tPATH (0x...)". */
static void add_line(struct list *l, const char *line, const char *dir)
{
	const char *at = strstr(line, " => "), *end = strstr(line, " (0x");
	struct lib *to = &l->v[l->n];
	char real[PATH_MAX];
	at = at ? at + 4 : line + (line[0] == '\t');
	if (!end || end <= at || *at != '/' || l->n == LIBS_MAX ||
	    (size_t)(end - at) >= sizeof to->path)
		return;
	snprintf(to->path, sizeof to->path, "%.*s", (int)(end - at), at);
	/* Extensions are where they are; this is about the one directory. */
	snprintf(real, sizeof real, "%s", to->path);
	*strrchr(real, '/') = 0;
	char *where = realpath(real[0] ? real : "/", NULL);
	bool here = where && (!strcmp(where, dir) || strstr(line, "ld-linux"));
	free(where);
	snprintf(to->name, sizeof to->name, "%.127s",
		 strrchr(to->path, '/') + 1);
	for (size_t i = 0; here && i < l->n; i++)
		here = strcmp(l->v[i].name, to->name) != 0;
	l->n += here;
}

static int trace(const struct libs_ask *ask, struct list *l, struct err *e)
{
	const char *const argv[] = { ask->exe, NULL };
	cleanup_buf struct buf preload = { 0 }, out = { 0 };
	buf_add_str(&preload, "LD_PRELOAD=");
	if (buf_failed(&preload))
		return err_set(e, ERR_MEMORY, "no memory");
	add_extensions(&preload, ask->extensions);
	add_extra(&preload, ask->dir);
	const char *const env[] = { "LD_TRACE_LOADED_OBJECTS=1",
				    buf_cstr(&preload), NULL };
	const struct run_ask run = { .argv = argv, .env = env,
				     .uid = (uid_t)-1, .timeout_ms = TRACE_MS,
				     .stop = -1 };
	if (!env[1] || run_program(&run, &out, e) != 0 || !buf_cstr(&out))
		return err_set(e, ERR_NOT_FOUND, "cannot list the libraries "
			       "of %s", ask->exe);
	for (char *line = strtok(buf_cstr(&out), "\n"); line;
	     line = strtok(NULL, "\n"))
		add_line(l, line, ask->dir);
	return l->n ? 0 : err_set(e, ERR_NOT_FOUND, "%s has no libraries",
				  ask->exe);
}

/* FNV-1a over what tells one state of the host's files from another. */
static uint64_t hash_of(const struct list *l)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < l->n; i++) {
		char text[800];
		struct stat st = { 0 };
		(void)stat(l->v[i].path, &st);
		snprintf(text, sizeof text, "%s %llu %llu %lld.%ld",
			 l->v[i].path, (unsigned long long)st.st_ino,
			 (unsigned long long)st.st_size,
			 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		for (const char *c = text; *c; c++)
			h = (h ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	}
	return h;
}

static int copy_all(const struct list *l, int to, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		cleanup_fd int in = open(l->v[i].path, O_RDONLY | O_CLOEXEC);
		cleanup_fd int out = openat(to, l->v[i].name, O_WRONLY |
					    O_CREAT | O_EXCL | O_CLOEXEC,
					    0755);
		if (in < 0 || out < 0 || fchmod(out, 0755) < 0)
			return err_sys(e, "cannot copy %s", l->v[i].path);
		if (dirs_copy_file(in, out, e) < 0)
			return err_prefix(e, "%s", l->v[i].path);
	}
	return 0;
}

static int build(const struct libs_ask *ask, const struct list *l,
		 const char *name, struct err *e)
{
	char tmp[96];
	snprintf(tmp, sizeof tmp, ".%.60s.%ld", name, (long)getpid());
	(void)dirs_remove(ask->cache, tmp, NULL);
	if (mkdirat(ask->cache, tmp, 0755) < 0)
		return err_sys(e, "cannot make a directory in %s",
			       ask->cache_path);
	cleanup_fd int to = openat(ask->cache, tmp, O_RDONLY | O_DIRECTORY |
				   O_CLOEXEC);
	int r = to < 0 || fchmod(to, 0755) < 0 ?
		err_sys(e, "cannot open the cache") : copy_all(l, to, e);
	/* Another runner may have been quicker: its own is as good. */
	if (r == 0 && renameat(ask->cache, tmp, ask->cache, name) < 0 &&
	    errno != EEXIST && errno != ENOTEMPTY)
		r = err_sys(e, "cannot keep the libraries");
	(void)dirs_remove(ask->cache, tmp, NULL);
	return r;
}

int libs_get(const struct libs_ask *ask, char path[PATH_MAX], struct err *e)
{
	struct list *l = calloc(1, sizeof *l);
	char name[64];
	struct stat st;
	int r = l ? trace(ask, l, e) : err_set(e, ERR_MEMORY, "no memory");
	if (r == 0) {
		snprintf(name, sizeof name, "libs-%016" PRIx64, hash_of(l));
		if (fstatat(ask->cache, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = build(ask, l, name, e);
	}
	if (r == 0 && snprintf(path, PATH_MAX, "%s/%s", ask->cache_path, name)
	    >= PATH_MAX)
		r = err_set(e, ERR_USAGE, "the cache's path is too long");
	free(l);
	return r;
}
