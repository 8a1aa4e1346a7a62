#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: a session that ends takes cache and state with it, but never content
# that was taken and could not be sent any more.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
printf '%s\n' "$OWNER" >"$T/owner.link"
files_of() { find "$T/peers/$1" -type f | wc -l; }

mount_at bob "$SENDER" "$T/b"
mount_at carol "$SENDER" "$T/c"
echo sent >"$T/c/out/sent.md"
arrives "$T/b" sent.md >/dev/null
relay_stop
assert_wait "grep -q ^offline '$T/b/status'"
relay_start
assert_status 0 as alice "$AIRLOXFS" close "@$T/owner.link"
relay_stop
cp /dev/stdin "$T/b/out/late.md" <<<'precious' || fail 'not taken'
assert_eq "$(xattr "$T/b/out/late.md" state)" queued 'while offline'
relay_start
for m in b c; do
	echo reconnect >"$T/$m/ctl"
	assert_wait "grep -q ^closed '$T/$m/status'"
done
assert_wait "[ \"\$(xattr '$T/b/out/late.md' state)\" = failed ]"
pass 'the session ended while it waited'

umount_at "$T/c"
assert_eq "$(files_of carol)" 0 "files of who has sent it all"
pass 'cache and state are gone'

assert_status 75 as bob "$AIRLOXFS" umount "$T/b"
assert_sentence
grep -q '1 unsent.*late\.md.*forget ax_' "$T/said" ||
	fail "said: $(cat "$T/said")"
forget_mount "$T/b"
mount_at bob "$SENDER" "$T/b"
assert_eq "$(cat "$T/b/out/late.md")" precious 'it is there again'
assert_match "$(head -n 1 "$T/b/status")" ^closed 'and the session is over'
assert_status 75 as bob "$AIRLOXFS" umount "$T/b"
forget_mount "$T/b"
assert_status 0 as bob "$AIRLOXFS" forget "$SESSION"
assert_eq "$(files_of bob)" 0 'files after forget'
pass 'what was unsent stays until it is forgotten'
finish
