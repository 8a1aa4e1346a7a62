/* SPDX-License-Identifier: MIT
 *
 * From how a sandbox ended to the verb and the words: each end has its own. */
#include "runner/queue/verdict.h"
#include "tests/unit/tap.h"

static const struct plan_limits limits = {
	.timeout_ms = 3000, .memory_bytes = 64 << 20, .disk_bytes = 32 << 20,
	.tasks = 7, .files = 99, .entries = 1000,
};

static void check(struct box_end end, struct verdict v, const char *verb,
		  bool has_exit, const char *reason)
{
	verdict_make(&v, &end, &limits, CGROUP_V2);
	is_str(v.verb, verb, "%s", verb);
	is_int(v.has_exit, has_exit, "its exit");
	const char *text = v.reason.len ? buf_cstr(&v.reason) : "";
	is_str(text, reason, "%s", reason[0] ? reason : "no reason");
	verdict_free(&v);
}

int main(void)
{
	const struct verdict none = { 0 };
	check((struct box_end){ .how = BOX_EXITED, .code = 3 }, none, "done",
	      true, "");
	check((struct box_end){ .how = BOX_EXITED, .code = 139 }, none,
	      "done", true, "");
	check((struct box_end){ .how = BOX_TIMED_OUT, .code = 137 }, none,
	      "timed_out", false, "its time of 3 s was up");
	/* killed for memory: it did not come to its end */
	check((struct box_end){ .how = BOX_EXITED, .code = 137,
				.out_of_memory = true }, none, "failed", true,
	      "out of memory: it may use 64 MB (cgroup v2)");
	/* a child was, and it went on */
	check((struct box_end){ .how = BOX_EXITED, .out_of_memory = true },
	      none, "done", true,
	      "out of memory: it may use 64 MB (cgroup v2)");
	/* 137 by itself is an exit code */
	check((struct box_end){ .how = BOX_EXITED, .code = 137 }, none,
	      "done", true, "");
	check((struct box_end){ .how = BOX_MEMORY, .out_of_memory = true },
	      none, "failed", false,
	      "out of memory: it may use 64 MB (cgroup v2)");
	check((struct box_end){ .how = BOX_DISK }, none, "failed", false,
	      "out of disk: it may write 32 MB, 1000 files and directories, "
	      "32 deep");
	check((struct box_end){ .how = BOX_DISK, .disk_low = true }, none,
	      "failed", false, "the disk of this runner is nearly full");
	check((struct box_end){ .how = BOX_TIMED_OUT, .out_of_tasks = true,
				.out_of_files = true }, none, "timed_out",
	      false, "its time of 3 s was up; it reached its limit of 7 "
	      "processes and threads; it reached its limit of 99 open files");
	check((struct box_end){ .how = BOX_KILLED },
	      (struct verdict){ .cancelled = true }, "failed", false,
	      "cancelled");
	check((struct box_end){ .how = BOX_KILLED },
	      (struct verdict){ .stopped = true }, "failed", false,
	      "the runner was stopped");
	check((struct box_end){ .how = BOX_BROKEN },
	      (struct verdict){ .said = "bwrap: no\033[2J" }, "failed", false,
	      "the sandbox could not be started or kept: bwrap: no\\x1B[2J");
	return done_testing();
}
