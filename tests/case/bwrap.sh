#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: a mount bound into a sealed sandbox sends, receives, and is watched
# from inside.
. "$TOP/tests/lib.sh"
need_fuse
need bwrap inotifywait
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OWNER" "$T/b"
box() {
	bwrap --unshare-all --die-with-parent --new-session \
		--ro-bind /usr /usr --ro-bind /etc /etc \
		--symlink usr/bin /bin --symlink usr/sbin /sbin \
		--symlink usr/lib /lib --symlink usr/lib64 /lib64 \
		--dev /dev --proc /proc --tmpfs /tmp --bind "$T/a" /session \
		--chdir /session "$@"
}
box true 2>"$T/said" || skip "no sandbox here: $(head -n 1 "$T/said")"

box sh -c 'echo "from the box" >say && printf "# box\n" >out/box.md' ||
	fail 'the box cannot send'
assert_wait "grep -qx 'from the box' '$T'/b/in/*-alice.txt" 10
assert_eq "$(cat "$(arrives "$T/b" box.md)")" '# box' 'what the box sent'
pass 'sends'

box bash -c '{ echo one; /bin/echo two; echo three; } >out/group.md
	exec 5>out/fd.md; echo a >&5; /bin/echo b >&5; exec 5>&-' ||
	fail 'the box cannot send'
assert_eq "$(cat "$(arrives "$T/b" group.md)")" $'one\ntwo\nthree' group
assert_eq "$(cat "$(arrives "$T/b" fd.md)")" $'a\nb' 'a descriptor'
settle "$T/a" "$T/b"
assert_eq "$(count_of "$T/b" group.md)" 1 'one item of a group'
assert_eq "$(count_of "$T/b" fd.md)" 1 'one item of a descriptor'
pass 'one item each, with other process ids inside'

box sh -c 'inotifywait -q -t 30 -e close_write --format %f in/ >/tmp/f &&
	cat "in/$(cat /tmp/f)"' >"$T/woke" &
waiter=$!
sleep 2
printf '# wake up\n' >"$T/b/out/wake.md"
wait "$waiter" || fail 'nobody was woken inside'
assert_eq "$(cat "$T/woke")" '# wake up' 'read inside when woken'
pass 'watched from inside'

box sh -c 'cat in/*-wake.md' >"$T/read" || fail 'the box cannot read'
assert_eq "$(cat "$T/read")" '# wake up' 'received'
pass 'receives'

say 'a sandbox that holds the mount does not keep umount from ending'
box sleep 30 &
holder=$!
sleep 0.5
umount_at "$T/a"
pass 'umount with the box still there'
kill "$holder"
wait "$holder" 2>/dev/null
finish
