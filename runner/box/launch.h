/* SPDX-License-Identifier: MIT
 *
 * launch: `airlox-box run POLICY -- COMMAND...`: a command in a box, with a
 * broker as its only way out. */
#ifndef RUNNER_BOX_LAUNCH_H
#define RUNNER_BOX_LAUNCH_H

int launch_main(int argc, char **argv);	/* exit code */

#endif
