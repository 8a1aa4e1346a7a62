#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: a mount comes, stays and goes: no dead mount, no second one, no
# surprise about what was in the directory.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
umask 077

mount_at alice "$SENDER" "$T/a"
first=$(daemon_pid "$T/a")
echo here >"$T/a/say"

say 'the same again is already there; another place is refused'
printf '%s\n' "$SENDER" >"$T/link"
assert_status 0 as alice "$AIRLOXFS" mount --as alice "@$T/link" "$T/a"
grep -qi 'already' "$T/said" || fail "said: $(cat "$T/said")"
assert_eq "$(daemon_pid "$T/a")" "$first" 'the same daemon'
mkdir "$T/second"
as alice timeout 30 "$AIRLOXFS" mount --as alice "@$T/link" "$T/second" \
	>"$T/said" 2>&1
code=$?
[ $code != 0 ] || fail 'a second mount of one identity'
assert_sentence
grep -qF "$T/a" "$T/said" || fail "names the first: $(cat "$T/said")"
assert_not is_mounted "$T/second"
assert_no_keys "$T/said"
pass "one mount (exit $code)"

say 'killed: the same command again mends it'
kill -KILL "$first"
start=$SECONDS
assert_status 0 as alice "$AIRLOXFS" mount --as alice "@$T/link" "$T/a"
[ $((SECONDS - start)) -le $((3 * SLOW)) ] || fail 'slow to come back'
assert_eq "$(grep -c " $T/a fuse" /proc/self/mounts)" 1 'one mount'
assert_match "$(cat "$T/a/status")" '^online' status
pass 'stale mount'

say 'a live mount of another role stays as it is'
printf '%s\n' "$OBSERVER" >"$T/view"
assert_status 10 as bob "$AIRLOXFS" mount --as bob "@$T/view" "$T/a"
assert_sentence
assert_eq "$(sed -n 's/^role //p' "$T/a/session")" sender 'still the first'
assert_eq "$(grep -c " $T/a fuse" /proc/self/mounts)" 1 'one mount'
pass 'not over another mount of ours'

say 'only an empty directory'
mkdir "$T/full"
echo mine >"$T/full/file"
as bob timeout 30 "$AIRLOXFS" mount --as bob "@$T/link" "$T/full" \
	>"$T/said" 2>&1
full=$?
[ $full != 0 ] || fail 'mounted over a full directory'
assert_sentence
assert_eq "$(cat "$T/full/file")" mine 'what was there'
echo x >"$T/afile"
for bad in "$T/afile" "$T/none/there"; do
	as bob timeout 30 "$AIRLOXFS" mount --as bob "@$T/link" "$bad" \
		>"$T/said" 2>&1 && fail "mounted at $bad"
	assert_sentence
done
pass "a non-empty mount point (exit $full), a file, nothing"
[ $full != $code ] || fail 'one exit code for two faults'

say 'umount'
umount_at "$T/a"
assert_eq "$(ls -A "$T/a")" '' 'the directory underneath'
assert_errno ENOENT "open('$T/a/out/y', 'w')"
"$AIRLOXFS" umount "$T/a" >"$T/said" 2>&1 && fail 'umount of no mount'
assert_sentence
"$AIRLOXFS" umount / >"$T/said" 2>&1 && fail 'umount of another mount'
assert_sentence
pass umount

say 'fusermount3 -u does the same without words'
mount_at alice "$SENDER" "$T/a"
pid=$(daemon_pid "$T/a")
timeout 20 cat "$T/a/events" >/dev/null &
reader=$!
sleep 0.3
umount_at "$T/a"
wait "$reader"
assert_eq "$?" 0 'a blocked reader gets EOF'
mount_at alice "$SENDER" "$T/a"
pid=$(daemon_pid "$T/a")
assert fusermount3 -u "$T/a"
assert_wait "! is_running $pid" 15
forget_mount "$T/a"
pass 'fusermount3 -u'

say 'SIGTERM is an orderly end'
mount_at alice "$SENDER" "$T/a"
pid=$(daemon_pid "$T/a")
kill -TERM "$pid"
assert_wait "! is_running $pid" 15
assert_wait "! grep -q ' $T/a fuse' /proc/self/mounts" 5
forget_mount "$T/a"
pass SIGTERM

say 'in front'
printf '%s\n' "$SENDER" | as alice "$AIRLOXFS" mount -f --as alice - \
	"$T/a" >"$T/front" 2>&1 &
front=$!
assert_wait "[ -e '$T/a/README' ]" 10
umount=$("$AIRLOXFS" umount "$T/a" 2>&1) || fail "umount: $umount"
wait "$front"
assert_eq "$?" 0 'mount -f ends with 0'
pass '-f'

say 'the environment leads into the mount: no deadlock'
mkdir -p "$T/self"
start=$SECONDS
printf '%s\n' "$SENDER" | as carol env PATH="$T/self/in:$PATH" \
	LD_LIBRARY_PATH="$T/self/in" timeout 30 "$AIRLOXFS" mount \
	--as carol - "$T/self" >"$T/said" 2>&1 || fail "$(cat "$T/said")"
MOUNTS+=("$T/self")
[ $((SECONDS - start)) -le $((3 * SLOW)) ] || fail 'slow'
assert_wait "grep -qx here '$T'/self/in/*-alice.txt" 10
pass 'PATH and LD_LIBRARY_PATH inside'
umount_at "$T/self"

say 'no process of ours has an AIRLOX variable or a link in its words'
printf '%s\n' "$SENDER" >"$T/link"
AIRLOX_INVITE=$SENDER as dave "$AIRLOXFS" mount --as dave "$T/a" \
	>"$T/said" 2>&1 || fail "by environment: $(cat "$T/said")"
MOUNTS+=("$T/a")
mkdir "$T/e"
as erin "$AIRLOXFS" mount --as erin "$SENDER" "$T/e" >"$T/said" 2>&1 ||
	fail "by argument: $(cat "$T/said")"
MOUNTS+=("$T/e")
for dir in "$T/a" "$T/e"; do
	for pid in $(pgrep -f "$dir"); do
		cat "/proc/$pid/cmdline" "/proc/$pid/environ" 2>/dev/null |
			tr '\0' '\n' >"$T/words"
		assert_no_keys "$T/words"
		! grep '^AIRLOX_INVITE=.*[^*]' "$T/words" ||
			fail "environ of $(tr '\0' ' ' </proc/$pid/cmdline)"
	done
done
cat /proc/self/mounts >"$T/words"
assert_no_keys "$T/words" "$T/said"
pass 'argv and environment'
finish
