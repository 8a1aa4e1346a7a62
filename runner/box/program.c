/* SPDX-License-Identifier: MIT */
#include "runner/box/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/run.h"

#define DEPTH_MAX 6	/* a script's interpreter may be a script */
#define LIST_MS 10000

struct placing {
	struct room *room;
	struct buf path;	/* directories for PATH, each after a colon */
};

static int place(struct placing *p, const char *path, int depth,
		 struct err *e);

/* --- what is there already --- */

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

static bool is_visible(const struct room *r, const char *path)
{
	for (size_t i = 0; i < r->mount_n; i++) {
		const struct plan_mount *m = &r->mount[i];
		if ((m->kind == PLAN_RO || m->kind == PLAN_RW) &&
		    !strcmp(m->from, m->to) && is_below(path, m->to))
			return true;
	}
	return false;
}

/* /bin/sh and the like lead into /usr by links that the box has too. */
static bool is_system(const char *path)
{
	static const char *const dirs[] = { "/usr", "/bin", "/sbin", "/lib",
					    "/lib64", NULL };
	for (int i = 0; dirs[i]; i++)
		if (is_below(path, dirs[i]))
			return true;
	return false;
}

static void bind(struct placing *p, const char *path)
{
	char real[PATH_MAX];
	if (is_system(path) || is_visible(p->room, path) ||
	    !realpath(path, real))
		return;
	room_mount(p->room, PLAN_RO, room_keep(p->room, "%s", real),
		   room_keep(p->room, "%s", path), 0);
}

static void cut_name(char path[PATH_MAX])
{
	char *slash = strrchr(path, '/');
	if (slash)
		slash[slash == path] = 0;
}

static void dir_of(char to[PATH_MAX], const char *path)
{
	snprintf(to, PATH_MAX, "%s", path);
	cut_name(to);
}

/* Its directory, for those who look a program up. */
static void add_path(struct placing *p, const char *path)
{
	char dir[PATH_MAX];
	dir_of(dir, path);
	if (!is_system(dir))
		buf_addf(&p->path, ":%s", dir);
}

/* --- a Python environment --- */

/* DIR/bin/python3.11 belongs to DIR where that has lib/python3.11. */
static bool place_prefix(struct placing *p, const char *real)
{
	char prefix[PATH_MAX], lib[PATH_MAX + 64];
	const char *name = strrchr(real, '/') + 1;
	dir_of(prefix, real);
	cut_name(prefix);
	snprintf(lib, sizeof lib, "%s/lib/%s/os.py", prefix, name);
	if (strncmp(name, "python3.", 8) != 0 || access(lib, R_OK) < 0)
		return false;
	bind(p, prefix);
	return true;
}

/* DIR/bin/x with DIR/pyvenv.cfg: all of DIR, and the Python that it is of. */
static bool place_venv(struct placing *p, const char *path, int depth,
		       int *rc, struct err *e)
{
	char dir[PATH_MAX], name[PATH_MAX + 32], python[PATH_MAX];
	dir_of(dir, path);
	cut_name(dir);
	snprintf(name, sizeof name, "%s/pyvenv.cfg", dir);
	if (access(name, R_OK) < 0)
		return false;
	bind(p, dir);
	add_path(p, path);
	snprintf(name, sizeof name, "%s/bin/python", dir);
	*rc = realpath(name, python) ? place(p, python, depth + 1, e) : 0;
	return true;
}

/* --- a script --- */

static size_t read_start(const char *path, char *to, size_t cap)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, cap - 1);
	to[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* The program that `#!/usr/bin/env NAME` leads to. */
static int place_by_env(struct placing *p, char *words, int depth,
			struct err *e)
{
	char found[PATH_MAX], *save = NULL;
	char *s = strtok_r(words, " \t", &save);
	while (s && (s[0] == '-' || strchr(s, '=')))
		s = strtok_r(NULL, " \t", &save);
	if (!s)
		return 0;
	if (!run_find(s, found, sizeof found))
		return err_set(e, ERR_NOT_FOUND, "no program %s here, which "
			       "the agent needs", s);
	return place(p, found, depth + 1, e);
}

static int place_interpreter(struct placing *p, char *line, int depth,
			     struct err *e)
{
	char *end = strchr(line, '\n');
	if (end)
		*end = 0;
	line += 2 + strspn(line + 2, " \t");
	char *rest = line + strcspn(line, " \t");
	if (*rest)
		*rest++ = 0;
	const char *base = strrchr(line, '/');
	if (base && !strcmp(base, "/env"))
		return place_by_env(p, rest, depth, e);
	return base ? place(p, line, depth + 1, e) : 0;
}

/* --- a program --- */

/* Its loader, "" where it is static or no ELF of this machine. */
static void read_loader(const char *path, char to[PATH_MAX])
{
	union { char bytes[8192]; Elf64_Ehdr h; } u;
	size_t n = read_start(path, u.bytes, sizeof u.bytes);
	to[0] = 0;
	if (n < sizeof u.h || memcmp(u.h.e_ident, ELFMAG, SELFMAG) != 0 ||
	    u.h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    u.h.e_phentsize != sizeof(Elf64_Phdr))
		return;
	for (size_t i = 0; i < u.h.e_phnum; i++) {
		Elf64_Phdr ph;
		size_t at = u.h.e_phoff + i * sizeof ph;
		if (u.h.e_phoff > n || at + sizeof ph > n)
			return;
		memcpy(&ph, u.bytes + at, sizeof ph);
		if (ph.p_type == PT_INTERP && ph.p_offset < n &&
		    ph.p_filesz <= n - ph.p_offset && ph.p_filesz < PATH_MAX)
			snprintf(to, PATH_MAX, "%.*s", (int)ph.p_filesz,
				 u.bytes + ph.p_offset);
	}
}

/* "\tNAME => PATH (0x...)" of the loader's list, which runs nothing of it. */
static void place_libraries(struct placing *p, const char *path)
{
	char loader[PATH_MAX], real[PATH_MAX], *save = NULL;
	cleanup_buf struct buf out = { 0 };
	read_loader(path, loader);
	if (!loader[0])
		return;
	bind(p, loader);
	const char *const argv[] = { loader, "--list", path, NULL };
	const struct run_ask ask = { .argv = argv, .uid = (uid_t)-1,
				     .gid = (gid_t)-1, .timeout_ms = LIST_MS,
				     .stop = -1 };
	if (run_program(&ask, &out, NULL) != 0 || !buf_cstr(&out))
		return;
	for (char *s = strtok_r(buf_cstr(&out), "\n", &save); s;
	     s = strtok_r(NULL, "\n", &save)) {
		char *at = strstr(s, " => /"), *end = strstr(s, " (0x");
		if (!at || !end)
			continue;
		*end = 0;
		if (realpath(at + 4, real) && !is_system(real))
			bind(p, at + 4);
	}
}

/* .../node_modules/NAME/x: with all that stands beside NAME. */
static bool place_modules(struct placing *p, const char *real)
{
	char dir[PATH_MAX];
	const char *at = strstr(real, "/node_modules/");
	if (!at)
		return false;
	snprintf(dir, sizeof dir, "%.*s/node_modules", (int)(at - real), real);
	bind(p, dir);
	return true;
}

static void place_file(struct placing *p, const char *path, const char *real)
{
	struct room *r = p->room;
	if (!place_modules(p, real) && !place_prefix(p, real))
		bind(p, real);
	/* the name by which it is called leads to it, as it does here */
	if (strcmp(path, real) != 0 && !is_system(path) &&
	    !is_visible(r, path))
		room_mount(r, PLAN_LINK, room_keep(r, "%s", real),
			   room_keep(r, "%s", path), 0);
}

/* path: absolute. */
static int place(struct placing *p, const char *path, int depth,
		 struct err *e)
{
	char real[PATH_MAX], start[512];
	int rc = 0;
	struct stat st;
	if (depth > DEPTH_MAX)
		return err_set(e, ERR_USAGE, "%s: interpreters without end",
			       path);
	if (!realpath(path, real) || stat(real, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "%s is no file", path);
	if (place_venv(p, path, depth, &rc, e))
		return rc;
	place_file(p, path, real);
	add_path(p, path);
	if (read_start(real, start, sizeof start) > 2 && start[0] == '#' &&
	    start[1] == '!')
		return place_interpreter(p, start, depth, e);
	if (!is_system(real))
		place_libraries(p, real);
	return 0;
}

/* --- the command --- */

static size_t skip_env(const struct policy_words *agent)
{
	const char *base = strrchr(agent->word[0], '/');
	size_t i = 0;
	if (!strcmp(base ? base + 1 : agent->word[0], "env"))
		for (i = 1; i < agent->n && strchr(agent->word[i], '='); i++)
			;
	return i;
}

static int find(const char *word, char path[PATH_MAX], struct err *e)
{
	if (word[0] == '/')
		snprintf(path, PATH_MAX, "%s", word);
	else if (strchr(word, '/'))
		return err_set(e, ERR_USAGE, "agent: name %s by its whole "
			       "path", word);
	else if (!run_find(word, path, PATH_MAX))
		return err_set(e, ERR_NOT_FOUND, "agent: no program %s here",
			       word);
	return 0;
}

static void set_path(struct placing *p)
{
	struct room *r = p->room;
	const char *more = buf_cstr(&p->path);
	for (size_t i = 0; i + 1 < r->env_n; i += 2)
		if (!strcmp(r->env[i], "PATH") && more)
			r->env[i + 1] = room_keep(r, "%s%s", r->env[i + 1],
						  more);
}

/* Files among the arguments are of it: python3 /opt/agent/main.py. */
static void place_words(struct placing *p, const struct policy_words *agent,
			size_t at)
{
	char real[PATH_MAX];
	struct stat st;
	for (size_t i = at + 1; i < agent->n; i++) {
		const char *s = agent->word[i];
		if (s[0] == '/' && realpath(s, real) && stat(real, &st) == 0 &&
		    S_ISREG(st.st_mode))
			place_file(p, s, real);
	}
}

int program_place(struct room *r, const struct policy_words *agent,
		  const char *const **argv, struct err *e)
{
	struct placing p = { .room = r };
	char path[PATH_MAX];
	if (agent->n == 0)
		return err_set(e, ERR_USAGE, "the policy names no agent: "
			       "agent: [PROGRAM, ARG]");
	size_t at = skip_env(agent);
	if (at == agent->n)
		return err_set(e, ERR_USAGE, "agent: env of no program");
	int rc = find(agent->word[at], path, e);
	if (rc == 0)
		rc = place(&p, path, 0, e);
	if (rc == 0) {
		place_words(&p, agent, at);
		set_path(&p);
	}
	buf_free(&p.path);
	if (rc < 0)
		return -1;
	r->argv = calloc(agent->n + 1, sizeof *r->argv);
	for (size_t i = 0; r->argv && i < agent->n; i++)
		r->argv[i] = i == at ? room_keep(r, "%s", path) :
				       agent->word[i];
	*argv = r->argv;
	return r->argv ? 0 : err_set(e, ERR_MEMORY, "out of memory");
}
