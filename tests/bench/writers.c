/* SPDX-License-Identifier: MIT
 *
 * N processes that each write COUNT small files, one after the other; prints
 * how long all of it took.  On a mount a close returns when it is sent. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/tool.h"

static void write_files(const char *dir, int who, int count, size_t n)
{
	char path[4096], text[65536];
	memset(text, 'a' + who % 26, n);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "%s/n%ld-%d.md", dir,
			 (long)getpid(), i);
		int fd = (int)tool_must(open(path, O_WRONLY | O_CREAT |
					     O_TRUNC, 0644), path);
		tool_must(write(fd, text, n), "write");
		tool_must(close(fd), "close");
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return tool_usage("writers DIR PROCESSES COUNT BYTES");
	size_t n = (size_t)atol(argv[4]);
	int bad = n > 65536, status;
	double began = tool_us();
	for (int i = 0; i < atoi(argv[2]) && !bad; i++)
		if (tool_must(fork(), "fork") == 0) {
			write_files(argv[1], i, atoi(argv[3]), n);
			_exit(0);
		}
	while (wait(&status) > 0)
		bad |= status != 0;
	printf("%.1f\n", tool_us() - began);
	return bad;
}
