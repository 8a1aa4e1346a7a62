#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: what a mount remembers is there at the next one: own items, items of
# others, one that was hidden, drafts, a directory that was sent.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$OWNER" "$T/a"
mount_at bob "$SENDER" "$T/b"

mkdir "$T/b/out/pics"
echo one >"$T/b/out/pics/a.txt"
assert_eq "$(cat "$T/b/out/pics/ctl")" send 'reading its ctl'
echo send >"$T/b/out/pics/ctl" || fail 'a directory was not sent'
arrives "$T/a" pics.zip >/dev/null
for i in 1 2 3; do
	echo "alice $i" >"$T/a/out/a$i.md" || fail "a$i.md"
	echo "bob $i" >"$T/b/out/b$i.md" || fail "b$i.md"
	arrives "$T/b" "a$i.md" >/dev/null
done
rm "$(entry_of "$T/b" a2.md)" || fail 'rm of an item'
assert_eq "$(cat "$T/b/latest")" 'alice 3' latest
rm "$(entry_of "$T/b" a3.md)" || fail 'rm of the newest'
assert_eq "$(cat "$T/b/latest")" 'alice 1' 'latest, after that'
echo 'alice 4' >"$T/a/out/a4.md" || fail a4.md
arrives "$T/b" a4.md >/dev/null
assert_eq "$(cat "$T/b/latest")" 'alice 4' 'latest, with a new one'
echo unfinished >"$T/b/out/later.part"
before=$(ls "$T/b/in")
out=$(ls -R "$T/b/out")

say 'again, and once more'
for turn in 1 2; do
	status=0
	"$AIRLOXFS" umount "$T/b" >"$T/said" 2>&1 || status=$?
	assert_eq "$status" 75 'a draft is unsent'
	grep -qF later.part "$T/said" || fail "said: $(cat "$T/said")"
	forget_mount "$T/b"
	mount_at bob "$SENDER" "$T/b"
	assert_eq "$(ls "$T/b/in")" "$before" 'in/'
	assert_eq "$(ls -R "$T/b/out")" "$out" 'out/'
	assert_eq "$(cat "$T/b/out/later.part")" unfinished 'the draft'
	assert_eq "$(cat "$(entry_of "$T/b" a1.md)")" 'alice 1' 'an item'
	assert_eq "$(cat "$T/b/latest")" 'alice 4' latest
	assert_eq "$(xattr "$T/b/out/b1.md" state)" sent 'a record'
	pass "remount $turn"
done
mv "$T/b/out/later.part" "$T/b/out/later.txt"
settle "$T/b" "$T/a"
grep -qxF unfinished "$T/a"/in/*.txt || fail 'the draft was not sent'
pass 'the draft is sent when it is renamed'
say 'a role that was revoked, after a remount'
mount_at eve "$OBSERVER" "$T/e"
assert_wait "[ -e '$T/b/participants/eve' ]"
printf '%s\n' "$OWNER" >"$T/owner.link"
assert_status 0 as alice "$AIRLOXFS" revoke "@$T/owner.link" observer
assert_wait "grep -qx 'left revoked' '$T/b/participants/eve'"
umount_at "$T/b"
mount_at bob "$SENDER" "$T/b"
assert_eq "$(grep ^left "$T/b/participants/eve")" 'left revoked' 'still'
pass 'revoked stays revoked'
finish
