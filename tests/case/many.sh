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
say 'W7: ls in a loop while items come and go'
GO=500
[ -z "$SAN" ] || GO=100
python3 - "$T/a" "$T/b" $GO <<'P' || fail 'W7'
import os, sys, threading
a, b, go = sys.argv[1], sys.argv[2], int(sys.argv[3])
before = sorted(os.listdir(b + "/in"))
gone, stay = set(before[::2][:go]), set(before) - set(before[::2][:go])
stop, wrong, rounds = threading.Event(), [], 0
def look():
    global rounds
    while not stop.is_set():
        names = os.listdir(b + "/in")
        rounds += 1
        if len(names) != len(set(names)):
            wrong.append("a name twice")
        if not stay <= set(names):
            wrong.append(f"missing: {len(stay - set(names))}")
def write():
    for i in range(go):
        with open(f"{a}/out/w7-{i}.md", "w") as f:
            f.write("# w7")
t = [threading.Thread(target=look) for _ in range(2)]
w = threading.Thread(target=write)
[x.start() for x in t + [w]]
for n in gone:
    os.unlink(f"{b}/in/{n}")
w.join()
stop.set()
[x.join() for x in t]
print(f"# {rounds} listings")
assert not wrong, wrong[:3]
P
assert_wait "[ \$(ls '$T/b/in' | wc -l) = $N ]" 60
assert_eq "$(ls "$T/b/in" | grep -c -- '-w7-')" $GO 'what came'
pass "W7: $GO came, $GO went, among $N"
say "the daemon took $(rss_peak_kb "$(daemon_pid "$T/b")") kB"
pass 'mount, ls, find, grep -r'

say 'jobs that have ended: the newest 1,000 stay'
session_new --execute --no-approval
mount_at cora "$SENDER" "$T/c"
python3 - "$T/c/jobs" <<'P' || fail 'jobs'
import os, sys
for i in range(1010):
    job = f"{sys.argv[1]}/n{i:04}"
    os.mkdir(job)
    if i % 10 == 0:
        os.mkdir(job + "/dir")
    for name in ("a.py", "dir/b.txt")[:1 + (i % 10 == 0)]:
        with open(f"{job}/{name}", "w") as f:
            f.write("# one\n")
    with open(job + "/ctl", "w") as f:
        f.write("nowait\nrun\n")
P
assert_wait "grep -q '^failed' '$T/c/jobs/n1009/status'" 60
mkdir "$T/c/jobs/last-one"
assert_wait "[ \$(ls -d '$T'/c/jobs/n[0-9]* | wc -l) = 1000 ]" 60
assert_eq "$(ls -d "$T"/c/jobs/n[0-9]* | head -n 1)" "$T/c/jobs/n0010" 'the oldest'
rmdir "$T/c/jobs/last-one"
umount_at "$T/c"
mount_at cora "$SENDER" "$T/c"
assert_eq "$(ls -d "$T"/c/jobs/n[0-9]* | wc -l)" 1000 'mounted again'
assert_eq "$(cat "$T/c/jobs/n0010/dir/b.txt")" '# one' 'its inputs'
pass 'jobs are trimmed'
finish
