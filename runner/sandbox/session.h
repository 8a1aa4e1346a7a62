/* SPDX-License-Identifier: MIT
 *
 * session: what a keeper that was killed may leave.
 *
 * bubblewrap's first process ends with its parent only once it has asked for
 * that, which is late: one whose keeper is killed while it is being made goes
 * on by itself, and the end of the pipe that held it lets it go.  It is known
 * by its session, which is the keeper's; the number of a session is given to
 * nobody else while a process is in it. */
#ifndef AIRLOX_SANDBOX_SESSION_H
#define AIRLOX_SANDBOX_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* When a process began, field 22 of /proc/PID/stat; 0: there is none. */
int64_t session_born(pid_t pid);

/* SIGKILL to all in the session of this keeper, again and again until there
 * is nobody; false if somebody is left after two seconds.  born: the keeper's;
 * where its number is another's by now, nothing of it is left. */
bool session_kill(pid_t keeper, int64_t born);

#endif
