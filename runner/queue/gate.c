/* SPDX-License-Identifier: MIT */
#include "runner/queue/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/clear.h"
#include "core/json.h"
#include "runner/box/serve.h"
#include "runner/run.h"
#include "runner/tell.h"

#define CHECK_MS 30000
#define READY_MS 120000		/* programs that print a credential */
#define HIGH 64
#define NAMED 10		/* denials that a reason names */
#define ACCOUNT_MAX (16u << 20)

static int find_box(char path[PATH_MAX], struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 16);
	if (n > 0) {
		path[n] = 0;
		strcpy(strrchr(path, '/') + 1, "airlox-box");
		if (access(path, X_OK) == 0)
			return 0;
	}
	return run_find("airlox-box", path, PATH_MAX) ? 0 :
	       err_set(e, ERR_NOT_FOUND, "--policy needs airlox-box, which is "
		       "not here");
}

int gate_check(const char *policy, struct err *e)
{
	char path[PATH_MAX], *real = realpath(policy, NULL);
	cleanup_buf struct buf out = { 0 };
	cleanup_free char *held = real;
	if (!real)
		return err_sys(e, "%s", policy);
	if (find_box(path, e) < 0)
		return -1;
	const char *const argv[] = { path, "check", real, NULL };
	const struct run_ask ask = { .argv = argv, .uid = (uid_t)-1,
				     .gid = (gid_t)-1, .timeout_ms = CHECK_MS,
				     .stop = -1 };
	int r = run_program(&ask, &out, e);
	if (r <= 0)
		return r;
	const char *s = buf_cstr(&out);
	const char *last = s ? strstr(s, "airlox-box: ") : NULL;
	return err_set(e, ERR_POLICY, "%.250s", last ? last : "a bad policy");
}

/* --- the broker --- */

static _Noreturn void become(const char *path, int control, int policy,
			     int account)
{
	int at[3] = { control, policy, account };
	for (int i = 0; i < 3; i++)
		at[i] = fcntl(at[i], F_DUPFD_CLOEXEC, HIGH);
	for (int i = 0; i < 3; i++)
		if (at[i] < 0 || dup2(at[i], SERVE_CONTROL_FD + i) < 0)
			_exit(127);
	close(SERVE_COPY_FD);
	setsid();
	execl(path, "airlox-box", SERVE_ARG, (char *)NULL);
	_exit(127);
}

static int wait_ready(struct gate *g, struct err *e)
{
	struct pollfd p = { .fd = g->doors.control, .events = POLLIN };
	char text[8192];
	int rc;
	do
		rc = poll(&p, 1, READY_MS);
	while (rc < 0 && errno == EINTR);
	ssize_t n = rc > 0 ? recv(p.fd, text, sizeof text - 1, 0) : -1;
	text[n > 0 ? n : 0] = 0;
	if (n > 6 && !memcmp(text, "ready\n", 6)) {
		buf_add(&g->ca, text + 6, (size_t)n - 6);
		return 0;
	}
	return err_set(e, ERR_POLICY, "%s", n > 5 && !memcmp(text, "fail\n", 5)
		       ? text + 5 : "the broker did not start");
}

/* A token of this job, without which the proxy answers nothing. */
static int give_token(struct gate *g, struct err *e)
{
	uint8_t raw[16];
	char text[2 * sizeof raw + 8] = "token ", said[8];
	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		return err_sys(e, "no random numbers");
	for (size_t i = 0; i < sizeof raw; i++)
		snprintf(text + 6 + 2 * i, 3, "%02x", raw[i]);
	snprintf(g->proxy, sizeof g->proxy, "http://box:%s@127.0.0.1:%d",
		 text + 6, DOORS_PROXY_PORT);
	size_t n = strlen(text);
	if (send(g->doors.control, text, n, MSG_NOSIGNAL) == (ssize_t)n &&
	    recv(g->doors.control, said, sizeof said, 0) == 2 &&
	    !memcmp(said, "ok", 2))
		return 0;
	return err_set(e, ERR_SYS, "the broker did not start");
}

int gate_open(struct gate *g, const char *policy, struct err *e)
{
	char path[PATH_MAX];
	int pair[2];
	*g = (struct gate){ .broker = -1, .account = -1,
			    .doors = { .control = -1 } };
	cleanup_fd int text = open(policy, O_RDONLY | O_CLOEXEC);
	if (text < 0)
		return err_sys(e, "%s", policy);
	g->account = memfd_create("account", MFD_CLOEXEC);
	if (find_box(path, e) < 0)
		return -1;
	if (g->account < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "cannot make a socket for the broker");
	g->broker = fork();
	if (g->broker == 0)
		become(path, pair[1], text, g->account);
	close(pair[1]);
	g->doors.control = pair[0];
	if (g->broker < 0)
		return err_sys(e, "cannot start the broker");
	return wait_ready(g, e) < 0 || give_token(g, e) < 0 ? -1 : 0;
}

void gate_env(const struct gate *g, const char *env[GATE_ENV])
{
	static const char *const names[] = {
		"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY",
		"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
		"PIP_CERT"
	};
	size_t n = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		env[n++] = names[i];
		env[n++] = i < 4 ? g->proxy : GATE_BUNDLE;
	}
	env[n] = NULL;
}

/* --- what was denied --- */

static struct bytes text_of(const struct json *doc, const char *key)
{
	for (const struct json *v = doc->child; v; v = v->next)
		if (bytes_eq(v->key, bytes_str(key)) &&
		    v->type == JSON_STRING)
			return v->str;
	return bytes_str("");
}

/* " api.example.com (reason)", once each. */
static void name_denial(struct buf *names, size_t *n, struct bytes line)
{
	struct json *doc = json_parse(line, NULL);
	cleanup_buf struct buf b = { 0 };
	if (doc && doc->type == JSON_OBJECT &&
	    bytes_eq(text_of(doc, "decision"), bytes_str("denied"))) {
		struct bytes host = text_of(doc, "host");
		struct bytes why = text_of(doc, "reason");
		host.n = host.n > 100 ? 100 : host.n;
		why.n = why.n > 120 ? 120 : why.n;
		clear_escape(&b, host);
		buf_add_str(&b, " (");
		clear_escape(&b, why);
		buf_add_byte(&b, ')');
		const char *s = buf_cstr(&b), *all = buf_cstr(names);
		if (s && all && *n < NAMED && !strstr(all, s)) {
			buf_addf(names, "%s%s", names->len ? ", " : "", s);
			++*n;
		}
	}
	json_free(doc);
}

static void name_denials(const struct gate *g, struct verdict *v)
{
	cleanup_buf struct buf names = { 0 };
	size_t n = 0;
	off_t size = lseek(g->account, 0, SEEK_END);
	if (size <= 0 || size > (off_t)ACCOUNT_MAX)
		return;
	uint8_t *all = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED,
			    g->account, 0);
	if (all == MAP_FAILED)
		return;
	for (size_t at = 0; at < (size_t)size;) {
		const uint8_t *lf = memchr(all + at, '\n', (size_t)size - at);
		size_t len = lf ? (size_t)(lf - all) - at : (size_t)size - at;
		name_denial(&names, &n, (struct bytes){ all + at, len });
		at += len + 1;
	}
	munmap(all, (size_t)size);
	if (n && buf_cstr(&names))
		verdict_add(v, "denied by the runner's policy: %s",
			    buf_cstr(&names));
}

void gate_close(struct gate *g, struct verdict *v)
{
	if (g->doors.control >= 0)
		close(g->doors.control);
	while (g->broker > 0 && waitpid(g->broker, NULL, 0) < 0)
		if (errno != EINTR)
			break;
	if (v && g->account >= 0)
		name_denials(g, v);
	if (g->account >= 0)
		close(g->account);
	buf_free(&g->ca);
	*g = (struct gate){ .broker = -1, .account = -1,
			    .doors = { .control = -1 } };
}
