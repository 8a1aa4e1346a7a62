#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: W6 and the limits of the cache: where the room ends nothing half is
# sent or shown, status says why, and all goes on once there is room.
. "$TOP/tests/lib.sh"
need_fuse
[ "$(id -u)" = 0 ] || skip 'needs root, for small disks'
relay_start
session_new
mkdir "$T/small" && tmpfs_at "$T/small" 64m || skip 'no tmpfs may be mounted'
mount_at alice "$SENDER" "$T/a"
A=$T/a
piece() { # NAME BYTES
	head -c "$2" /dev/urandom >"$T/$1"
	cp "$T/$1" "$A/out/$1" || fail "cp of $1"
}
waits() { # DIR ERE
	assert_wait "grep -qE '^waiting .*$2' '$1/status'" 15
}
goes_on() { # DIR
	assert_wait "! grep -q '^waiting ' '$1/status'" 20
}

say '--cache-max'
mount_at bob "$OBSERVER" "$T/b" --cache-max 2M
B=$T/b
piece one.bin 900000
piece two.bin 900000
assert_cmp "$T/two.bin" "$(arrives "$B" two.bin)"
piece three.bin 900000
waits "$B" 'cache-max'
assert_eq "$(count_of "$B" three.bin)" 0 'above the limit'
assert_cmp "$T/one.bin" "$(entry_of "$B" one.bin)"
[ "$(du -sb "$T"/peers/bob/.cache/airlox/*/blobs | cut -f 1)" -le 2200000 ] ||
	fail 'the cache is larger'
assert_eq "$(grep -c 'cache-max' "$B/log")" 1 'lines of log'
rm "$(entry_of "$B" one.bin)" || fail 'rm'
assert_cmp "$T/three.bin" "$(arrives "$B" three.bin 4)"
goes_on "$B"
pass 'above --cache-max nothing is fetched, rm makes room at once'

piece four.bin 900000
waits "$B" 'cache-max'
grep -q '"fetched".*four\|acked' "$B/audit" && fail 'acknowledged'
umount_at "$B"
mount_at bob "$OBSERVER" "$B" --cache-max=64M
assert_cmp "$T/four.bin" "$(arrives "$B" four.bin)"
pass 'mounted with more: it comes'
umount_at "$B"
printf '%s\n' "$OBSERVER" >"$T/link"
for size in 0 x 5Q 99999999999T 1MM -1; do
	assert_status 64 as bob "$AIRLOXFS" mount "--cache-max=$size" \
		"@$T/link" "$B"
	assert_sentence
done
pass 'sizes that are none'

say 'what was sent gives way, and is given back to who comes late'
as alice2 "$AIRLOXFS" create --relay "$URL" --as alice2 --json >"$T/two.json" ||
	fail create
link_of() { json_get "invites.$1" <"$T/two.json"; }
mount_at alice2 "$(link_of owner)" "$T/a2" --cache-max 2M
mount_at bob2 "$(link_of sender)" "$T/b2"
cp "$T/one.bin" "$T/two.bin" "$T/a2/out/" || fail cp
arrives "$T/b2" one.bin >/dev/null
arrives "$T/b2" two.bin >/dev/null
assert_wait "[ \$(grep -c '\"evicted\"' '$T/a2/audit') = 2 ]"
umount_at "$T/b2"
mount_at carol2 "$(link_of observer)" "$T/c2"
assert_cmp "$T/one.bin" "$(arrives "$T/c2" one.bin)"
assert_cmp "$T/two.bin" "$(arrives "$T/c2" two.bin)"
assert_eq "$(grep -c 'was given back' "$T/a2/log")" 2 'given back'
mount_at bob2 "$(link_of sender)" "$T/b2"
cp "$T/three.bin" "$T/b2/out/" || fail cp
assert_cmp "$T/three.bin" "$(arrives "$T/a2" three.bin)"
assert_eq "$(ls "$T"/peers/alice2/.cache/airlox/*/blobs | wc -l)" 2 \
	'one of what was sent is gone'
umount_at "$T/a2"; umount_at "$T/b2"; umount_at "$T/c2"
pass 'what was sent makes room for what comes'

say 'the disk of the cache is nearly full'
mkdir "$T/small/c" "$T/small/s"
mount_small() { # NAME: cache and state on the small disk
	mkdir -p "$T/$1"
	printf '%s\n' "$SENDER" | as "$1" env XDG_CACHE_HOME="$T/small/c" \
		XDG_STATE_HOME="$T/small/s" "$AIRLOXFS" mount --as "$1" - \
		"$T/$1" >"$T/said" 2>&1 || fail "mount: $(cat "$T/said")"
	MOUNTS+=("$T/$1")
}
mount_small carol
C=$T/carol
arrives "$C" four.bin >/dev/null
head -c 62000000 /dev/zero >"$T/small/ballast" 2>/dev/null
piece five.bin 300000
waits "$C" 'nearly full'
assert_eq "$(count_of "$C" five.bin)" 0 'a twentieth stays free'
assert_cmp "$T/four.bin" "$(entry_of "$C" four.bin)"
rm "$T/small/ballast"
echo reconnect >"$C/ctl"
assert_cmp "$T/five.bin" "$(arrives "$C" five.bin 15)"
goes_on "$C"
pass 'a twentieth of the disk stays free'

say 'the disk of the state is full, to the last byte'
head -c 80000000 /dev/zero >"$T/small/ballast" 2>/dev/null
status=0
head -c 3000000 /dev/urandom >"$T/big.bin"
cp "$T/big.bin" "$C/out/big.bin" 2>"$T/said" || status=$?
[ $status != 0 ] || fail 'cp says nothing'
grep -qi 'no space' "$T/said" || fail "cp: $(cat "$T/said")"
ls "$C/in" "$C/out" >/dev/null || fail ls
assert_cmp "$T/four.bin" "$(entry_of "$C" four.bin)"
timeout 20 dd if="$T/link" of="$C/say" status=none 2>/dev/null
for i in 1 2 3; do
	timeout 20 cp "$T/link" "$C/out/s$i.md" 2>/dev/null
	codes[i]=$?
done
[ "${codes[1]}" != 124 ] || fail 'a hang'
rm "$T/small/ballast"
rm -f "$C/out/big.bin"
assert_eq "$(head -c 6 "$C/status")" online 'it is well'
printf '# after\n' >"$C/out/after.md" || fail 'after'
assert_eq "$(cat "$(arrives "$A" after.md 15)")" '# after' 'after'
settle "$C" "$A"
assert_eq "$(count_of "$A" big.bin)" 0 'what had no room'
for i in 1 2 3; do
	[ "${codes[i]}" = 0 ] && want=1 || want=0
	assert_eq "$(count_of "$A" "s$i.md")" $want "s$i: cp gave ${codes[i]}"
done
pass 'ENOSPC, nothing half, and well again'

say 'and the mount that was full comes back after a kill'
head -c 80000000 /dev/zero >"$T/small/ballast" 2>/dev/null
piece six.bin 200000
waits "$C" 'nearly full'
kill -KILL "$(daemon_pid "$C")"
forget_mount "$C"
rm "$T/small/ballast"
mount_small carol
assert_cmp "$T/six.bin" "$(arrives "$C" six.bin 15)"
assert_eq "$(count_of "$C" five.bin)" 1 'once'
pass 'killed while full'
umount_at "$C"
finish
