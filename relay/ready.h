/* SPDX-License-Identifier: MIT
 *
 * ready: what a service manager is told (sd_notify(3)): that the relay serves,
 * that it stops.  Nothing where there is none. */
#ifndef RELAY_READY_H
#define RELAY_READY_H

void ready_tell(const char *state);	/* "READY=1" */

#endif
