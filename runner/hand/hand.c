/* SPDX-License-Identifier: MIT */
#include "runner/hand/hand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "runner/agent/lines.h"
#include "runner/hand/files.h"
#include "runner/hand/reply.h"
#include "runner/hand/terms.h"

#define QUEUE_MAX (64u << 20)	/* what an agent has not read */
#define FDS (4 + TERMS_MAX)

struct hand {
	struct files files;
	struct terms terms;
	struct lines told, agent;	/* from outside; from the agent */
	struct buf queue;		/* for the agent */
	pid_t pid;			/* the agent, 0 when it has ended */
	int in, out, signals, status;
};

/* --- the agent --- */

static _Noreturn void become(char **argv, int in, int out)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(in, 0) == 0 && dup2(out, 1) == 1)
		execvp(argv[0], argv);
	dprintf(2, "cannot start %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int start(struct hand *h, char **argv)
{
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	h->pid = fork();
	if (h->pid == 0)
		become(argv, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	h->in = in[1];
	h->out = out[0];
	fcntl(h->in, F_SETFL, O_NONBLOCK);
	fcntl(h->out, F_SETFL, O_NONBLOCK);
	return h->pid < 0 ? -1 : 0;
}

static void kill_agent(const struct hand *h, int number)
{
	if (h->pid > 0 && kill(-h->pid, number) < 0)
		kill(h->pid, number);
}

/* What it takes without waiting; the rest later. */
static void write_agent(struct hand *h)
{
	while (h->queue.len && h->in >= 0) {
		ssize_t n = write(h->in, h->queue.data, h->queue.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			close(h->in);
			h->in = -1;
			break;
		}
		buf_consume(&h->queue, (size_t)n);
	}
	if (h->queue.len > QUEUE_MAX)	/* it does not read */
		kill_agent(h, SIGKILL);
}

/* false at its end. */
static bool read_agent(struct hand *h)
{
	uint8_t block[65536];
	struct bytes line;
	ssize_t n = read(h->out, block, sizeof block);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n > 0 && lines_add(&h->agent, (struct bytes){ block,
							  (size_t)n }) < 0) {
		reply_line(HAND_AGENT, bytes_str("(a line longer than 16 "
						 "MiB)"));
		kill_agent(h, SIGKILL);
		return false;
	}
	while (lines_next(&h->agent, &line))
		reply_line(HAND_AGENT, line);
	return n > 0;
}

/* --- what we are told --- */

static void serve(struct hand *h, struct bytes line)
{
	struct wire *doc = wire_read(line, NULL);
	const struct wire *id = wire_get(doc, "id");
	struct bytes method = wire_text(wire_get(doc, "method"));
	const struct wire *params = wire_get(doc, "params");
	const struct bytes term = bytes_str("terminal/");
	if (!id)
		;	/* nobody waits for an answer */
	else if (bytes_eq(method, bytes_str("fs/read_text_file")))
		files_read(&h->files, id->raw, params);
	else if (bytes_eq(method, bytes_str("fs/write_text_file")))
		files_write(&h->files, id->raw, params);
	else if (method.n > term.n && !memcmp(method.p, term.p, term.n))
		terms_serve(&h->terms, id->raw, (struct bytes){ method.p +
			    term.n, method.n - term.n }, params);
	wire_free(doc);
}

static void take(struct hand *h, struct bytes line)
{
	struct bytes rest = { line.p + 1, line.n - 1 };
	switch (line.p[0]) {
	case HAND_AGENT:
		buf_add(&h->queue, rest.p, rest.n);
		buf_add_byte(&h->queue, '\n');
		write_agent(h);
		break;
	case HAND_SERVE:
		serve(h, rest);
		break;
	case HAND_KILL:
		kill_agent(h, SIGTERM);
		break;
	}
}

/* false: nobody is there any more. */
static bool read_told(struct hand *h)
{
	uint8_t block[65536];
	struct bytes line;
	ssize_t n = read(STDIN_FILENO, block, sizeof block);
	if (n < 0)
		return errno == EINTR;
	if (n == 0 || lines_add(&h->told, (struct bytes){ block, (size_t)n })
	    < 0)
		return false;
	while (lines_next(&h->told, &line))
		if (line.n)
			take(h, line);
	return true;
}

/* --- the loop --- */

static void reap(struct hand *h)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;
	while (read(h->signals, &info, sizeof info) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == h->pid) {
			h->pid = 0;
			h->status = status;
		} else {
			terms_ended(&h->terms, pid, status);
		}
	}
}

static nfds_t fill(const struct hand *h, struct pollfd *p, struct term **of)
{
	struct hand *own = (struct hand *)(uintptr_t)h;
	nfds_t n = 4;
	p[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = h->signals, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = h->out, .events = POLLIN };
	p[3] = (struct pollfd){ .fd = h->queue.len ? h->in : -1,
				.events = POLLOUT };
	for (size_t i = 0; i < TERMS_MAX; i++) {
		struct term *t = &own->terms.term[i];
		if (!t->number || t->out < 0)
			continue;
		of[n] = t;
		p[n++] = (struct pollfd){ .fd = t->out, .events = POLLIN };
	}
	return n;
}

/* Until the agent has ended and all it said was read. */
static void live(struct hand *h)
{
	struct pollfd p[FDS];
	struct term *of[FDS];
	while (h->pid > 0) {
		nfds_t n = fill(h, p, of);
		if (poll(p, n, -1) < 0 && errno != EINTR)
			break;
		if (p[2].revents && !read_agent(h)) {
			close(h->out);
			h->out = -1;
		}
		for (nfds_t i = 4; i < n; i++)
			if (p[i].revents)
				terms_read(of[i]);
		if (p[3].revents)
			write_agent(h);
		if (p[0].revents && !read_told(h))
			break;
		if (p[1].revents)
			reap(h);
	}
	for (bool more = true; h->out >= 0 && more;) {
		struct pollfd q = { .fd = h->out, .events = POLLIN };
		more = poll(&q, 1, 0) > 0 && read_agent(h);
	}
}

int hand_main(int argc, char **argv)
{
	static struct hand h = { .in = -1, .out = -1 };
	sigset_t children;
	char text[16];
	int i = 0;
	prctl(PR_SET_NAME, "airlox-hand");
	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		files_add_root(&h.files, argv[i]);
	if (i + 1 >= argc)
		return 64;
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	signal(SIGPIPE, SIG_IGN);
	h.signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (h.signals < 0 || start(&h, argv + i + 1) < 0)
		return 71;
	live(&h);
	kill_agent(&h, SIGKILL);
	terms_kill_all(&h.terms);
	int code = WIFSIGNALED(h.status) ? 128 + WTERMSIG(h.status)
					 : WEXITSTATUS(h.status);
	snprintf(text, sizeof text, "%d", code);
	reply_line(HAND_END, bytes_str(text));
	return code;
}
