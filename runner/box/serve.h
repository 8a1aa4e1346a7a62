/* SPDX-License-Identifier: MIT
 *
 * serve: the broker as a process: our own binary, started with a socket to
 * whoever started it as descriptor 3, the policy's text as 4, the egress file
 * as 5, and another one for the run's own directory as 6, or nothing there. */
#ifndef RUNNER_BOX_SERVE_H
#define RUNNER_BOX_SERVE_H

#define SERVE_ARG "--broker"
#define SERVE_CONTROL_FD 3
#define SERVE_POLICY_FD 4
#define SERVE_EGRESS_FD 5
#define SERVE_COPY_FD 6

int serve_main(void);	/* exit code */

#endif
