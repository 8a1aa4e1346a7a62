/* SPDX-License-Identifier: MIT
 *
 * boxes: `airlox-box boxes`, the runs there are, and `airlox-box stop`, which
 * ends some of them as a signal to their command line would: with a record. */
#ifndef RUNNER_BOX_BOXES_H
#define RUNNER_BOX_BOXES_H

int boxes_main(int argc, char **argv);	/* exit codes */
int stop_main(int argc, char **argv);

#endif
