/* SPDX-License-Identifier: MIT
 *
 * Many event streams from one process, and how they fare.
 *
 *	crowd PORT N SESSION < TOKENS
 *
 * Opens N streams of a session, spread over the tokens (one a line, an empty
 * one ends them), and says "open N".  Then for each line "count" it says how
 * many events each has seen: "least L most M closed C"; for "wait K" it says
 * "ready", and "all" once they have seen K more between them.  Ends with its input.
 * With a fourth word, "lag", it reads nothing but the heads until the line
 * "read". */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct stream {
	int fd;
	unsigned events;
	bool line_start;	/* the next byte begins a line */
	bool closed;
};

static struct stream *all;
static int n, epfd;
static long seen, awaited = -1;

static void die(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int dial(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port) };
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		die("connect");
	return fd;
}

/* An event's "id: " begins a line; nothing else of a stream does so with i. */
static void count(struct stream *s, const char *p, ssize_t len)
{
	for (ssize_t i = 0; i < len; i++) {
		if (s->line_start && p[i] == 'i') {
			s->events++;
			seen++;
		}
		s->line_start = p[i] == '\n';
	}
}

static void begin(struct stream *s, int port, const char *sid,
		  const char *token)
{
	char text[512], got[64] = "";
	s->fd = dial(port);
	int len = snprintf(text, sizeof text,
			   "GET /v1/sessions/%s/stream HTTP/1.1\r\n"
			   "Host: x\r\nAuthorization: Bearer %s\r\n"
			   "Last-Event-ID: 1000000\r\n\r\n", sid, token);
	if (write(s->fd, text, (size_t)len) != len)
		die("write");
	if (recv(s->fd, got, 12, MSG_WAITALL) != 12 ||
	    strcmp(got, "HTTP/1.1 200") != 0) {
		fprintf(stderr, "crowd: stream answered %s\n", got);
		exit(1);
	}
	fcntl(s->fd, F_SETFL, O_NONBLOCK);
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };
	epoll_ctl(epfd, EPOLL_CTL_ADD, s->fd, &ev);
}

static void take(struct stream *s)
{
	static char part[65536];
	ssize_t len = read(s->fd, part, sizeof part);
	if (len > 0) {
		count(s, part, len);
		return;
	}
	if (len < 0 && errno == EAGAIN)
		return;
	s->closed = true;
	epoll_ctl(epfd, EPOLL_CTL_DEL, s->fd, NULL);
}

static void report(void)
{
	unsigned least = ~0u, most = 0, closed = 0;
	for (int i = 0; i < n; i++) {
		least = all[i].events < least ? all[i].events : least;
		most = all[i].events > most ? all[i].events : most;
		closed += all[i].closed;
	}
	printf("least %u most %u closed %u\n", least, most, closed);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rlimit r;
	char token[1024][64], line[64];
	int tokens = 0;
	if (argc < 4)
		return 64;
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	n = atoi(argv[2]);
	bool lag = argc > 4;
	all = calloc((size_t)n, sizeof *all);
	epfd = epoll_create1(EPOLL_CLOEXEC);
	setvbuf(stdin, NULL, _IONBF, 0);
	while (tokens < 1024 && fgets(token[tokens], 64, stdin) &&
	       token[tokens][0] != '\n') {
		token[tokens][strcspn(token[tokens], "\n")] = 0;
		tokens++;
	}
	for (int i = 0; i < n; i++)
		begin(&all[i], atoi(argv[1]), argv[3], token[i % tokens]);
	printf("open %d\n", n);
	fflush(stdout);
	struct epoll_event in = { .events = EPOLLIN }, ev[256];
	epoll_ctl(epfd, EPOLL_CTL_ADD, 0, &in);
	for (;;) {
		struct pollfd p = { 0, POLLIN, 0 };
		int k = lag ? poll(&p, 1, -1) : epoll_wait(epfd, ev, 256, -1);
		bool input = lag && k > 0;
		for (int i = 0; !lag && i < k; i++)
			if (ev[i].data.ptr)
				take(ev[i].data.ptr);
			else
				input = true;
		if (awaited >= 0 && seen >= awaited) {
			awaited = -1;
			puts("all");
			fflush(stdout);
		}
		if (!input)
			continue;
		if (!fgets(line, sizeof line, stdin))
			return 0;
		if (line[0] == 'r')
			lag = false;
		else if (line[0] == 'w') {
			awaited = seen + atol(line + 5);
			puts("ready");
			fflush(stdout);
		}
		else
			report();
	}
}
