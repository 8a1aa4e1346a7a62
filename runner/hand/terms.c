/* SPDX-License-Identifier: MIT */
#include "runner/hand/terms.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/json.h"
#include "runner/hand/reply.h"

#define WORDS_MAX 1024u

extern char **environ;

/* --- starting --- */

struct start {
	char *argv[WORDS_MAX + 4];
	char *env[WORDS_MAX];	/* NAME=VALUE */
	char *cwd;
	size_t argc, env_n;
};

static char *copy(struct bytes s)
{
	return memchr(s.p, 0, s.n) ? NULL : strndup((const char *)s.p, s.n);
}

static void free_start(struct start *s)
{
	for (size_t i = 0; i < s->argc; i++)
		free(s->argv[i]);
	for (size_t i = 0; i < s->env_n; i++)
		free(s->env[i]);
	free(s->cwd);
}

static bool add_arg(struct start *s, struct bytes word)
{
	if (s->argc == WORDS_MAX || !(s->argv[s->argc] = copy(word)))
		return false;
	s->argc++;
	return true;
}

/* A command without arguments that no program could be called is a line for a
 * shell: agents send both. */
static bool read_command(struct start *s, const struct wire *params)
{
	struct bytes command = wire_text(wire_get(params, "command"));
	const struct wire *args = wire_get(params, "args");
	bool many = args && args->type == WIRE_LIST && args->child;
	char *word = copy(command);
	bool line = word && !many && strpbrk(word, " \t\n|&;<>()$`*?\"'~");
	free(word);
	if (line && !(add_arg(s, bytes_str("/bin/sh")) &&
		      add_arg(s, bytes_str("-c"))))
		return false;
	if (!add_arg(s, command))
		return false;
	for (const struct wire *v = many ? args->child : NULL; v; v = v->next)
		if (v->type != WIRE_TEXT || !add_arg(s, v->text))
			return false;
	return true;
}

static bool read_env(struct start *s, const struct wire *list)
{
	for (const struct wire *v = list && list->type == WIRE_LIST ?
	     list->child : NULL; v; v = v->next) {
		struct bytes name = wire_text(wire_get(v, "name"));
		struct bytes value = wire_text(wire_get(v, "value"));
		cleanup_buf struct buf b = { 0 };
		if (!name.n || memchr(name.p, '=', name.n) ||
		    s->env_n == WORDS_MAX)
			return false;
		buf_add(&b, name.p, name.n);
		buf_add_byte(&b, '=');
		buf_add(&b, value.p, value.n);
		if (!(s->env[s->env_n] = copy(buf_bytes(&b))))
			return false;
		s->env_n++;
	}
	return true;
}

static bool read_start(struct start *s, const struct wire *params)
{
	struct bytes cwd = wire_text(wire_get(params, "cwd"));
	if (cwd.n && (cwd.p[0] != '/' || !(s->cwd = copy(cwd))))
		return false;
	return read_command(s, params) && read_env(s, wire_get(params, "env"));
}

/* A process group of its own, so that what it starts ends with it. */
static _Noreturn void become(const struct start *s, int out, int told)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int null = open("/dev/null", O_RDONLY);
	for (size_t i = 0; i < s->env_n; i++)
		putenv(s->env[i]);
	if (dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2 &&
	    (!s->cwd || chdir(s->cwd) == 0))
		execvp(s->argv[0], s->argv);
	int number = errno;
	(void)!write(told, &number, sizeof number);
	_exit(127);
}

/* 0, or why it could not be started. */
static int run(struct term *t, const struct start *s)
{
	int out[2], told[2], number = 0;
	if (pipe2(out, O_CLOEXEC) < 0)
		return errno;
	if (pipe2(told, O_CLOEXEC) < 0) {
		number = errno;
		close(out[0]);
		close(out[1]);
		return number;
	}
	t->pid = fork();
	if (t->pid == 0)
		become(s, out[1], told[1]);
	if (t->pid < 0)
		number = errno;
	close(out[1]);
	close(told[1]);
	t->out = out[0];
	fcntl(t->out, F_SETFL, O_NONBLOCK);
	if (!number && read(told[0], &number, sizeof number) == sizeof number)
		waitpid(t->pid, NULL, 0);
	close(told[0]);
	if (number)
		close(t->out);
	return number;
}

static void create(struct terms *t, struct bytes id, const struct wire *params)
{
	struct start s = { .argc = 0 };
	struct term *to = NULL;
	int64_t limit = TERMS_BYTES;
	char text[300];
	for (size_t i = 0; i < TERMS_MAX && !to; i++)
		if (!t->term[i].number)
			to = &t->term[i];
	wire_int(wire_get(params, "outputByteLimit"), &limit);
	if (!to) {
		reply_error(id, REPLY_FAILED, "too many terminals: release "
			    "some");
	} else if (!read_start(&s, params)) {
		reply_error(id, REPLY_INVALID, "not a command");
	} else {
		*to = (struct term){ .limit = limit < 0 ? 0 : limit >
			TERMS_BYTES_MAX ? TERMS_BYTES_MAX : (size_t)limit };
		int number = run(to, &s);
		if (number) {
			snprintf(text, sizeof text, "%.200s: %s", s.argv[0],
				 strerror(number));
			reply_error(id, REPLY_FAILED, text);
		} else {
			to->number = ++t->numbers;
			snprintf(text, sizeof text, "{\"terminalId\":"
				 "\"term-%u\"}", to->number);
			reply_result(id, bytes_str(text));
		}
	}
	free_start(&s);
}

/* --- output --- */

bool terms_read(struct term *t)
{
	for (;;) {
		uint8_t *to = buf_room(&t->text, 16384);
		ssize_t n = to ? read(t->out, to, 16384) : -1;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			break;
		t->text.len += (size_t)n;
		if (t->text.len <= t->limit)
			continue;
		/* at a character's begin */
		size_t drop = t->text.len - t->limit;
		while (drop < t->text.len &&
		       (t->text.data[drop] & 0xc0) == 0x80)
			drop++;
		buf_consume(&t->text, drop);
		t->truncated = true;
	}
	close(t->out);
	t->out = -1;
	return false;
}

static void put_exit(struct buf *b, int status)
{
	buf_add_str(b, "{\"exitCode\":");
	if (WIFEXITED(status)) {
		buf_addf(b, "%d,\"signal\":null}", WEXITSTATUS(status));
		return;
	}
	const char *name = sigabbrev_np(WTERMSIG(status));
	buf_addf(b, "null,\"signal\":\"SIG%s\"}", name ? name : "?");
}

static void output(struct term *t, struct bytes id)
{
	cleanup_buf struct buf b = { 0 };
	if (t->out >= 0)
		terms_read(t);
	buf_add_str(&b, "{\"output\":");
	reply_put_text(&b, t->text.len ? buf_bytes(&t->text) : bytes_str(""));
	json_put_key_bool(&b, "truncated", t->truncated);
	if (!t->pid) {
		buf_add_str(&b, ",\"exitStatus\":");
		put_exit(&b, t->status);
	}
	buf_add_byte(&b, '}');
	reply_result(id, buf_bytes(&b));
}

static void answer_exit(const struct term *t, struct bytes id)
{
	cleanup_buf struct buf b = { 0 };
	put_exit(&b, t->status);
	reply_result(id, buf_bytes(&b));
}

static void wait_for(struct terms *t, const struct term *term, struct bytes id)
{
	if (!term->pid) {
		answer_exit(term, id);
		return;
	}
	for (size_t i = 0; i < TERMS_WAITS; i++) {
		struct term_wait *w = &t->wait[i];
		if (w->number || id.n > sizeof w->id)
			continue;
		w->number = term->number;
		memcpy(w->id, id.p, id.n);
		w->id_n = id.n;
		return;
	}
	reply_error(id, REPLY_FAILED, "too many waits");
}

static void answer_waits(struct terms *t, const struct term *term,
			 const char *error)
{
	for (size_t i = 0; i < TERMS_WAITS; i++) {
		struct term_wait *w = &t->wait[i];
		struct bytes id = { (const uint8_t *)w->id, w->id_n };
		if (w->number != term->number)
			continue;
		if (error)
			reply_error(id, REPLY_FAILED, error);
		else
			answer_exit(term, id);
		w->number = 0;
	}
}

/* --- the end of one --- */

static void kill_group(const struct term *t)
{
	if (t->pid > 0 && kill(-t->pid, SIGKILL) < 0)
		kill(t->pid, SIGKILL);
}

bool terms_ended(struct terms *t, pid_t pid, int status)
{
	for (size_t i = 0; i < TERMS_MAX; i++) {
		struct term *x = &t->term[i];
		if (!x->number || x->pid != pid)
			continue;
		if (x->out >= 0)
			terms_read(x);
		x->pid = 0;
		x->status = status;
		answer_waits(t, x, NULL);
		return true;
	}
	return false;
}

static void release(struct terms *t, struct term *x)
{
	kill_group(x);
	answer_waits(t, x, "released");
	if (x->out >= 0)
		close(x->out);
	buf_free(&x->text);
	*x = (struct term){ 0 };	/* its child is reaped as nobody's */
}

void terms_kill_all(struct terms *t)
{
	for (size_t i = 0; i < TERMS_MAX; i++)
		if (t->term[i].number)
			kill_group(&t->term[i]);
}

static struct term *find(struct terms *t, struct bytes name)
{
	char want[32];
	for (size_t i = 0; i < TERMS_MAX; i++) {
		snprintf(want, sizeof want, "term-%u", t->term[i].number);
		if (t->term[i].number && bytes_eq(name, bytes_str(want)))
			return &t->term[i];
	}
	return NULL;
}

void terms_serve(struct terms *t, struct bytes id, struct bytes method,
		 const struct wire *params)
{
	struct term *x = find(t, wire_text(wire_get(params, "terminalId")));
	if (bytes_eq(method, bytes_str("create"))) {
		create(t, id, params);
	} else if (!x) {
		reply_error(id, REPLY_INVALID, "no such terminal");
	} else if (bytes_eq(method, bytes_str("output"))) {
		output(x, id);
	} else if (bytes_eq(method, bytes_str("wait_for_exit"))) {
		wait_for(t, x, id);
	} else {
		kill_group(x);
		if (bytes_eq(method, bytes_str("release")))
			release(t, x);
		reply_result(id, bytes_str("{}"));
	}
}
