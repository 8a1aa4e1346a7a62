/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clear.h"
#include "runner/queue/verdict.h"

void verdict_add(struct verdict *v, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (v->reason.len)
		buf_add_str(&v->reason, "; ");
	buf_add_str(&v->reason, text);
	free(text);
}

static void say_memory(struct verdict *v, const struct plan_limits *l,
		       enum cgroup_kind kind)
{
	verdict_add(v, "out of memory: it may use %" PRIu64 " MB (%s)",
		    l->memory_bytes >> 20, cgroup_word(kind));
}

static void say_disk(struct verdict *v, const struct box_end *end,
		     const struct plan_limits *l)
{
	if (end->disk_low)
		verdict_add(v, "the disk of this runner is nearly full");
	else
		verdict_add(v, "out of disk: it may write %" PRIu64
			    " MB, %u files and directories, 32 deep",
			    l->disk_bytes >> 20, l->entries);
}

static void say_broken(struct verdict *v)
{
	cleanup_buf struct buf said = { 0 };
	clear_escape(&said, bytes_str(v->said));
	verdict_add(v, "the sandbox could not be started or kept%s%.200s",
		    v->said[0] ? ": " : "",
		    buf_cstr(&said) ? buf_cstr(&said) : "");
}

static void say_killed(struct verdict *v)
{
	verdict_add(v, v->cancelled ? "cancelled" : v->stopped ?
		    "the runner was stopped" : "the runner went away");
}

/* Killed for its memory, and not by itself: it did not come to its end. */
static bool is_memory_end(const struct box_end *end)
{
	return end->out_of_memory && end->code == 128 + SIGKILL;
}

static void add_notes(struct verdict *v, const struct box_end *end,
		      const struct plan_limits *l, enum cgroup_kind kind)
{
	if (end->out_of_memory && !is_memory_end(end) &&
	    end->how != BOX_MEMORY)
		say_memory(v, l, kind);
	if (end->out_of_tasks)
		verdict_add(v, "it reached its limit of %u processes and "
			    "threads", l->tasks);
	if (end->out_of_files)
		verdict_add(v, "it reached its limit of %u open files",
			    l->files);
	if (end->left)
		verdict_add(v, "something of it could not be killed");
}

void verdict_make(struct verdict *v, const struct box_end *end,
		  const struct plan_limits *l, enum cgroup_kind kind)
{
	v->verb = "failed";
	switch (end->how) {
	case BOX_EXITED:
		v->has_exit = true;
		if (is_memory_end(end))
			say_memory(v, l, kind);
		else
			v->verb = "done";
		break;
	case BOX_TIMED_OUT:
		v->verb = "timed_out";
		verdict_add(v, "its time of %u s was up",
			    l->timeout_ms / 1000);
		break;
	case BOX_MEMORY:
		say_memory(v, l, kind);
		break;
	case BOX_DISK:
		say_disk(v, end, l);
		break;
	case BOX_KILLED:
		say_killed(v);
		break;
	case BOX_BROKEN:
		say_broken(v);
		break;
	}
	add_notes(v, end, l, kind);
}

void verdict_free(struct verdict *v)
{
	buf_free(&v->reason);
}
