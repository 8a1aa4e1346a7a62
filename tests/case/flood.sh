#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 180
#
# Goal: who floods us fills neither memory nor disk, and hides nothing that is
# real: the newest refusals are shown, the rest is counted; in/ takes as many
# entries as it was told to, and what waits comes when there is room.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
A=$T/a B=$T/b
count() { sed -n "s/^$1 //p" "$B/status"; }

say 'a relay that tells each item 3,000 times'
echo none >"$T/lie"
python3 "$TOP/tests/hostile/liar.py" "$RELAY_PORT" "$T/lie" \
	>"$T/liar.out" 2>>"$T/liar.err" &
DAEMONS+=($!)
wait_line "$T/liar.out" '^[0-9]+$'
link=$(sed "s|$RELAY_URL|http://127.0.0.1:$(cat "$T/liar.out")|" \
	<<<"$OBSERVER")
mount_at bob "$link" "$B"
assert_wait "grep -q '^online' '$B/status'"
echo flood >"$T/lie"
for i in 1 2; do
	printf '# %s\n' $i >"$A/out/real-$i.md"
	arrives "$B" "real-$i.md" 20 >/dev/null || exit 1
done
assert_wait "[ \$(sed -n 's/^rejected //p' '$B/status') = 6000 ]" 30
assert_wait "[ \$(ls '$B/rejected' | wc -l) -le 1000 ]" 20
[ "$(ls "$B/rejected" | wc -l)" -ge 990 ] || fail 'too few are shown'
assert_eq "$(grep -c 'refused .* from' "$B/log")" 1000 'lines of log'
grep -q 'only counted' "$B/log" || fail 'nobody says that they are counted'
echo none >"$T/lie"
printf '# after\n' >"$A/out/after.md"
assert_eq "$(cat "$(arrives "$B" after.md 20)")" '# after' 'what is real'
assert_eq "$(ls "$B/in" | wc -l)" 3 'in/'
umount_at "$B"
mount_at bob "$link" "$B"
assert_eq "$(ls "$B/in" | wc -l)" 3 'in/ after a remount'
[ "$(ls "$B/rejected" | wc -l)" -le 1000 ] || fail 'rejected/ is larger now'
umount_at "$B"
pass 'refusals are bounded'

say '--items-max'
mount_at carol "$OBSERVER" "$T/c" --items-max 5
B=$T/c
for i in $(seq 12); do printf '# %s\n' "$i" >"$A/out/m-$i.md"; done
assert_wait "grep -q '^waiting in/ has' '$B/status'" 20
n=$(ls "$B/in" | wc -l)
[ "$n" -ge 5 ] && [ "$n" -le 9 ] || fail "$n entries"
for i in $(seq 40); do
	f=$(ls "$B/in" | head -n 1)
	[ -z "$f" ] || rm "$B/in/$f"
	[ "$(count_of "$B" m-12.md)" = 0 ] || break
	sleep 0.2
done
arrives "$B" m-12.md 20 >/dev/null || exit 1
assert_wait "! grep -q '^waiting' '$B/status'" 20
pass 'more than --items-max waits, and comes'

say 'mount --json'
umount_at "$B"
mount_at carol "$OBSERVER" "$B" --json
assert_eq "$(json_get state <"$T/said")" online 'its state'
assert_eq "$(json_get session_id <"$T/said")" "$SESSION" 'its session'
assert_eq "$(json_get path <"$T/said")" "$B" 'its path'
mount_try carol "$OBSERVER" "$B" --json || fail 'twice'
sed -i '/^{/,$!d' "$T/said"
forget_mount "$B"
MOUNTS+=("$B")
assert_eq "$(json_get state <"$T/said")" mounted 'mounted already'
pass 'mount --json says where and what'
finish
