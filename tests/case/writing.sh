#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: out/ is a directory that programs can live with: sizes, names, ranges,
# renames, attributes, many writers; and what was sent is what is recorded.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OBSERVER" "$T/b"
A=$T/a B=$T/b

say 'sizes around every edge'
mkdir "$T/s"
for n in 1 2 15 16 17 4095 4096 4097 65507 65508 65536 65537 1048575 1048576 \
	1048577 3000001; do
	head -c $n /dev/urandom | base64 -w 0 | head -c $n >"$T/s/s$n.md"
	cp "$T/s/s$n.md" "$A/out/" || fail "cp of $n bytes"
done
for n in 1 2 15 16 17 4095 4096 4097 65507 65508 65536 65537 1048575 1048576 \
	1048577 3000001; do
	f=$(arrives "$B" "s$n.md") || exit 1
	assert_eq "$(wc -c <"$f")" $n wc
	assert_eq "$(sum_of "$f")" "$(sum_of "$T/s/s$n.md")" "sum of $n"
	cmp <(tail -c 7 "$f") <(tail -c 7 "$T/s/s$n.md") || fail "tail $n"
	cmp <(dd if="$f" bs=7919 status=none) "$T/s/s$n.md" || fail "dd $n"
	assert_cmp "$A/out/s$n.md" "$T/s/s$n.md"
done
pass 'sizes'

say 'odd orders of writing'
python3 - "$A/out" "$T" <<'E' || fail 'python says no'
import os, sys
out, where = sys.argv[1:]
def want(name, data):
    with open(f"{where}/want-{name}", "wb") as f:
        f.write(data)
# Backwards, with a hole, overlapping.
fd = os.open(out + "/back.py", os.O_WRONLY | os.O_CREAT)
os.pwrite(fd, b"END", 100000)
os.pwrite(fd, b"BEGIN", 0)
os.pwrite(fd, b"GINNING", 2)
os.close(fd)
want("back.py", b"BEGINNING" + bytes(100000 - 9) + b"END")
# Longer, then cut, then longer again: zeros between.
fd = os.open(out + "/cut.py", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 10000)
os.ftruncate(fd, 5000)
os.ftruncate(fd, 6000)
os.lseek(fd, 0, os.SEEK_END)
os.write(fd, b"#end")
assert os.pread(fd, 6, 4997) == b"xxx\0\0\0", os.pread(fd, 6, 4997)
os.close(fd)
want("cut.py", b"x" * 5000 + bytes(1000) + b"#end")
# Read back what is not yet sent.
fd = os.open(out + "/rw.py", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
os.write(fd, b"0123456789")
assert os.pread(fd, 4, 3) == b"3456"
os.pwrite(fd, b"x", 9)
os.fsync(fd)
os.close(fd)
want("rw.py", b"012345678x")
# Bytes one by one.
with open(out + "/one.py", "wb", buffering=0) as f:
    for i in range(3000):
        f.write(b"%d" % (i % 10))
want("one.py", b"0123456789" * 300)
try:
    os.open(out + "/one.py", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    sys.exit("O_EXCL on a name that is there")
except FileExistsError:
    pass
E
for name in back.py cut.py rw.py one.py; do
	assert_cmp "$T/want-$name" "$(arrives "$B" $name)"
done
pass 'odd orders'

say 'names that are carried exactly'
python3 - "$A/out" <<'E' || fail 'a name was refused'
import sys
for name in ("ünïcode.md", "u\u0308.md", "with space.md", "a'b\"c.md",
             "日本語.md", "(1) [2] {3}.md", "$HOME.md", "-dash.md",
             "UPPER.MD", "dots.a.b.md", "emoji😀.md", "100%.md"):
    with open(f"{sys.argv[1]}/{name}", "w") as f:
        f.write(name)
E
settle "$A" "$B"
python3 - "$B/in" <<'E' || fail 'a name came out otherwise'
import os, sys
seen = {}
for n in os.listdir(sys.argv[1]):
    path = f"{sys.argv[1]}/{n}"
    try:
        name = os.getxattr(path, "user.airlox.name").decode()
    except OSError:
        continue
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in n), repr(n)
    assert not n.split("-", 2)[2].startswith(("-", ".")), n
    seen[name] = open(path).read() if name.lower().endswith(".md") else ""
for name in ("ünïcode.md", "u\u0308.md", "with space.md", "a'b\"c.md",
             "日本語.md", "(1) [2] {3}.md", "$HOME.md", "-dash.md",
             "UPPER.MD", "dots.a.b.md", "emoji😀.md", "100%.md"):
    assert seen.get(name) == name, (name, sorted(seen))
E
pass 'names'

say 'renames, links, attributes'
echo '# v1' >"$A/out/.draft.md"
mv "$A/out/.draft.md" "$A/out/final.md" || fail 'mv of a draft'
assert_eq "$(cat "$(arrives "$B" final.md)")" '# v1' 'rename sends'
assert_eq "$(xattr "$A/out/final.md" state)" sent 'state'
assert_match "$(xattr "$A/out/final.md" seq)" '^[0-9]+$' seq
assert_match "$(xattr "$A/out/final.md" id)" '^[A-Za-z0-9_-]{22}$' id
assert_errno EPERM "os.link('$A/out/final.md', '$A/out/hard.md')"
assert_errno EPERM "os.symlink('final.md', '$A/out/sym.md')"
python3 - "$A/out/final.md" <<'E' || fail 'xattrs'
import mmap, os, sys
path = sys.argv[1]
os.setxattr(path, "user.color", b"blue")
assert os.getxattr(path, "user.color") == b"blue"
assert "user.airlox.state" in os.listxattr(path)
os.removexattr(path, "user.color")
fd = os.open(path, os.O_RDWR)
try:
    mmap.mmap(fd, 4)
    sys.exit("MAP_SHARED for writing")
except OSError as e:
    assert e.errno == 19, e
os.close(fd)
E
settle "$A" "$B"
assert_eq "$(count_of "$B" final.md)" 1 'opened for writing, not written'
cp "$T/s/s1.md" "$A/out/.again.md"
mv "$A/out/.again.md" "$A/out/final.md" || fail 'mv over a record'
assert_wait "[ \$(count_of '$B' final.md) = 2 ]"
pass 'renames, attributes'

say '16 writers at once'
for i in $(seq 16); do
	python3 -c "
for j in range(20):
    open('$A/out/w$i-%d.md' % j, 'w').write('# $i %d\n' % j)" &
	writers[i]=$!
done
for i in $(seq 16); do wait "${writers[i]}" || fail "writer $i"; done
assert_wait "[ \$(ls '$B/in' | grep -c -- '-w[0-9]*-[0-9]*.md') = 320 ]" 30
for f in "$B"/in/*-w*-*.md; do
	n=${f##*-w}
	n=${n%.md}
	assert_eq "$(cat "$f")" "# ${n/-/ }" "$f"
done
pass '320 items of 16 writers'

say 'drafts and records are there after the next mount'
echo '# draft' >"$A/out/.kept.md"
assert_status 75 "$AIRLOXFS" umount "$A"
assert_match "$(cat "$T/said")" '\.kept\.md' 'umount names the drafts'
assert_wait "! is_mounted '$A'"
forget_mount "$A"
assert_not grep -rqF '# draft' "$T/peers/alice"
mount_at alice "$SENDER" "$A"
assert_eq "$(cat "$A/out/.kept.md")" '# draft' 'a draft'
assert_cmp "$A/out/s4097.md" "$T/s/s4097.md"
assert_eq "$(xattr "$A/out/s4097.md" state)" sent 'a record'
mv "$A/out/.kept.md" "$A/out/kept.md" || fail 'mv'
arrives "$B" kept.md >/dev/null || exit 1
pass 'kept'

say 'no plain text on disk'
assert_not grep -rqF '# whole' "$T/peers"
for needle in 'ünïcode.md' '# v1' '0123456789012345'; do
	! grep -rlF -- "$needle" "$T/peers" "$T/relay" ||
		fail "'$needle' lies open on disk"
done
pass 'no plain text'
finish
