/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/buf.h"
#include "runner/run.h"
#include "runner/runtime/cache.h"
#include "runner/runtime/packages.h"
#include "runner/runtime/unpack.h"
#include "runner/sandbox/dirs.h"

#define DOWNLOAD_MS (10 * 60 * 1000)
#define ENV_MAX_BYTES (UINT64_C(16) << 30)

struct set {
	const char **v;		/* sorted, borrowed */
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int make_set(struct set *s, const char *const *names, size_t n)
{
	*s = (struct set){ malloc((n + 1) * sizeof *s->v), n };
	if (!s->v)
		return -1;
	memcpy(s->v, names, n * sizeof *s->v);
	qsort(s->v, n, sizeof *s->v, by_name);
	return 0;
}

/* FNV-1a over the interpreter and the names: a name, not a proof. */
static uint64_t hash_of(const struct python *p, const struct set *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i <= s->n; i++)
		for (const char *c = i < s->n ? s->v[i] : p->exe;; c++) {
			h = (h ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
			if (!*c)
				break;
		}
	return h;
}

/* --- downloading ---------------------------------------------------------- */

/* What pip and its TLS go by, and nothing else of our environment. */
static void add_env(const char **env, size_t cap, char *home)
{
	extern char **environ;
	static const char *const kept[] = { "PATH=", "PIP_", "SSL_CERT_",
		"REQUESTS_CA_BUNDLE=", "http_proxy=", "https_proxy=",
		"HTTP_PROXY=", "HTTPS_PROXY=", "no_proxy=", "NO_PROXY=" };
	size_t n = 0;
	env[n++] = "LANG=C.UTF-8";
	env[n++] = home;
	for (char **v = environ; *v && n + 1 < cap; v++)
		for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
			if (!strncmp(*v, kept[i], strlen(kept[i]))) {
				env[n++] = *v;
				break;
			}
	env[n] = NULL;
}

/* The interpreter's own pip, else the one that ensurepip would install. */
static const char find_pip[] =
	"import sys, runpy, glob, importlib.util as u\n"
	"if not u.find_spec('pip'):\n"
	"    s = u.find_spec('ensurepip')\n"
	"    d = [*s.submodule_search_locations] if s else []\n"
	"    w = [f for g in d for f in glob.glob(g + '/_bundled/pip-*.whl')]\n"
	"    w += glob.glob('/usr/share/python-wheels/pip-*.whl')\n"
	"    if not w:\n"
	"        sys.exit('no pip for this runtime')\n"
	"    sys.path.insert(0, w[0])\n"
	"sys.argv[0] = 'pip'\n"
	"runpy.run_module('pip', run_name='__main__')\n";

static int say_pip(const struct buf *out, struct err *e)
{
	/* pip's last line that is an error says what it was */
	const char *text = (const char *)out->data, *at = NULL;
	for (const char *p = text; p && (p = strstr(p, "ERROR: ")); p++)
		at = p + strlen("ERROR: ");
	if (!at && (at = strstr(text, "no pip")))
		return err_set(e, ERR_NOT_FOUND, "this runner has no pip for "
			       "this runtime, so no packages");
	return err_set(e, ERR_NOT_FOUND, "the packages cannot be had: %.*s",
		       at ? (int)strcspn(at, "\n") : 12,
		       at ? at : "pip failed");
}

static int download(const struct packages_ask *ask, const struct set *s,
		    const char *to, struct err *e)
{
	static const char *const words[] = {
		"-I", "-c", find_pip, "download", "--only-binary=:all:",
		"--no-input", "--disable-pip-version-check", "--no-cache-dir",
		"--progress-bar=off", "--quiet", "--dest"
	};
	enum { WORDS = sizeof words / sizeof *words };
	const char **argv = calloc(s->n + WORDS + 4, sizeof *argv);
	const char *env[128];
	char home[PATH_MAX + 8];
	cleanup_buf struct buf out = { 0 };
	size_t n = 0;

	if (!argv)
		return err_set(e, ERR_MEMORY, "no memory");
	argv[n++] = ask->python->exe;
	for (size_t i = 0; i < WORDS; i++)
		argv[n++] = words[i];
	argv[n++] = to;
	argv[n++] = "--";
	for (size_t i = 0; i < s->n; i++)
		argv[n++] = s->v[i];
	snprintf(home, sizeof home, "HOME=%s", to);
	add_env(env, sizeof env / sizeof *env, home);
	const struct run_ask run = {
		.argv = argv, .env = env, .dir = to, .timeout_ms = DOWNLOAD_MS,
		.uid = ask->host->uid, .gid = ask->host->gid,
		.stop = ask->stop,
	};
	int r = run_program(&run, &out, e);
	free(argv);
	if (r > 0 && !buf_cstr(&out))
		r = 0;
	return r <= 0 ? r : say_pip(&out, e);
}

/* --- an environment ------------------------------------------------------- */

static int put_file(int dir, const char *name, const char *text,
		    struct err *e)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC |
				   O_CLOEXEC, 0644);
	size_t n = strlen(text);
	if (fd < 0 || write(fd, text, n) != (ssize_t)n)
		return err_sys(e, "cannot write %s", name);
	return 0;
}

/* The two things that make it one, beside its packages. */
static int add_marks(const struct python *p, int dir, struct err *e)
{
	char text[PATH_MAX + 128], home[PATH_MAX];
	snprintf(home, sizeof home, "%s", p->exe);
	*strrchr(home, '/') = 0;
	snprintf(text, sizeof text, "home = %s\n"
		 "include-system-site-packages = false\n", home);
	if (put_file(dir, "pyvenv.cfg", text, e) < 0)
		return -1;
	if (mkdirat(dir, "bin", 0755) < 0 ||
	    symlinkat(p->exe, dir, "bin/python3") < 0)
		return err_sys(e, "cannot make an environment");
	return 0;
}

static int fill(const struct packages_ask *ask, const struct set *s,
		struct scratch *sc, int to, struct err *e)
{
	uint64_t bytes;
	if (download(ask, s, sc->work_path, e) < 0 ||
	    unpack_wheels(ask->host, ask->python, sc, ask->stop, e) < 0 ||
	    dirs_copy_in(sc->out, to, (uid_t)-1, (gid_t)-1, ENV_MAX_BYTES,
			 &bytes, e) < 0)
		return -1;
	return add_marks(ask->python, to, e);
}

static int build(const struct packages_ask *ask, const struct set *s,
		 int cache, const char *name, struct err *e)
{
	struct scratch sc;
	char tmp[96];
	uid_t uid = ask->host->root ? ask->host->uid : (uid_t)-1;
	gid_t gid = ask->host->root ? ask->host->gid : (gid_t)-1;

	snprintf(tmp, sizeof tmp, ".%.60s.%ld", name, (long)getpid());
	(void)dirs_remove(cache, tmp, NULL);
	if (mkdirat(cache, tmp, 0755) < 0)
		return err_sys(e, "cannot make a directory in the cache");
	cleanup_fd int to = openat(cache, tmp, O_RDONLY | O_DIRECTORY |
				   O_CLOEXEC);
	int r = to < 0 ? err_sys(e, "cannot open the cache") :
		scratch_make(&sc, ask->host->scratch, uid, gid, e);
	if (r == 0) {
		r = fill(ask, s, &sc, to, e);
		scratch_remove(&sc);
		scratch_close(&sc);
	}
	/* Another runner may have been quicker: its own is as good. */
	if (r == 0 && renameat(cache, tmp, cache, name) < 0 &&
	    errno != EEXIST && errno != ENOTEMPTY)
		r = err_sys(e, "cannot keep an environment");
	(void)dirs_remove(cache, tmp, NULL);
	return r;
}

static int get_set(const struct packages_ask *ask, const struct set *s,
		   int cache, char path[PATH_MAX], struct err *e)
{
	char name[64];
	size_t n = strlen(path);
	struct stat st;
	snprintf(name, sizeof name, "%s-%016" PRIx64, ask->python->name,
		 hash_of(ask->python, s));
	if (fstatat(cache, name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	    build(ask, s, cache, name, e) < 0)
		return -1;
	if (n + strlen(name) + 2 > PATH_MAX)
		return err_set(e, ERR_USAGE, "the cache's path is too long");
	snprintf(path + n, PATH_MAX - n, "/%s", name);
	return 0;
}

int packages_get(const struct packages_ask *ask, char path[PATH_MAX],
		 struct err *e)
{
	struct set all, some;
	cleanup_fd int cache = cache_open(ask->host, ask->cache, path, e);
	if (cache < 0)
		return -1;
	if (make_set(&all, ask->allowed, ask->n_allowed) < 0 ||
	    make_set(&some, ask->wanted, ask->n_wanted) < 0)
		return err_set(e, ERR_MEMORY, "no memory");
	int r = get_set(ask, &all, cache, path, e);
	if (r < 0 && e->code != ERR_GONE)
		r = get_set(ask, &some, cache, path, e);
	free(all.v);
	free(some.v);
	if (r < 0)
		path[0] = 0;
	return r;
}
