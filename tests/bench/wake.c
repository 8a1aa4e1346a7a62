/* SPDX-License-Identifier: MIT
 *
 * From open(out/f) to the moment a watcher of another mount's in/ is woken:
 * the whole of open, write, seal, post, fetch, verify, sync, inotify. */
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "tests/bench/tool.h"

#define WAIT_MS 20000

static void write_file(const char *dir, int i, size_t n)
{
	char path[4096], text[65536];
	snprintf(path, sizeof path, "%s/w%ld-%d.md", dir, (long)getpid(), i);
	memset(text, 'a' + i % 26, n);
	int fd = (int)tool_must(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644),
				path);
	tool_must(write(fd, text, n), "write");
	tool_must(close(fd), "close");
}

static double wait_wake(int fd)
{
	char events[8192];
	struct pollfd p = { fd, POLLIN, 0 };
	if (tool_must(poll(&p, 1, WAIT_MS), "poll") == 0) {
		fprintf(stderr, "nothing arrived\n");
		exit(1);
	}
	tool_must(read(fd, events, sizeof events), "inotify");
	return tool_us();
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return tool_usage("wake OUT IN COUNT BYTES");
	size_t n = (size_t)atol(argv[4]);
	int fd = (int)tool_must(inotify_init1(IN_CLOEXEC), "inotify");
	tool_must(inotify_add_watch(fd, argv[2], IN_CLOSE_WRITE), argv[2]);
	for (int i = 0; i < atoi(argv[3]) && n <= 65536; i++) {
		double began = tool_us();
		write_file(argv[1], i, n);
		printf("%.1f\n", wait_wake(fd) - began);
		usleep(2000);	/* acknowledgements, another's turn */
	}
	return 0;
}
