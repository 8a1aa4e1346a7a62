/* SPDX-License-Identifier: MIT
 *
 * The plainest way to tell N peers something: send(2) to each, in a loop.  A
 * process of its own reads.  Prints the time of each of ROUNDS rounds of
 * BURST messages, until all have been read.
 *
 *	fanout N SIZE BURST ROUNDS */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/tool.h"

static int listen_on(struct sockaddr_in *a)
{
	socklen_t n = sizeof *a;
	int fd = (int)tool_must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	*a = (struct sockaddr_in){ .sin_family = AF_INET };
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	tool_must(bind(fd, (struct sockaddr *)a, n), "bind");
	tool_must(listen(fd, 4096), "listen");
	getsockname(fd, (struct sockaddr *)a, &n);
	return fd;
}

/* Says a byte for each round that has come whole. */
static void reader(const struct sockaddr_in *a, int n, size_t round, int out)
{
	int epfd = epoll_create1(0);
	static char part[65536];
	size_t have = 0;
	for (int i = 0; i < n; i++) {
		int fd = (int)tool_must(socket(AF_INET, SOCK_STREAM, 0), "s");
		tool_must(connect(fd, (const struct sockaddr *)a, sizeof *a),
			  "connect");
		struct epoll_event ev = { EPOLLIN, { .fd = fd } };
		epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
	}
	for (;;) {
		struct epoll_event ev[256];
		int k = epoll_wait(epfd, ev, 256, -1);
		for (int i = 0; i < k; i++) {
			ssize_t r = read(ev[i].data.fd, part, sizeof part);
			if (r <= 0)
				_exit(0);
			have += (size_t)r;
		}
		for (; have >= round; have -= round)
			tool_must(write(out, "x", 1), "write");
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in a;
	struct rlimit r;
	static char text[65536];
	int p[2], one = 1;
	if (argc != 5)
		return tool_usage("fanout N SIZE BURST ROUNDS");
	int n = atoi(argv[1]), burst = atoi(argv[3]);
	size_t size = (size_t)atoi(argv[2]);
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	int door = listen_on(&a), *fd = calloc((size_t)n, sizeof *fd);
	tool_must(pipe(p), "pipe");
	pid_t child = fork();
	if (child == 0)
		reader(&a, n, (size_t)n * size * (size_t)burst, p[1]);
	for (int i = 0; i < n; i++) {
		fd[i] = (int)tool_must(accept(door, NULL, NULL), "accept");
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	}
	for (int round = 0; round < atoi(argv[4]); round++) {
		char done;
		double began = tool_us();
		for (int b = 0; b < burst; b++)
			for (int i = 0; i < n; i++)
				tool_must(send(fd[i], text, size, 0), "send");
		tool_must(read(p[0], &done, 1), "read");
		printf("%.1f\n", tool_us() - began);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
