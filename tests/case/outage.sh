#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
#
# Goal: the relay restarts, the network goes and comes back, the mount is
# restarted or killed: what was queued arrives exactly once.
. "$TOP/tests/lib.sh"
pair_through_shim

write() { # NAME: rc 0, within what design.md allows
	local start=$SECONDS
	printf '# %s\n' "$1" >"$T/item"
	timeout 40 cp "$T/item" "$A/out/$1" || fail "cp $1: exit $?"
	[ $((SECONDS - start)) -le $((14 * SLOW)) ] || fail "$1 took too long"
}
once() { # NAMES...: at Bob, each exactly once
	local name
	for name; do
		wait_for "[ -n \"\$(entry_of '$B' '$name')\" ]" 60 ||
			fail "$name did not arrive"
		assert_eq "$(cat "$(entry_of "$B" "$name")")" "# $name" "$name"
	done
	settle "$A" "$B"
	for name; do
		assert_eq "$(count_of "$B" "$name")" 1 "$name"
		assert_eq "$(xattr "$A/out/$name" state)" sent "$name: state"
	done
}
offline() { assert_wait "grep -q '^offline' '$A/status'" 60; }
online() { assert_wait "grep -q '^online' '$A/status'" 60; }

write before.md
once before.md

say 'the relay restarts'
relay_stop
write r1.md
assert_eq "$(xattr "$A/out/r1.md" state)" queued 'r1: state'
offline
start=$SECONDS
write r2.md
write r3.md
[ $((SECONDS - start)) -le 2 ] || fail 'known offline, and a close waits'
assert_eq "$(xattr "$A/out/r3.md" state)" queued 'r3: state'
assert_match "$(cat "$A/status")" '3' 'status counts what is queued'
relay_start
online
once r1.md r2.md r3.md
pass 'relay restarted'

say 'the network is silent, and back'
shim drop
write n1.md
offline
start=$(date +%s%N)
ls "$A" "$A/in" >/dev/null
stat "$A/out/n1.md" >/dev/null
cat "$A/README" "$A/status" "$A/log" "$A/session" >/dev/null
mv "$A/out/r1.md" "$A/out/.r1.md"
rm "$A/out/.r1.md"
write n2.md
ms=$((($(date +%s%N) - start) / 1000000))
[ $ms -le $((1000 * SLOW)) ] || fail "offline, and files take $ms ms"
shim pass
online
once n1.md n2.md
pass 'silence'

say 'refused, reset, and an answer that is lost'
shim refuse
write f1.md
shim pass
online
shim cutreply
write f2.md
shim pass
shim reset
online
write f3.md
once f1.md f2.md f3.md
pass 'refused, reset, lost answers'

say 'held for a while: TCP brings it'
shim hold
(sleep 3; shim pass) &
back=$!
write h1.md
wait "$back"
once h1.md
pass 'a short silence is no outage'

say 'unmounted with things queued'
shim refuse
write u1.md
write u2.md
status=0
timeout 60 "$AIRLOXFS" umount --wait 1 "$A" >"$T/said" 2>&1 || status=$?
assert_eq "$status" 75 'umount with unsent items'
assert_match "$(cat "$T/said")" '2 unsent' 'what umount says'
forget_mount "$A"
assert_wait "! grep -q ' $A fuse' /proc/self/mounts" 5
mount_at alice "$through" "$A"
assert_match "$(head -n 1 "$A/status")" '^offline' 'comes up offline'
assert_eq "$(xattr "$A/out/u1.md" state)" queued 'still queued'
write u3.md
shim pass
online
once u1.md u2.md u3.md
pass 'mounted again'

say 'killed with things queued'
shim refuse
write k1.md
kill -KILL "$(daemon_pid "$A")"
forget_mount "$A"
mount_at alice "$through" "$A"
shim pass
online
once k1.md
pass 'killed'

say 'killed while the answer is under way'
shim cutreply
(cp "$T/item" "$A/out/.k2" && mv "$A/out/.k2" "$A/out/k2.md") \
	>/dev/null 2>&1 &
writer=$!
sleep 0.5
kill -KILL "$(daemon_pid "$A")"
wait "$writer"
forget_mount "$A"
shim pass
mount_at alice "$through" "$A"
online
settle "$A" "$B"
[ "$(count_of "$B" k2.md)" -le 1 ] || fail 'k2 came twice'
if [ "$(xattr "$A/out/k2.md" state)" = sent ]; then
	assert_eq "$(count_of "$B" k2.md)" 1 'k2, that is called sent'
fi
pass 'killed in the middle'

say 'nothing twice, in all'
dups=$(for f in "$B"/in/*.md; do echo "${f##*-}"; done | sort | uniq -d)
assert_eq "$dups" '' 'came twice'

say 'withdrawn while queued, and strict'
shim refuse
offline || true
write w1.md
rm "$A/out/w1.md"
shim pass
online
settle "$A" "$B"
assert_eq "$(count_of "$B" w1.md)" 0 'a withdrawn item'
umount_at "$A"
mount_at alice "$through" "$A" -o strict
shim refuse
sleep 1
timeout 40 cp "$T/item" "$A/out/s1.md" 2>"$T/said" && fail 'strict, offline'
grep -q 'timed out' "$T/said" || fail "strict: $(cat "$T/said")"
shim pass
online
settle "$A" "$B"
assert_eq "$(count_of "$B" s1.md)" 0 'what gave an errno is never sent'
pass 'withdrawn, strict'
finish
