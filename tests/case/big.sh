#!/bin/bash
# SPDX-License-Identifier: MIT
# alone
# timeout: 400
#
# Goal: 100 MB both ways: equal sums, and neither daemon above 32 MB.  1 GiB
# under `make soak`.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
N=100000000 MB=128
[ -z "${SOAK:-}" ] || N=$((1024 * 1024 * 1024 - 4096)) MB=1024
session_new --max-item-mb $MB
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OWNER" "$T/b"
head -c $N /dev/urandom >"$T/big.bin"
sum=$(sum_of "$T/big.bin")

cross() { # FROM TO NAME
	cp "$T/big.bin" "$T/$1/out/$3" || fail "cp to $1"
	wait_for "[ \"\$(xattr '$T/$1/out/$3' state)\" = sent ]" 60 ||
		fail "$3: $(xattr "$T/$1/out/$3" state)"
	local entry
	entry=$(arrives "$T/$2" "$3" 300) || exit 1
	assert_eq "$(stat -c %s "$entry")" $N 'its size at once'
	assert_eq "$(sum_of "$entry")" "$sum" "sum at $2"
	assert_eq "$(xattr "$entry" sha256)" "$sum" 'user.airlox.sha256'
	pass "$N bytes from $1 to $2"
}
cross a b there.bin
cross b a back.bin

for m in a b; do
	peak=$(rss_peak_kb "$(daemon_pid "$T/$m")")
	say "daemon of $m: at most $peak kB"
	[ -n "$SAN" ] || [ "$peak" -lt 32768 ] ||
		fail "daemon of $m took $peak kB"
done
pass 'memory'
finish
