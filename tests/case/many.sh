#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
#
# Goal: 10,000 items in in/: mounting, ls, find and grep -r work and count
# right.  How long a mount takes is printed; the goal is 2 s.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OBSERVER" "$T/b"
N=10000
[ -z "$SAN" ] || N=1000

python3 - "$T/a/out" $N <<'P' || fail 'a writer'
import sys, threading
where, n = sys.argv[1], int(sys.argv[2])
def write(k):
    for i in range(k, n, 8):
        with open(f"{where}/i{i:05}.md", "w") as f:
            f.write(f"# item {i}\nneedle{i % 100}\n")
t = [threading.Thread(target=write, args=(k,)) for k in range(8)]
[x.start() for x in t]
[x.join() for x in t]
P
wait_for "[ \$(ls '$T/b/in' | wc -l) = $N ]" 90 ||
	fail "$(ls "$T/b/in" | wc -l) of $N"
pass "$N arrived"
umount_at "$T/b"
start=$(date +%s%N)
mount_at bob "$OBSERVER" "$T/b"
say "mounted with $N items in $((($(date +%s%N) - start) / 1000000)) ms"
assert_eq "$(ls "$T/b/in" | wc -l)" $N ls
assert_eq "$(find "$T/b/in" -type f -name '*.md' | wc -l)" $N find
assert_eq "$(grep -rl 'needle7$' "$T/b/in" | wc -l)" $((N / 100)) 'grep -r'
assert_eq "$(cat "$T"/b/in/*-i000[0-9]*.md | grep -c '^# item')" 100 cat
say "the daemon took $(rss_peak_kb "$(daemon_pid "$T/b")") kB"
pass 'mount, ls, find, grep -r'
finish
