#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 400
#
# Goal: 100 MB both ways (nearly 1 GiB under `make soak`): equal sums, and
# neither daemon above 32 MB.
. "$TOP/tests/lib.sh"
need_fuse
relay_start --max-item-bytes 1073741824 --max-session-bytes 4294967296
MB=128 BIG=$T/big.bin
[ -z "${SOAK:-}" ] || MB=1024 BIG=$T/big.zip
session_new --max-item-mb $MB
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OWNER" "$T/b"
if [ -z "${SOAK:-}" ]; then
	head -c 100000000 /dev/urandom >"$BIG"
else # any other file travels as a zip of one entry, and that ends at 512 MiB
	head -c 520000000 /dev/urandom >"$T/half"
	python3 -c "
import zipfile
with zipfile.ZipFile('$BIG', 'w') as z:
    z.write('$T/half', 'one')
    z.write('$T/half', 'two')" || fail zip
	rm "$T/half"
fi
N=$(stat -c %s "$BIG")
sum=$(sum_of "$BIG")

cross() { # FROM TO NAME
	cp "$BIG" "$T/$1/out/$3" || fail "cp to $1"
	wait_for "[ \"\$(xattr '$T/$1/out/$3' state)\" = sent ]" 60 ||
		fail "$3: $(xattr "$T/$1/out/$3" state)"
	local entry
	entry=$(arrives "$T/$2" "$3" 300) || exit 1
	assert_eq "$(stat -c %s "$entry")" $N 'its size at once'
	assert_eq "$(sum_of "$entry")" "$sum" "sum at $2"
	assert_eq "$(xattr "$entry" sha256)" "$sum" 'user.airlox.sha256'
	pass "$N bytes from $1 to $2"
}
cross a b "there.${BIG##*.}"
cross b a "back.${BIG##*.}"

for m in a b; do
	peak=$(rss_peak_kb "$(daemon_pid "$T/$m")")
	say "daemon of $m: at most $peak kB"
	[ -n "$SAN" ] || [ "$peak" -lt 32768 ] ||
		fail "daemon of $m took $peak kB"
done
pass 'memory'
finish
