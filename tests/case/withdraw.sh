#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 180
#
# Goal: what was taken back stays so, also when the daemon is killed in the
# next moment; and a record that was written anew shows the newest.
. "$TOP/tests/lib.sh"
pair_through_shim
settle "$A" "$B"

kill_and_mount() { # [flags]
	kill -KILL "$(daemon_pid "$A")"
	forget_mount "$A"
	shim pass
	mount_at alice "$through" "$A" "$@"
	assert_wait "grep -q ^online '$A/status'" 20
	settle "$A" "$B"
}

say 'removed while queued, then killed'
shim refuse
for i in 1 2 3; do
	echo "# $i" >"$A/out/q$i.md" || fail 'a write while offline'
done
assert_eq "$(xattr "$A/out/q2.md" state)" queued 'offline'
rm "$A/out/q2.md" || fail rm
kill_and_mount
assert_eq "$(count_of "$B" q1.md) $(count_of "$B" q2.md) $(
	count_of "$B" q3.md)" '1 0 1' 'what was removed is not sent'
pass 'rm of a queued file is durable'

say 'written anew while queued'
shim refuse
echo '# old' >"$A/out/n.md"
echo '# new' >"$A/out/n.md"
assert_eq "$(xattr "$A/out/n.md" state)" queued 'both are queued'
shim pass
assert_wait "[ \"\$(xattr '$A/out/n.md' state)\" = sent ]" 40
settle "$A" "$B"
assert_eq "$(count_of "$B" n.md)" 2 'two items'
id=$(xattr "$A/out/n.md" id)
for f in "$B"/in/*-n.md; do
	[ "$(xattr "$f" id)" != "$id" ] || newest=$f
done
assert_eq "$(cat "$newest")" '# new' 'the record shows the newest'
pass 'a record shows the newest'

say 'strict: an errno, then killed'
umount_at "$A"
mount_at alice "$through" "$A" -o strict
shim drop
(cp "$T/session.json" "$A/out/s.md" 2>"$T/cp.err"; echo $? >"$T/cp") &
wait $!
assert_not [ "$(cat "$T/cp")" = 0 ]
grep -q 'timed out' "$T/cp.err" || fail "cp: $(cat "$T/cp.err")"
kill_and_mount
assert_eq "$(xattr "$A/out/s.md" state)" failed 'its state'
assert_eq "$(count_of "$B" s.md)" 0 'what gave an errno is never sent'
pass 'an errno is for good'
finish
