#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: an answer that never came is no lie later.  What a strict close gave
# up, and the relay has all the same, becomes `sent`, also after a crash; a
# close that a signal ended says 0 of what is durable; what waits as a draft
# is not called queued.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$SENDER" "$T/a" -o strict
mount_at bob "$SENDER" "$T/b"
mount_at carol "$OBSERVER" "$T/c"
A=$T/a B=$T/b C=$T/c
settle "$A" "$C"
crash() { # DIR
	kill -KILL "$(daemon_pid "$1")"
	forget_mount "$1"
}

say 'a relay that hears and does not answer'
kill -STOP "$RELAY_PID"
printf '# strict\n' >"$T/strict.md"
(cp "$T/strict.md" "$A/out/strict.md" 2>"$T/cp.err"; echo $? >"$T/cp") &
one=$!
(python3 -c "
import os
fd = os.open('$A/say', os.O_WRONLY)
os.write(fd, b'a text')
try:
    os.close(fd)
except OSError as e:
    print(e.errno)" >"$T/saying") &
two=$!
python3 - "$B/out/signal.md" <<'E' || fail 'a close that a signal ended'
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *a: None)
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, b"# signal\n")
signal.alarm(1)
os.close(fd)
E
assert_eq "$(xattr "$B/out/signal.md" state)" queued 'and queued'
crash "$B"
pass 'a signal ends the wait of a close'
wait $one $two
assert_not [ "$(cat "$T/cp")" = 0 ]
assert_eq "$(cat "$T/saying")" 110 'the text: ETIMEDOUT'
assert_eq "$(xattr "$A/out/strict.md" state)" failed 'an errno, so: failed'
assert_match "$(xattr "$A/out/strict.md" error)" 'may have it' 'its sentence'
kill -CONT "$RELAY_PID"
assert_wait "[ \"\$(xattr '$A/out/strict.md' state)\" = sent ]" 40
assert_wait "grep -q 'called failed, did reach' '$A/log'" 20
settle "$A" "$C"
assert_eq "$(count_of "$C" strict.md)" 1 'it is there, and sent says so'
pass 'what reached the relay is sent'

kill -STOP "$RELAY_PID"
cp "$T/strict.md" "$A/out/again.md" 2>/dev/null && fail 'no errno'
assert_eq "$(xattr "$A/out/again.md" state)" failed 'failed again'
crash "$A"
kill -CONT "$RELAY_PID"
mount_at alice "$SENDER" "$A"
mount_at bob "$SENDER" "$B"
assert_wait "[ \"\$(xattr '$A/out/again.md' state)\" = sent ]" 40
arrives "$C" signal.md 40 >/dev/null || exit 1
settle "$B" "$C"
assert_eq "$(count_of "$C" signal.md)" 1 'what was queued'
pass 'also after a crash'

say 'drafts do not go at the next mount'
echo '# d' >"$A/out/.draft.md"
assert_status 75 "$AIRLOXFS" umount "$A"
forget_mount "$A"
assert_match "$(cat "$T/said")" '1 unsent draft.*ctl: \.draft\.md' 'umount'
assert_not grep -q 'next mount' "$T/said"
mount_at alice "$SENDER" "$A"
rm "$A/out/.draft.md"
pass 'the sentence of umount is true'
finish
