/* SPDX-License-Identifier: MIT */
#include "runner/box/room.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/box/doors.h"
#include "runner/box/slurp.h"

#define HOME_BYTES (UINT64_C(256) << 20)
#define TMP_BYTES (UINT64_C(512) << 20)
#define BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define BUNDLE_MAX (4u << 20)

const char *room_keep(struct room *r, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	va_start(ap, fmt);
	if (r->text_n == ROOM_TEXTS || vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	if (!s) {
		r->failed = true;
		return "";
	}
	r->text[r->text_n++] = s;
	return s;
}

void room_mount(struct room *r, enum plan_kind kind, const char *from,
		const char *to, uint64_t size_bytes)
{
	if (r->mount_n == ROOM_MOUNTS) {
		r->failed = true;
		return;
	}
	r->mount[r->mount_n++] = (struct plan_mount){ kind, from, to,
						      size_bytes };
}

static void set_env(struct room *r, const char *name, const char *value)
{
	if (r->env_n + 2 > ROOM_ENV) {
		r->failed = true;
		return;
	}
	r->env[r->env_n++] = name;
	r->env[r->env_n++] = value;
}

/* --- the system's part --- */

static void put_system(struct room *r)
{
	static const char *const links[] = { "/bin", "/sbin", "/lib", "/lib32",
					     "/lib64", "/libx32", NULL };
	static const char *const files[] = {
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
		"/etc/protocols", "/etc/services", NULL
	};
	struct stat st;
	room_mount(r, PLAN_RO, "/usr", "/usr", 0);
	for (int i = 0; links[i]; i++) {
		char to[128];
		ssize_t n = readlink(links[i], to, sizeof to - 1);
		if (n > 0)
			room_mount(r, PLAN_LINK, room_keep(r, "%.*s", (int)n,
				   to), links[i], 0);
		else if (stat(links[i], &st) == 0)
			room_mount(r, PLAN_RO, links[i], links[i], 0);
	}
	for (int i = 0; files[i]; i++)
		if (access(files[i], R_OK) == 0)
			room_mount(r, PLAN_RO, files[i], files[i], 0);
}

/* Programs that know nothing of proxies find the broker under the names of
 * the hosts that may be reached. */
static const char *hosts_file(struct room *r, const struct policy *p)
{
	cleanup_buf struct buf b = { 0 };
	buf_add_str(&b, "127.0.0.1 localhost\n::1 localhost\n");
	for (size_t i = 0; i < p->rule_n; i++) {
		const struct policy_place *at = &p->rule[i].place;
		uint16_t door = p->rule[i].tls == POLICY_PLAIN ? 80 : 443;
		if (!at->below && !at->local && at->host.port == door)
			buf_addf(&b, "127.0.0.1 %s\n", at->host.name);
	}
	const char *s = buf_cstr(&b);
	r->failed |= !s;
	return s ? room_keep(r, "%s", s) : "";
}

/* What the box trusts: the broker alone; and what the system trusts where
 * something is carried as it is. */
static const char *bundle(struct room *r, const struct room_ask *ask)
{
	static const char *const system[] = {
		BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/cert.pem", NULL
	};
	cleanup_buf struct buf b = { 0 };
	bool passes = false;
	buf_add(&b, ask->ca.p, ask->ca.n);
	for (size_t i = 0; i < ask->policy->rule_n; i++)
		passes |= ask->policy->rule[i].tls == POLICY_PASSTHROUGH;
	for (int i = 0; passes && system[i]; i++) {
		cleanup_fd int fd = open(system[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && slurp(fd, BUNDLE_MAX, &b, NULL) == 0)
			break;
	}
	const char *s = buf_cstr(&b);
	r->failed |= !s;
	return s ? room_keep(r, "%s", s) : "";
}

static void put_etc(struct room *r, const struct room_ask *ask)
{
	static const char passwd[] =
		"box:x:1000:1000:box:/home/box:/bin/sh\n"
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
	room_mount(r, PLAN_FILE, passwd, "/etc/passwd", 0);
	room_mount(r, PLAN_FILE, "box:x:1000:\nnogroup:x:65534:\n",
		   "/etc/group", 0);
	room_mount(r, PLAN_FILE, hosts_file(r, ask->policy), "/etc/hosts", 0);
	room_mount(r, PLAN_FILE, "hosts: files\npasswd: files\ngroup: files\n",
		   "/etc/nsswitch.conf", 0);
	room_mount(r, PLAN_FILE, bundle(r, ask), BUNDLE, 0);
	room_mount(r, PLAN_LINK, BUNDLE, "/etc/ssl/cert.pem", 0);
	room_mount(r, PLAN_LINK, BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt",
		   0);
}

/* --- environment --- */

static void put_proxies(struct room *r, const struct policy *p,
			const char *token)
{
	static const char *const proxies[] = { "http_proxy", "https_proxy",
					       "HTTP_PROXY", "HTTPS_PROXY" };
	static const char *const bundles[] = {
		"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO"
	};
	bool local = false;
	const char *url = room_keep(r, "http://box:%s@127.0.0.1:%d", token,
				    DOORS_PROXY_PORT);
	for (size_t i = 0; i < 4; i++)
		set_env(r, proxies[i], url);
	for (size_t i = 0; i < 6; i++)
		set_env(r, bundles[i], BUNDLE);
	/* else it asks without the token first */
	set_env(r, "GIT_HTTP_PROXY_AUTHMETHOD", "basic");
	for (size_t i = 0; i < p->rule_n; i++)
		local |= p->rule[i].place.local;
	/* a service that the box starts for itself; where the policy means the
	 * host's, those words have to reach the broker */
	for (int i = 0; i < 2 && !local; i++)
		set_env(r, i ? "NO_PROXY" : "no_proxy",
			"localhost,127.0.0.1,::1");
}

static void put_env(struct room *r, const struct policy *p,
		    const char *token)
{
	const char *term = getenv("TERM");
	set_env(r, "PATH", "/usr/local/bin:/usr/bin:/bin");
	set_env(r, "HOME", "/home/box");
	set_env(r, "USER", "box");
	set_env(r, "LANG", "C.UTF-8");
	set_env(r, "TMPDIR", "/tmp");
	if (term && strlen(term) < 64)
		set_env(r, "TERM", room_keep(r, "%s", term));
	put_proxies(r, p, token);
	for (size_t i = 0; i < p->credential_n; i++) {
		const struct policy_credential *c = &p->credential[i];
		if (c->env)
			set_env(r, c->env, c->placeholder ? c->placeholder :
				"put-in-by-the-broker");
	}
}

/* --- files of the policy --- */

static bool is_taken(const char *at)
{
	static const char *const ours[] = { "/usr", "/proc", "/dev", "/etc",
					    "/run", "/bin", "/sbin", "/lib",
					    "/lib64", "/session", NULL };
	for (int i = 0; ours[i]; i++) {
		size_t n = strlen(ours[i]);
		if (!strncmp(at, ours[i], n) && (!at[n] || at[n] == '/'))
			return true;
	}
	return false;
}

/* What is bound is bound under its real name; a copy lies in the box's own
 * directory. */
static int put_file(struct room *r, const struct room_ask *ask, size_t i,
		    struct err *e)
{
	const struct policy_file *f = &ask->policy->file[i];
	if (is_taken(f->at))
		return err_set(e, ERR_USAGE, "line %u: %s is the box's own",
			       f->line, f->at);
	if (f->mode == POLICY_COPY) {
		room_mount(r, PLAN_RW, room_keep(r, "%s/copy-%zu", ask->copies,
						 i), f->at, 0);
		return 0;
	}
	char *real = realpath(f->path, NULL);
	if (!real)
		return err_sys(e, "line %u: %s", f->line, f->path);
	room_mount(r, f->mode == POLICY_READ ? PLAN_RO : PLAN_RW,
		   room_keep(r, "%s", real), f->at, 0);
	free(real);
	return 0;
}

static bool has_work(const struct policy *p)
{
	for (size_t i = 0; i < p->file_n; i++)
		if (!strcmp(p->file[i].at, "/work"))
			return true;
	return false;
}

static int put_files(struct room *r, const struct room_ask *ask,
		     struct err *e)
{
	const struct policy *p = ask->policy;
	if (!has_work(p))
		room_mount(r, PLAN_RW, ask->work, "/work", 0);
	for (size_t i = 0; i < p->file_n; i++)
		if (put_file(r, ask, i, e) < 0)
			return -1;
	return 0;
}

/* --- a session, by name: never its root --- */

static int put_session(struct room *r, const struct room_ask *ask,
		       struct err *e)
{
	const struct session_found *s = ask->session;
	bool writes = ask->policy->session == POLICY_SESSION_WRITE;
	if (!s)
		return 0;
	if (ask->policy->session == POLICY_NONE)
		return err_set(e, ERR_USAGE, "--session, and the policy gives "
			       "the box none: session: read, or session: write "
			       "in it");
	for (int i = 0; i < SESSION_NAMES; i++) {
		bool write = i >= SESSION_READS;
		if (s->has[i] && (!write || writes))
			room_mount(r, write ? PLAN_RW : PLAN_RO,
				   room_keep(r, "%s/%s", s->path,
					     session_names[i]),
				   room_keep(r, "/session/%s",
					     session_names[i]), 0);
	}
	return 0;
}

int room_make(struct room *r, const struct room_ask *ask, struct err *e)
{
	*r = (struct room){ 0 };
	r->mount_n = plan_base(r->mount, ask->masks, TMP_BYTES);
	put_system(r);
	put_etc(r, ask);
	room_mount(r, PLAN_TMPFS, NULL, "/home/box", HOME_BYTES);
	room_mount(r, PLAN_RO, ask->egress, "/run/airlox/egress", 0);
	if (put_files(r, ask, e) < 0 || put_session(r, ask, e) < 0)
		return -1;
	put_env(r, ask->policy, ask->token);
	return r->failed ? err_set(e, ERR_MEMORY, "too much for a box") : 0;
}

void room_free(struct room *r)
{
	for (size_t i = 0; i < r->text_n; i++)
		free(r->text[i]);
	free(r->argv);
	*r = (struct room){ 0 };
}
