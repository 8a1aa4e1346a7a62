#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 180
#
# Goal: a fault of this machine lasts no longer than the machine's: a disk that
# refused to sync, a process that could not be started.
. "$TOP/tests/lib.sh"
need_fuse
[ -z "$SAN" ] || skip 'a preloaded library and a sanitizer do not mix'
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
A=$T/a B=$T/b
head -c 20 /dev/zero >"$T/faults"
faults() { # CALL ERROR COUNT
	python3 -c "
import struct, sys
with open('$T/faults', 'r+b') as f:
    f.write(struct.pack('5i', $1, $2, 0, $3, 0))"
}
cat >"$T/faulty" <<E
#!/bin/sh
FAULTS='$T/faults' LD_PRELOAD='$BUILD/tests/hostile/faults.so' \\
	exec '$BUILD/airloxfs' "\$@"
E
chmod +x "$T/faulty"
mount_faulty() {
	AIRLOXFS=$T/faulty
	mount_at bob "$OBSERVER" "$B"
	AIRLOXFS=$BUILD/airloxfs
}
mount_faulty
settle "$A" "$B"

say 'the disk says EIO to two syncs'
faults 4 5 2
printf '# a\n' >"$A/out/a.md"
head -c 2000000 /dev/urandom >"$T/b.bin"
cp "$T/b.bin" "$A/out/b.bin" || fail cp
arrives "$B" a.md 40 >/dev/null || exit 1
assert_cmp "$T/b.bin" "$(arrives "$B" b.bin 40)"
grep -q 'durable' "$B/log" || fail 'nobody says it'
faults 0 0 0
settle "$A" "$B"
kill -KILL "$(daemon_pid "$B")"
forget_mount "$B"
mount_faulty
assert_eq "$(cat "$(arrives "$B" a.md)")" '# a' 'after a crash'
assert_cmp "$T/b.bin" "$(arrives "$B" b.bin)"
assert_not grep -q 'damaged end' "$B/log"
pass 'it recovers without a remount'

say 'no helper process can be started'
helper() { pgrep -P "$(daemon_pid "$B")" -f -- --helper; }
faults 256 11 1000000
kill -KILL "$(helper)"
printf '# c\n' >"$A/out/c.md"
sleep 1
faults 0 0 0
assert_eq "$(cat "$(arrives "$B" c.md 20)")" '# c' 'once it can'
assert_wait "[ -n \"\$(helper)\" ]" 10
pass 'what came meanwhile appears when it can'
faults 256 11 1000000
kill -KILL "$(helper)"
printf '# d\n' >"$A/out/d.md"
assert_eq "$(cat "$(arrives "$B" d.md 40)")" '# d' 'without any'
grep -q 'no watcher is woken' "$B/log" || fail 'nobody says it'
faults 0 0 0
printf '# e\n' >"$A/out/e.md"
assert_eq "$(cat "$(arrives "$B" e.md 20)")" '# e' 'with one again'
pass 'or without it, in the end'
finish
