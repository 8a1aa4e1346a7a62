/* SPDX-License-Identifier: MIT
 *
 * reap: `airlox-box reap`: what killed command lines left: processes, files on
 * the disk, control groups; and their records, which it finishes. */
#ifndef RUNNER_BOX_REAP_H
#define RUNNER_BOX_REAP_H

int reap_main(int argc, char **argv);	/* exit code */

#endif
