#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: what a long mount writes about what it sent does not grow for ever,
# and nothing is lost when a new journal is begun, nor after a kill then.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
A=$T/a
journal() { stat -c %s "$T"/peers/alice/.local/state/airloxfs/*/sender/outbox.journal; }
head -c 250000 /dev/urandom >"$T/part"
for i in $(seq 400); do
	cp "$T/part" "$A/out/f$((i % 20)).bin" || fail "cp $i"
done
assert_wait "grep -qx 'queued 0' '$A/status'" 20
assert_wait "[ \$(journal) -lt 67200000 ]" 5
assert_wait "grep -qx 'sent 400' '$A/status'" 10
pass "100 MB sent, $(journal) bytes are left"

kill -KILL "$(daemon_pid "$A")"
forget_mount "$A"
mount_at alice "$SENDER" "$A"
for i in $(seq 0 19); do
	assert_eq "$(xattr "$A/out/f$i.bin" state)" sent "f$i after a kill"
done
assert_match "$(cat "$A/status")" 'queued 0' 'nothing is sent again'
pass 'the records know it'
finish
