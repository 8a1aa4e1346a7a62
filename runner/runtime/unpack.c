/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "runner/runtime/unpack.h"

/* A wheel is an archive: what is below NAME.data/purelib and platlib belongs
 * beside the rest, scripts and headers are not needed. */
static const char script[] =
	"import os, sys, zipfile, shutil\n"
	"site = '/out/lib/%s/site-packages' % sys.argv[1]\n"
	"os.makedirs(site)\n"
	"for wheel in sorted(os.listdir('/wheels')):\n"
	"    if not wheel.endswith('.whl'):\n"
	"        continue\n"
	"    with zipfile.ZipFile('/wheels/' + wheel) as z:\n"
	"        for info in z.infolist():\n"
	"            parts = info.filename.split('/')\n"
	"            if info.is_dir() or '..' in parts or parts[0] == '':\n"
	"                continue\n"
	"            if parts[0].endswith('.data'):\n"
	"                if parts[1] not in ('purelib', 'platlib'):\n"
	"                    continue\n"
	"                parts = parts[2:]\n"
	"            to = os.path.join(site, *parts)\n"
	"            os.makedirs(os.path.dirname(to), exist_ok=True)\n"
	"            with z.open(info) as src, open(to, 'wb') as dst:\n"
	"                shutil.copyfileobj(src, dst)\n"
	"import compileall\n"
	"compileall.compile_dir(site, quiet=2, workers=1, stripdir='/out',\n"
	"                       prependdir='/packages')\n";

static int make_plan(struct plan *plan, const struct site *h,
		     const struct python *p, const struct scratch *s,
		     struct err *e)
{
	static const char *const env[] = { "PATH", "/usr/bin", "LANG",
					   "C.UTF-8", "HOME", "/tmp", NULL };
	const char *const command[] = { p->exe, "-I", "-S", "-c", script,
					p->name, NULL };
	struct plan_mount m[PLAN_BASE + PYTHON_MOUNTS + 4];
	size_t n = plan_base(m, h->masks, 64 << 20);
	memcpy(m + n, p->mounts, p->n_mounts * sizeof *m);
	n += p->n_mounts;
	m[n++] = (struct plan_mount){ PLAN_RO, s->work_path, "/wheels", 0 };
	m[n++] = (struct plan_mount){ PLAN_RW, s->out_path, "/out", 0 };
	const struct plan_ask ask = {
		.mounts = m, .n_mounts = n, .env = env, .command = command,
		.work_dir = "/", .host_name = "box",
		.limits = { .timeout_ms = 600000,
			    .memory_bytes = UINT64_C(1) << 30,
			    .disk_bytes = UINT64_C(16) << 30, .tasks = 64,
			    .files = 256, .entries = 500000,
			    .by_rlimit = h->cgroups.kind == CGROUP_NONE },
	};
	return plan_make(plan, &ask, e);
}

/* What it says last is why. */
static int wait_box(struct box *b, int stop, struct err *e)
{
	struct pollfd p[3] = { { .fd = b->control, .events = POLLIN },
			       { .fd = stop, .events = POLLIN },
			       { .fd = b->err, .events = POLLIN } };
	struct box_end end;
	char said[1024] = "";
	while (!p[0].revents) {
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents) {
			box_kill(b);
			p[1].fd = -1;
		}
		if (!p[2].revents)
			continue;
		ssize_t n = read(b->err, said, sizeof said - 1);
		said[n > 0 ? n : 0] = 0;
		if (n <= 0)
			p[2].fd = -1;
	}
	box_ended(b, &end);
	if (end.how == BOX_EXITED && end.code == 0)
		return 0;
	if (end.how == BOX_KILLED)
		return err_set(e, ERR_GONE, "stopped");
	char *last = strrchr(said, '\n');
	if (last && !last[1]) {
		*last = 0;
		last = strrchr(said, '\n');
	}
	return err_set(e, ERR_CONTENT, "the packages cannot be unpacked: "
		       "%.200s", last ? last + 1 : said);
}

int unpack_wheels(const struct site *h, const struct python *p,
		  struct scratch *scratch, int stop, struct err *e)
{
	struct plan plan = { 0 };
	struct box box;
	/* Its keeper must leave the scratch to us. */
	struct scratch view = *scratch;
	char name[CGROUP_NAME_MAX];

	view.name[0] = 0;
	view.base = dup(scratch->base);
	view.lock = dup(scratch->lock);
	view.work = dup(scratch->work);
	view.out = dup(scratch->out);
	cgroup_name(name, "p");
	const struct box_ask ask = {
		.plan = &plan, .scratch = &view, .cgroups = &h->cgroups,
		.cgroup_name = name, .seccomp = h->seccomp, .uid = h->uid,
		.gid = h->gid, .bwrap = h->bwrap,
		.disk_base_bytes = UINT64_C(1) << 40,
	};
	int r = make_plan(&plan, h, p, scratch, e);
	if (r == 0)
		r = box_start(&box, &ask, e);
	if (r == 0) {
		r = wait_box(&box, stop, e);
		box_free(&box);
	} else {
		scratch_close(&view);
	}
	plan_free(&plan);
	return r;
}
