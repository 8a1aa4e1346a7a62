/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "runner/run.h"
#include "runner/runtime/cache.h"
#include "runner/runtime/libs.h"
#include "runner/runtime/python.h"

#define PROBE_MS 20000

/* Five lines; what it cannot know is empty. */
static const char probe[] =
	"import os, sys, sysconfig\n"
	"libs = [l.split()[-1] for l in open('/proc/self/maps')\n"
	"        if '/libc.so.6' in l or '/libc-2' in l]\n"
	"print(os.path.realpath(sys.executable))\n"
	"print(os.path.realpath(sys.base_prefix))\n"
	"print(sysconfig.get_path('stdlib'))\n"
	"print(sysconfig.get_path('platstdlib'))\n"
	"print(os.path.dirname(libs[0]) if libs else '')\n"
	"print('%d.%d' % sys.version_info[:2])\n";

bool python_is_name(const char *name)
{
	static const char lead[] = "python3.";
	size_t n = sizeof lead - 1;
	return !strncmp(name, lead, n) && strlen(name) <= n + 3 && name[n] &&
	       !name[n + strspn(name + n, "0123456789")];
}

static bool take_line(char **text, char *to, size_t cap)
{
	size_t n = strcspn(*text, "\n");
	if (!(*text)[n] || n >= cap)
		return false;
	memcpy(to, *text, n);
	to[n] = 0;
	*text += n + 1;
	return true;
}

static bool ask(struct python *p, const char *exe)
{
	const char *const argv[] = { exe, "-I", "-S", "-c", probe, NULL };
	static const char *const env[] = { "LANG=C.UTF-8", "HOME=/", NULL };
	const struct run_ask ask = { .argv = argv, .env = env,
				     .uid = (uid_t)-1, .timeout_ms = PROBE_MS,
				     .stop = -1 };
	cleanup_buf struct buf out = { 0 };
	char version[16];

	if (run_program(&ask, &out, NULL) != 0 || !buf_cstr(&out))
		return false;
	char *text = buf_cstr(&out);
	return take_line(&text, p->exe, PATH_MAX) &&
	       take_line(&text, p->prefix, PATH_MAX) &&
	       take_line(&text, p->stdlib, PATH_MAX) &&
	       take_line(&text, p->platlib, PATH_MAX) &&
	       take_line(&text, p->libs, PATH_MAX) &&
	       take_line(&text, version, sizeof version) &&
	       !strcmp(version, p->name + strlen("python")) &&
	       p->exe[0] == '/' && p->stdlib[0] == '/' && p->libs[0] == '/';
}

static bool ask_uv(struct python *p)
{
	char uv[PATH_MAX];
	if (!run_find("uv", uv, sizeof uv))
		return false;
	const char *const argv[] = { uv, "python", "find", "--no-project",
				     p->name + strlen("python"), NULL };
	const struct run_ask how = { .argv = argv, .uid = (uid_t)-1,
				     .timeout_ms = PROBE_MS, .stop = -1 };
	cleanup_buf struct buf out = { 0 };
	if (run_program(&how, &out, NULL) != 0 || !buf_cstr(&out))
		return false;
	char *path = buf_cstr(&out);
	path[strcspn(path, "\n")] = 0;
	return path[0] == '/' && ask(p, path);
}

static void add(struct python *p, enum plan_kind kind, const char *from,
		const char *to)
{
	if (p->n_mounts < PYTHON_MOUNTS)
		p->mounts[p->n_mounts++] =
			(struct plan_mount){ kind, from, to, 0 };
}

/* The loader's path is fixed in every program. */
static void add_loader(struct python *p)
{
#if defined(__x86_64__)
	snprintf(p->loader[0], PATH_MAX, "%s", p->libs + 1);
	snprintf(p->loader[1], PATH_MAX, "/lib64");
#elif defined(__aarch64__)
	snprintf(p->loader[0], PATH_MAX, "%.4000s/ld-linux-aarch64.so.1",
		 p->libs);
	snprintf(p->loader[1], PATH_MAX, "/usr/lib/ld-linux-aarch64.so.1");
#endif
	add(p, PLAN_LINK, "usr/lib", "/lib");
	if (p->loader[1][0] && strcmp(p->libs, "/usr/lib64"))
		add(p, PLAN_LINK, p->loader[0], p->loader[1]);
	else
		add(p, PLAN_LINK, "usr/lib64", "/lib64");
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return !strncmp(path, dir, n) && path[n] == '/';
}

static void make_mounts(struct python *p)
{
	p->n_mounts = 0;
	add(p, PLAN_RO, p->libs, p->libs);
	if (!strcmp(p->prefix, "/usr")) {
		add(p, PLAN_RO, p->exe, p->exe);
		add(p, PLAN_RO, p->stdlib, p->stdlib);
		if (strcmp(p->stdlib, p->platlib))
			add(p, PLAN_RO, p->platlib, p->platlib);
	} else {
		add(p, PLAN_RO, p->prefix, p->prefix);
		if (!is_below(p->exe, p->prefix))
			add(p, PLAN_RO, p->exe, p->exe);
	}
	if (access("/usr/share/zoneinfo", F_OK) == 0)
		add(p, PLAN_RO, "/usr/share/zoneinfo", "/usr/share/zoneinfo");
	add_loader(p);
}

int python_find(struct python *p, const char *name, struct err *e)
{
	char path[PATH_MAX];

	*p = (struct python){ 0 };
	if (!python_is_name(name))
		return err_set(e, ERR_NOT_FOUND,
			       "this runner knows no runtime of that name");
	snprintf(p->name, sizeof p->name, "%s", name);
	snprintf(path, sizeof path, "/usr/bin/%s", name);
	if ((access(path, X_OK) == 0 && ask(p, path)) ||
	    (run_find(name, path, sizeof path) && ask(p, path)) ||
	    ask_uv(p)) {
		make_mounts(p);
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "this runner has no %s", name);
}

int python_trim(struct python *p, const struct site *s, const char *given,
		struct err *e)
{
	char cache_path[PATH_MAX], extensions[PATH_MAX];
	cleanup_fd int cache = cache_open(s, given, cache_path, e);
	if (cache < 0)
		return -1;
	snprintf(extensions, sizeof extensions, "%.4000s/lib-dynload",
		 p->platlib);
	const struct libs_ask ask = { .exe = p->exe, .extensions = extensions,
				      .dir = p->libs, .cache = cache,
				      .cache_path = cache_path };
	if (libs_get(&ask, p->trimmed, e) < 0)
		return -1;
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].from == p->libs)
			p->mounts[i].from = p->trimmed;
	return 0;
}
