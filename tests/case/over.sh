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

# The mounts reach the relay through a shim, the owner directly: that they are
# offline while it closes the session is no matter of luck.
shim_start
through=$(sed "s|$RELAY_URL|$URL|" <<<"$SENDER")
mount_at bob "$through" "$T/b"
mount_at carol "$through" "$T/c"
echo sent >"$T/c/out/sent.md"
arrives "$T/b" sent.md >/dev/null
shim refuse
shim reset
assert_wait "grep -q ^offline '$T/b/status'"
assert_status 0 as alice "$AIRLOXFS" close "@$T/owner.link"
cp /dev/stdin "$T/b/out/late.md" <<<'precious' || fail 'not taken'
assert_eq "$(xattr "$T/b/out/late.md" state)" queued 'while offline'
echo 'last words' >"$T/b/say" || fail 'said'
shim pass
for m in b c; do
	echo reconnect >"$T/$m/ctl"
	assert_wait "grep -q ^closed '$T/$m/status'"
done
assert_wait "[ \"\$(xattr '$T/b/out/late.md' state)\" = failed ]"
assert_wait "grep -qsx 'last words' '$T/b/out/'said-*.txt"
assert_eq "$(xattr "$T"/b/out/said-*.txt state)" failed 'a text, too'
pass 'the session ended while it waited'

umount_at "$T/c"
assert_eq "$(files_of carol)" 0 "files of who has sent it all"
pass 'cache and state are gone'

assert_status 75 as bob "$AIRLOXFS" umount "$T/b"
assert_sentence
grep -q '2 unsent.*forget ax_' "$T/said" ||
	fail "said: $(cat "$T/said")"
forget_mount "$T/b"
mount_at bob "$through" "$T/b"
assert_eq "$(cat "$T/b/out/late.md")" precious 'it is there again'
assert_match "$(head -n 1 "$T/b/status")" ^closed 'and the session is over'
assert_status 75 as bob "$AIRLOXFS" umount "$T/b"
forget_mount "$T/b"
assert_status 0 as bob "$AIRLOXFS" forget "$SESSION"
assert_eq "$(files_of bob)" 0 'files after forget'
pass 'what was unsent stays until it is forgotten'

say 'a session that expires'
session_new --ttl 6s
mount_at dora "$SENDER" "$T/d"
echo half >"$T/d/out/half.tmp"
cat "$T/d/events" >"$T/seen" &
reader=$!
assert_wait "grep -q '^closed' '$T/d/status'" 15
assert_errno ESHUTDOWN "open('$T/d/out/x.md', 'w')"
wait "$reader" || fail 'a reader of events gets its end'
pass 'expired'
assert_status 75 as dora "$AIRLOXFS" umount "$T/d"
forget_mount "$T/d"
# Any start sweeps the cache of sessions that have expired.
assert_status 69 as dora "$AIRLOXFS" items "$SENDER"
mount_at dora "$SENDER" "$T/d"
assert_eq "$(cat "$T/d/out/half.tmp")" 'half' 'a draft of then'
assert_status 75 as dora "$AIRLOXFS" umount "$T/d"
forget_mount "$T/d"
pass 'what was unsent can be read when the cache was swept'
if [ -n "${SOAK:-}" ]; then
	say 'M9: 2 GiB, then the session is closed'
	relay_stop
	relay_start --max-item-bytes 1073741824 --max-session-bytes 8589934592
	session_new --max-item-mb 512
	printf '%s\n' "$OWNER" >"$T/owner.link"
	mount_at mia "$SENDER" "$T/e"
	mount_at noa "$OBSERVER" "$T/f"
	head -c 500000000 /dev/urandom >"$T/half"
	for i in 1 2 3 4 5; do
		cp "$T/half" "$T/e/out/h$i.bin" || fail "cp h$i.bin"
		assert_cmp "$T/half" "$(arrives "$T/f" "h$i.bin" 300)"
	done
	assert_status 0 as mia "$AIRLOXFS" close "@$T/owner.link"
	assert_wait "grep -q ^closed '$T/f/status'" 20
	assert_cmp "$T/half" "$(entry_of "$T/f" h5.bin)"
	umount_at "$T/e"
	umount_at "$T/f"
	assert_eq "$(files_of mia) $(files_of noa)" '0 0' 'files of 2 GiB'
	pass M9
fi
finish
