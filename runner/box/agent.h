/* SPDX-License-Identifier: MIT
 *
 * agent: `airlox-box agent POLICY PROMPT`: the policy's agent in a box, in a
 * process of its own that outlives the terminal. */
#ifndef RUNNER_BOX_AGENT_H
#define RUNNER_BOX_AGENT_H

int agent_main(int argc, char **argv);	/* exit code */

#endif
