/* SPDX-License-Identifier: MIT
 *
 * A relay of a few canned answers, good and bad, on a socket of its own. */
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/host/rest.h"
#include "core/prim.h"
#include "tests/unit/tap.h"

#define JSON "Content-Type: application/json\r\n"

static const struct {
	const char *path, *answer;
} canned[] = {
	{ "/ok", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" },
	{ "/none", "HTTP/1.1 204 No Content\r\n\r\n" },
	{ "/401", "HTTP/1.1 401 x\r\nContent-Length: 2\r\n\r\n{}" },
	{ "/403", "HTTP/1.1 403 x\r\n" JSON "Content-Length: 53\r\n\r\n"
	  "{\"error\":\"forbidden\",\"message\":\"no \\u001b[31m\\u202e\"}" },
	{ "/404", "HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n" },
	{ "/409", "HTTP/1.1 409 x\r\nContent-Length: 21\r\n\r\n"
	  "{\"error\":\"duplicate\"}" },
	{ "/busy", "HTTP/1.1 409 x\r\nContent-Length: 23\r\n\r\n"
	  "{\"error\":\"runner_busy\"}" },
	{ "/410", "HTTP/1.1 410 x\r\nContent-Length: 0\r\n\r\n" },
	{ "/413", "HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n" },
	{ "/429", "HTTP/1.1 429 x\r\nRetry-After: 7\r\nContent-Length: 0"
	  "\r\n\r\n" },
	{ "/507", "HTTP/1.1 507 x\r\nContent-Length: 0\r\n\r\n" },
	{ "/500", "HTTP/1.1 500 x\r\nContent-Length: 6\r\n\r\n<html>" },
	{ "/418", "HTTP/1.1 418 x\r\nContent-Length: 0\r\n\r\n" },
	{ "/moved", "HTTP/1.1 302 x\r\nLocation: /ok\r\n"
	  "Content-Length: 0\r\n\r\n" },
	{ "/big", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890" },
	{ "/short", "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nhello" },
	{ "/noise", "what is this\r\n\r\n" },
	{ "/date", "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT"
	  "\r\nContent-Length: 0\r\n\r\n" },
	{ "/hang", "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nhello" },
	{ "/mute", "" },
	{ NULL, NULL }
};

static char seen[8192];		/* the last request's head */

static void answer(int fd)
{
	size_t n = 0;
	while (n < sizeof seen - 1 && !memmem(seen, n, "\r\n\r\n", 4)) {
		ssize_t m = read(fd, seen + n, sizeof seen - 1 - n);
		if (m <= 0)
			return;
		n += (size_t)m;
	}
	seen[n] = 0;
	const char *path = strchr(seen, ' ');
	for (int i = 0; path && canned[i].path; i++) {
		size_t p = strlen(canned[i].path);
		if (strncmp(path + 1, canned[i].path, p) || path[1 + p] != ' ')
			continue;
		size_t len = strlen(canned[i].answer);
		if (write(fd, canned[i].answer, len) != (ssize_t)len)
			return;
		/* the answer ends, the connection does not */
		char c;
		bool hang = !strcmp(canned[i].path, "/hang") ||
			    !strcmp(canned[i].path, "/mute");
		while (hang && read(fd, &c, 1) > 0)
			;
	}
}

static void *serve(void *arg)
{
	int fd;
	while ((fd = accept(*(int *)arg, NULL, NULL)) >= 0) {
		answer(fd);
		shutdown(fd, SHUT_WR);
		char sink[4096];
		while (read(fd, sink, sizeof sink) > 0)
			;
		close(fd);
	}
	return NULL;
}

static char base[64];

static void start(void)
{
	static int fd;
	static pthread_t t;
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		printf("Bail out! no socket\n");
	snprintf(base, sizeof base, "http://127.0.0.1:%d", ntohs(a.sin_port));
	pthread_create(&t, NULL, serve, &fd);
	pthread_detach(t);
}

static struct err e;
static struct clock clk;

static void is_code(struct rest *r, const char *path, enum err_code code,
		    int http)
{
	cleanup_buf struct buf got = { 0 };
	struct rest_call c = { .method = "GET", .path = path, .answer = &got,
			       .answer_max = 10 };
	e = (struct err){ 0 };
	int res = rest_do(r, &c, &e);
	ok((res == 0) == (code == ERR_NONE) && e.code == code &&
	   (http == 0 || c.http == http), "%s gives %d, http %d: %s", path,
	   (int)e.code, c.http, e.why);
}

static void codes(struct rest *r)
{
	is_code(r, "/ok", ERR_NONE, 200);
	is_code(r, "/none", ERR_NONE, 204);
	is_code(r, "/401", ERR_AUTH, 401);
	is_code(r, "/403", ERR_FORBIDDEN, 403);
	ok(strstr(e.why, "no \\x1B[31m\\u{202E}"), "its words are escaped");
	is_code(r, "/404", ERR_NOT_FOUND, 404);
	is_code(r, "/409", ERR_DUPLICATE, 409);
	is_code(r, "/busy", ERR_CONFLICT, 409);
	is_code(r, "/410", ERR_GONE, 410);
	is_code(r, "/413", ERR_SIZE, 413);
	is_code(r, "/429", ERR_RATE, 429);
	is_code(r, "/507", ERR_FULL, 507);
	is_code(r, "/500", ERR_NET, 500);
	is_code(r, "/418", ERR_PROTO, 418);
	is_code(r, "/moved", ERR_PROTO, 302);
	is_code(r, "/big", ERR_PROTO, 200);
	is_code(r, "/short", ERR_NET, 200);
	is_code(r, "/noise", ERR_PROTO, 0);
}

static void details(struct rest *r)
{
	struct rest_call c = { .method = "GET", .path = "/429" };
	rest_do(r, &c, &e);
	is_int(c.retry_after_ms, 7000, "Retry-After");
	c.path = "/busy";
	rest_do(r, &c, &e);
	is_str(c.word, "runner_busy", "the relay's word");
	ok(c.retry_after_ms == -1, "Retry-After is forgotten");
	c.path = "/date";
	rest_do(r, &c, &e);
	ok(clk.known && llabs(clock_relay_ms(&clk) - 1767225600500) < 3000,
	   "the relay's clock");
	ok(!strstr(seen, "Authorization"), "no token yet");
	is_int(rest_set_token(r, "t0ken", &e), 0, "a token");
	c.path = "/ok";
	rest_do(r, &c, &e);
	ok(strstr(seen, "\r\nAuthorization: Bearer t0ken\r\n"), "is sent");
	ok(rest_set_token(r, "a b", &e) < 0, "no token with a space");
	ok(rest_set_token(r, "a\r\nX: y", &e) < 0, "nor with a line end");
	rest_do(r, &c, &e);
	ok(!strstr(seen, "Authorization"), "none is left");
	c.method = "POST";
	c.body = bytes_str("{\"a\":1}");
	c.type = "application/json";
	is_int(rest_do(r, &c, &e), 0, "a body");
	ok(strstr(seen, "\r\nContent-Length: 7\r\n") &&
	   strstr(seen, "\r\nContent-Type: application/json\r\n") &&
	   !strcasestr(seen, "expect:"), "is announced");
}

static ssize_t endless(void *arg, void *to, size_t n)
{
	(void)arg;
	memset(to, 'x', n);
	return (ssize_t)n;
}

static ssize_t gives_up(void *arg, void *to, size_t n)
{
	(void)arg;
	(void)to;
	(void)n;
	return -1;
}

static void uploads(struct rest *r)
{
	struct rest_call c = { .method = "POST", .path = "/413",
			       .read = endless, .body_n = 64 << 20 };
	ok(rest_do(r, &c, &e) < 0 && e.code == ERR_SIZE,
	   "refused in the middle of an upload: %s", e.why);
	c.path = "/ok";
	c.read = gives_up;
	ok(rest_do(r, &c, &e) < 0 && e.code == ERR_SYS,
	   "the reader gave up: %s", e.why);
	c = (struct rest_call){ .method = "GET", .path = "/ok" };
	is_int(rest_do(r, &c, &e), 0, "and the next call is well");
}

static void *abort_soon(void *arg)
{
	usleep(100000);
	rest_abort(arg);
	return NULL;
}

static void waiting(struct rest *r)
{
	struct rest_call c = { .method = "GET", .path = "/hang",
			       .stall_ms = 300 };
	int64_t t = clock_mono_ms();
	ok(rest_do(r, &c, &e) < 0 && e.code == ERR_NET, "silence: %s", e.why);
	t = clock_mono_ms() - t;
	ok(t >= 290 && t < 3000, "is noticed in time: %lld ms", (long long)t);
	c.path = "/mute";
	c.stall_ms = 0;
	c.total_ms = 200;
	t = clock_mono_ms();
	ok(rest_do(r, &c, &e) < 0 && e.code == ERR_NET, "a total: %s", e.why);
	ok(clock_mono_ms() - t < 3000, "in time");
	c.total_ms = 0;
	pthread_t th;
	pthread_create(&th, NULL, abort_soon, r);
	t = clock_mono_ms();
	ok(rest_do(r, &c, &e) < 0 && e.code == ERR_NET, "abort: %s", e.why);
	ok(clock_mono_ms() - t < 1500, "ends the wait at once");
	pthread_join(th, NULL);
	c.path = "/ok";
	ok(rest_do(r, &c, &e) < 0, "and lasts");
	rest_resume(r);
	is_int(rest_do(r, &c, &e), 0, "until it is lifted");
}

int main(void)
{
	if (prim_init() < 0 || rest_init() < 0)
		return 1;
	start();
	struct rest *r = rest_new(base, &clk, &e);
	codes(r);
	details(r);
	uploads(r);
	waiting(r);
	rest_free(r);
	r = rest_new("http://127.0.0.1:1", NULL, &e);
	is_code(r, "/ok", ERR_NET, 0);
	rest_free(r);
	ok(!rest_new("ftp://127.0.0.1:1", NULL, &e) &&
	   e.code == ERR_INVALID, "no other protocol: %s", e.why);
	return done_testing();
}
