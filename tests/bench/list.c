/* SPDX-License-Identifier: MIT
 *
 * readdir and stat of all there is in a directory, as `ls -l` does it; with
 * COUNT, first makes that many empty files there. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/tool.h"

static void make_files(int dir, int count)
{
	char name[64];
	for (int i = 1; i <= count; i++) {
		snprintf(name, sizeof name, "%06d-sender-n%d.md", i, i);
		close((int)tool_must(openat(dir, name, O_WRONLY | O_CREAT,
					    0600), name));
	}
}

int main(int argc, char **argv)
{
	struct stat st;
	struct dirent *entry;
	long n = 0;
	if (argc != 2 && argc != 3)
		return tool_usage("list DIR [COUNT]");
	DIR *d = opendir(argv[1]);
	tool_must(d ? 0 : -1, argv[1]);
	if (argc == 3)
		make_files(dirfd(d), atoi(argv[2]));
	rewinddir(d);
	double began = tool_us();
	while ((entry = readdir(d))) {
		tool_must(fstatat(dirfd(d), entry->d_name, &st,
				  AT_SYMLINK_NOFOLLOW), entry->d_name);
		n++;
	}
	printf("%.1f\n", tool_us() - began);
	fprintf(stderr, "%ld entries\n", n - 2);
	return closedir(d);
}
