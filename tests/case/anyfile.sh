#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: any file crosses: what an item cannot carry travels as a zip of that
# one entry, and is itself again in the other mount.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new --max-item-mb 64
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OWNER" "$T/b"
mkdir "$T/src"
cd "$T/src" || exit 1
printf 'a,b\r\n1,2\r\n' >table.csv
printf '{"a": [1, 2]}\n' >data.json
head -c 10000 /dev/urandom >blob
printf 'just text, no extension' >text
printf 'plain\n' >plain.txt
head -c 50000000 /dev/urandom >big.bin
printf '\xff\xfe' >two.bytes
printf '%s' 'x' >'with space (1).dat'
printf '%s' 'y' >'ünï—code.dat'
cp table.csv UPPER.CSV

with_id() { # DIR ID: the entry
	local e
	for e in "$1"/in/*; do
		[ "$(xattr "$e" id)" != "$2" ] || echo "$e"
	done
}
for f in table.csv data.json blob big.bin two.bytes 'with space (1).dat' \
	'ünï—code.dat' UPPER.CSV; do
	cp "$f" "$T/a/out/" || fail "cp $f"
	wait_for "[ \"\$(xattr '$T/a/out/$f' state)\" = sent ]" 20 ||
		fail "$f: $(xattr "$T/a/out/$f" state)"
	id=$(xattr "$T/a/out/$f" id)
	assert_wait "[ -n \"\$(with_id '$T/b' '$id')\" ]" 20
	entry=$(with_id "$T/b" "$id")
	assert_cmp "$f" "$entry"
	assert_eq "$(xattr "$entry" name)" "$f" 'its exact name'
	assert_eq "$(xattr "$entry" wrapped)" zip "$f is wrapped"
	assert_eq "$(xattr "$entry" sha256)" "$(sum_of "$f")" "$f: sha256"
	pass "$f"
done

say 'ranges of the large one'
big=$(entry_of "$T/b" big.bin)
for at in 0 1 65535 65536 65537 1048576 49999999; do
	cmp <(tail -c +$((at + 1)) big.bin | head -c 70000) \
		<(tail -c +$((at + 1)) "$big" | head -c 70000) ||
		fail "range at $at"
done
python3 - big.bin "$big" <<'E' || fail 'mmap, pread'
import mmap, os, random, sys
a, b = (open(p, "rb") for p in sys.argv[1:])
m = mmap.mmap(b.fileno(), 0, prot=mmap.PROT_READ)
random.seed(7)
for _ in range(300):
    at, n = random.randrange(50000000), random.randrange(1, 200000)
    want = os.pread(a.fileno(), n, at)
    assert want == m[at:at + n] == os.pread(b.fileno(), n, at), (at, n)
E
pass 'pread and mmap at random'

say 'UTF-8 without an extension, and .txt, are text'
cp text plain.txt "$T/a/out/" || fail 'cp of texts'
assert_wait "[ \$(ls '$T/b/in/' | grep -c -- '-alice.txt\$') = 2 ]" 10
assert_wait "grep -qx 'just text, no extension' '$T'/b/in/*-alice.txt" 5
assert_wait "grep -qx plain '$T'/b/in/*-alice.txt" 5
pass 'text'
finish
