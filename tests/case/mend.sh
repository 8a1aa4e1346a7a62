#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: what the state directory keeps is worth its place: it brings back a
# lost identity, and nothing in it can keep a mount from starting.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$OWNER" "$T/a"
mount_at bob "$SENDER" "$T/b"
A=$T/a B=$T/b
settle "$B" "$A"
settle "$A" "$B"

before=$(ls "$A/participants" | wc -l)
umount_at "$B"
rm "$T"/peers/bob/.cache/airlox/*/identity-sender.json
mount_at bob "$SENDER" "$T/b"
settle "$B" "$A"
assert_eq "$(ls "$A/participants" | wc -l)" "$before" 'a second bob joined'
pass 'the sealed copy of a lost identity restores it'

say 'names that are reduced to the same'
mount_at 'c d' "$SENDER" "$T/c1"
mount_at 'c_d' "$SENDER" "$T/c2"
mount_at c3 "$SENDER" "$T/c3" --as c_d
for c in c1 c2 c3; do
	settle "$T/$c" "$A"
done
umount_at "$A"
mount_at alice "$OWNER" "$A"
for c in c1 c2 c3; do
	settle "$T/$c" "$A"
done
assert_eq "$(ls "$A/rejected" | wc -l)" 0 'their items are refused'
assert_eq "$(ls "$A/participants" | grep -c '^c_d')" 3 'each has a file'
assert_eq "$(ls "$A/participants" | grep -c '^c_d+')" 2 'and a name'
umount_at "$T/c1"; umount_at "$T/c2"; umount_at "$T/c3"
pass 'after a remount they are who they were'

say 'attributes and errors that are no UTF-8'
python3 - "$B/out" <<'P' || fail 'xattrs'
import os, sys, subprocess, signal, time
out = sys.argv[1]
with open(out + "/.x.md", "w") as f:
    f.write("# x")
os.setxattr(out.encode() + b"/.x.md", b"user.\xff\xfe", b"\0\xff")
# 255 bytes of three-byte characters: the sentence is cut within one
name = "\u65e5" * 84 + ".md"
read, write = os.pipe()
child = subprocess.Popen(["cat"], stdin=read, stdout=open(
    f"{out}/{name}", "w"))
os.write(write, b"half")
time.sleep(0.3)
child.send_signal(signal.SIGTERM)
child.wait()
P
assert_status 75 "$AIRLOXFS" umount "$B"
forget_mount "$B"
mount_at bob "$SENDER" "$B"
assert_eq "$(cat "$B/out/.x.md")" '# x' 'a draft with odd attributes'
python3 - "$B/out" <<'P' || fail 'what came back'
import os, sys
out = sys.argv[1]
assert os.getxattr(out.encode() + b"/.x.md", b"user.\xff\xfe") == b"\0\xff"
name = "\u65e5" * 84 + ".md"
assert open(f"{out}/{name}").read() == "half"
os.getxattr(f"{out}/{name}", "user.airlox.error").decode()
os.unlink(out + "/.x.md")
os.unlink(f"{out}/{name}")
P
pass 'drafts come back'

say 'one bit of a stored blob, where it steers all the others'
head -c 300000 /dev/urandom >"$T/bits.bin"
cp "$T/bits.bin" "$B/out/bits.bin"
entry=$(arrives "$A" bits.bin) || exit 1
blob=$(ls "$T"/peers/alice/.cache/airlox/*/blobs/"$(xattr "$entry" id)")
python3 - "$blob" "$entry" "$T/bits.bin" <<'P' || fail 'wrong bytes'
import errno, os, sys, time
blob, entry, good = sys.argv[1:]
good = open(good, "rb").read()
with open(blob, "r+b") as f:
    first = f.read(1)
    f.seek(0)
    f.write(bytes([first[0] ^ 1]))
end = time.time() + 20
seen = []
while time.time() < end:
    try:
        with open(entry, "rb") as f:
            f.seek(200000)
            got = f.read()
        seen.append(0)
        assert got == good[200000:], "garbage"
        break
    except OSError as e:
        assert e.errno == errno.EIO, e
        seen.append(e.errno)
        time.sleep(0.1)
assert seen[0] == errno.EIO and seen[-1] == 0, seen
P
pass 'EIO, and fetched again'

finish
