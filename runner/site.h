/* SPDX-License-Identifier: MIT
 *
 * site: what this machine can enforce, and as whom: found once at the start.
 *
 * A runner that cannot sandbox does not run: site_open fails with a sentence
 * that has the cause and the remedies. */
#ifndef AIRLOX_RUNNER_SITE_H
#define AIRLOX_RUNNER_SITE_H

#include <limits.h>
#include <sys/types.h>

#include "core/err.h"
#include "runner/sandbox/box.h"

#define SITE_MASKS 16

struct site_options {
	const char *job_user;	/* NULL: nobody; only as root */
	const char *scratch;	/* NULL: TMPDIR, or /tmp; as root /var/tmp */
	bool no_cgroups;	/* as if there were none */
};

struct site {
	char bwrap[PATH_MAX];
	char bwrap_version[32];
	bool root;		/* we are; jobs are not */
	char job_user[64];
	uid_t uid;		/* the job's: ours, if we are not root */
	gid_t gid;
	char scratch[PATH_MAX];
	struct cgroup_host cgroups;
	int seccomp;		/* the filter */
	char mask_paths[SITE_MASKS][32];
	const char *masks[SITE_MASKS + 1];	/* plan_base's */
};

/* All but the trial.  ERR_NOT_FOUND: no bubblewrap, or an old one; ERR_USAGE:
 * the job's user is root or unknown, or cannot enter the scratch directory. */
int site_open(struct site *h, const struct site_options *o, struct err *e);
/* A sandbox is started and must work; ERR_FORBIDDEN says why not, and the two
 * remedies. */
int site_try(struct site *h, struct err *e);
void site_close(struct site *h);

#endif
