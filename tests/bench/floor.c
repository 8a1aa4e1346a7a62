/* SPDX-License-Identifier: MIT
 *
 * What a durable message over a relay cannot be faster than: two round trips
 * over loopback TCP, with Nagle off, and one fdatasync of what was appended.
 * A process of its own answers. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/tool.h"

#define BYTES 1024

static void read_all(int fd, char *to)
{
	for (size_t at = 0; at < BYTES;) {
		ssize_t n = read(fd, to + at, BYTES - at);
		if (n <= 0)
			exit(n < 0);
		at += (size_t)n;
	}
}

static void no_delay(int fd)
{
	int one = 1;
	tool_must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one),
		  "TCP_NODELAY");
}

/* Answers each message; every second one is made durable first. */
static void serve(int listener, const char *dir)
{
	char bytes[BYTES], path[4096];
	snprintf(path, sizeof path, "%s/floor", dir);
	int file = (int)tool_must(open(path, O_WRONLY | O_CREAT | O_APPEND,
				       0600), path);
	int fd = (int)tool_must(accept(listener, NULL, NULL), "accept");
	no_delay(fd);
	for (unsigned i = 0;; i++) {
		read_all(fd, bytes);
		if (i % 2) {
			tool_must(write(file, bytes, BYTES), "write");
			tool_must(fdatasync(file), "fdatasync");
		}
		tool_must(write(fd, bytes, BYTES), "answer");
	}
}

static void measure(const struct sockaddr_in *at, int count)
{
	char bytes[BYTES] = { 0 };
	int fd = (int)tool_must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	tool_must(connect(fd, (const void *)at, sizeof *at), "connect");
	no_delay(fd);
	for (int i = 0; i < count; i++) {
		double began = tool_us();
		for (int j = 0; j < 2; j++) {
			tool_must(write(fd, bytes, BYTES), "ask");
			read_all(fd, bytes);
		}
		printf("%.1f\n", tool_us() - began);
		fflush(stdout);
		usleep(2000);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	if (argc != 3)
		return tool_usage("floor DIR COUNT");
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = (int)tool_must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	tool_must(bind(fd, (void *)&at, sizeof at), "bind");
	tool_must(listen(fd, 1), "listen");
	tool_must(getsockname(fd, (void *)&at, &n), "getsockname");
	pid_t child = (pid_t)tool_must(fork(), "fork");
	if (child == 0)
		serve(fd, argv[1]);
	measure(&at, atoi(argv[2]));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
