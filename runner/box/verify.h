/* SPDX-License-Identifier: MIT
 *
 * verify: `airlox-box verify` and `airlox-box show`: the record of a run. */
#ifndef RUNNER_BOX_VERIFY_H
#define RUNNER_BOX_VERIFY_H

int verify_main(int argc, char **argv);	/* exit codes */
int show_main(int argc, char **argv);

#endif
