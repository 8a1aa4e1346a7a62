/* SPDX-License-Identifier: MIT
 *
 * tell: the relay's log on stderr: one line a call, with the time; what was
 * said last, and less than 10 s ago, is counted, for strangers can cause it.
 * Never a token, content, a key or an address. */
#ifndef RELAY_TELL_H
#define RELAY_TELL_H

void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
