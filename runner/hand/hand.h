/* SPDX-License-Identifier: MIT
 *
 * hand: what of ours is in a box with an agent: it starts the agent, carries
 * its lines, and does there what the agent asks a client to do, with no more
 * than the box may: files of the workspace, commands.
 *
 * Its standard input and output have a line a message, the first byte says of
 * whom: HAND_AGENT a line for or of the agent; HAND_SERVE a request to serve,
 * or the answer to one; HAND_KILL (in) ends the agent; HAND_END (out), with
 * the number of its exit, is the last.  Everything in the box has one user, so
 * whoever reads this from outside believes none of it more than the agent.
 *
 *	airlox-box --hand ROOT ... -- PROGRAM ARG ... */
#ifndef RUNNER_HAND_HAND_H
#define RUNNER_HAND_HAND_H

#define HAND_ARG "--hand"
#define HAND_AGENT 'a'
#define HAND_SERVE 's'
#define HAND_KILL 'k'
#define HAND_END 'e'

/* argv after HAND_ARG; the exit code, which is the agent's. */
int hand_main(int argc, char **argv);

#endif
