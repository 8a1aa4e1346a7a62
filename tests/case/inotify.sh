#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: `inotifywait -m -e close_write in/` names each of 1,000 arrivals
# once, and each is complete when it is named.
. "$TOP/tests/lib.sh"
need_fuse
need inotifywait
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OBSERVER" "$T/b"
N=1000

inotifywait -q -m -e close_write --format %f "$T/b/in/" >"$T/raw" \
	2>"$T/inotify.err" &
DAEMONS+=($!)
# The reader opens each file at once, as a script would.
inotifywait -q -m -e close_write --format %f "$T/b/in/" |
	while IFS= read -r f; do
		sha256sum "$T/b/in/$f" | sed "s|$T/b/in/||"
	done >"$T/seen" &
sleep 1

python3 - "$T/a/out" "$N" >"$T/sent" <<'E' || fail 'a write failed'
import hashlib, os, random, sys
where, n = sys.argv[1], int(sys.argv[2])
random.seed(1)
for i in range(n):
    data = b"# %d\n" % i + random.randbytes(random.randrange(900)).hex(
        ).encode() + b"\n"
    with open(f"{where}/n{i}.md", "wb") as f:
        f.write(data)
    print(hashlib.sha256(data).hexdigest(), f"n{i}.md")
E
wait_for "[ \$(wc -l <'$T/raw') -ge $N ]" 60 ||
	fail "$(wc -l <"$T/raw") of $N were named"
wait_for "[ \$(wc -l <'$T/seen') -ge $N ]" 60 ||
	fail "$(wc -l <"$T/seen") of $N were read"
settle "$T/a" "$T/b"
sleep 0.5
assert_eq "$(ls "$T/b/in" | grep -c 'md$')" $N 'entries in in/'
assert_eq "$(grep -c 'md$' "$T/raw")" $N 'named'
assert_eq "$(grep 'md$' "$T/raw" | sort -u | wc -l)" $N 'named once each'
pass "$N arrivals, each named once"

sed -n 's/^\([0-9a-f]*\)  *[0-9]*-alice-\(n.*\)$/\1 \2/p' "$T/seen" |
	sort >"$T/seen.s"
sort "$T/sent" >"$T/sent.s"
diff "$T/sent.s" "$T/seen.s" | head -n 5 >"$T/diff"
[ ! -s "$T/diff" ] || fail "not complete when named: $(cat "$T/diff")"
pass 'each complete when it was named'

say 'in order, and no spin when idle'
sort -c <(grep 'md$' "$T/raw") || fail 'arrived out of order'
pid=$(daemon_pid "$T/b")
ticks() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }
before=$(ticks)
sleep 2
used=$(($(ticks) - before))
[ "$used" -le 20 ] || fail "$used ticks in 2 s of idling"
pass 'idle'
for pid in $(pgrep -s 0 -x inotifywait); do kill "$pid"; done
wait "${DAEMONS[0]}" 2>/dev/null
DAEMONS=()
finish
