#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
#
# Goal: M2, M4, M6, M10, W2, W3, W7 and R2 of the cases: what users of such
# mounts met elsewhere does not happen here.
. "$TOP/tests/lib.sh"
pair_through_shim
queued() { sed -n 's/^queued //p' "$A/status"; }
online() { assert_wait "grep -q '^online' '$A/status'" 60; }

if [ "$(id -u)" = 0 ]; then
	say 'M2: a dead mount of another program, and a file as mount point'
	mkdir "$T/foreign"
	python3 - "$T/foreign" <<'P' || fail 'no foreign mount'
import ctypes, os, sys
fd = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
how = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"somebody", sys.argv[1].encode(), b"fuse.else", 6, how):
    sys.exit(os.strerror(ctypes.get_errno()))
P
	printf '%s\n' "$SENDER" >"$T/link"
	assert_status 10 as dora "$AIRLOXFS" mount "@$T/link" "$T/foreign"
	assert_sentence
	grep -q somebody "$T/said" || fail "its owner: $(cat "$T/said")"
	assert_eq "$(grep -c " $T/foreign fuse.else" /proc/self/mounts)" 1 \
		'it is still there'
	umount "$T/foreign"
	assert_status 10 as dora "$AIRLOXFS" mount "@$T/link" "$T/link"
	assert_sentence
	pass M2
fi

say 'M4: HOME inside the mount point'
mkdir "$T/home"
start=$SECONDS
printf '%s\n' "$SENDER" | HOME=$T/home XDG_CACHE_HOME=$T/xc \
	XDG_STATE_HOME=$T/xs PATH="$T/home/bin:$PATH" timeout 30 \
	"$AIRLOXFS" mount --as homer - "$T/home" >"$T/said" 2>&1 ||
	fail "$(cat "$T/said")"
MOUNTS+=("$T/home")
[ $((SECONDS - start)) -le $((3 * SLOW)) ] || fail 'slow'
umount_at "$T/home"
pass M4

say 'M6: 20 files to a slow relay, and unmounted at once'
shim delay 3 >/dev/null
for i in $(seq 20); do
	(echo "# $i" >"$A/out/m6-$i.md") &
	pids[i]=$!
done
for i in $(seq 20); do assert_wait "[ -s '$A/out/m6-$i.md' ]" 5; done
# the relay has some, and its answers are on their way: the next mount's stream
# tells of them before it posts what is left
assert_wait "ls '$B/in' | grep -q m6-" 30
status=0
timeout 90 "$AIRLOXFS" umount --wait 0 "$A" >"$T/said" 2>&1 || status=$?
[ $status = 0 ] || [ $status = 75 ] || fail "umount: $status"
[ $status = 0 ] || grep -q 'unsent' "$T/said" || fail "$(cat "$T/said")"
for i in $(seq 20); do wait "${pids[i]}"; done
forget_mount "$A"
shim pass >/dev/null
mount_at alice "$through" "$A"
for i in $(seq 20); do arrives "$B" "m6-$i.md" 30 >/dev/null || exit 1; done
settle "$A" "$B"
for i in $(seq 20); do
	assert_eq "$(count_of "$B" "m6-$i.md")" 1 "m6-$i"
done
pass M6

say 'M10: the cache is removed by hand while items are queued'
shim refuse >/dev/null
assert_wait "grep -q '^offline' '$A/status'" 60
for i in 1 2 3; do echo "# $i" >"$A/out/m10-$i.md"; done
head -c 700000 /dev/urandom >"$T/m10.bin"
cp "$T/m10.bin" "$A/out/m10.bin" || fail cp
assert_eq "$(queued)" 4 queued
rm -rf "$T"/peers/alice/.cache/airlox/*
shim pass >/dev/null
online
assert_cmp "$T/m10.bin" "$(arrives "$B" m10.bin 30)"
settle "$A" "$B"
for n in m10-1.md m10-2.md m10-3.md m10.bin; do
	assert_eq "$(count_of "$B" $n)" 1 "$n"
done
umount_at "$A"
mount_at alice "$through" "$A"
assert_cmp "$T/m10.bin" "$A/out/m10.bin"
pass M10

say 'R2: items while the connection is reset at random'
N=300
[ -z "${SOAK:-}" ] || N=1000
python3 -c "
for i in range($N):
    with open('$A/out/r2-%04d.md' % i, 'w') as f:
        f.write('# %d' % i)" &
writer=$!
for _ in $(seq ${SOAK:+4}50); do
	shim reset >/dev/null
	sleep "0.$((RANDOM % 9 + 1))"
	kill -0 $writer 2>/dev/null || break
done
wait $writer || fail 'the writer'
assert_wait "[ \$(ls '$B/in' | grep -c -- '-r2-') = $N ]" 60
settle "$A" "$B"
assert_eq "$(ls "$B/in" | grep -c -- '-r2-')" $N 'each once'
ls "$B/in" | sed -n 's/.*-r2-/r2-/p' >"$T/order"
sort -c "$T/order" || fail 'out of order'
pass R2

say 'W2, W3: a relay that says no'
echo >"$T/codes"
"$TOP/tests/hostile/codes.py" "$RELAY_PORT" "$T/codes" >"$T/codes.out" &
DAEMONS+=($!)
wait_line "$T/codes.out" '^[0-9]+$'
no=$(sed "s|$RELAY_URL|http://127.0.0.1:$(cat "$T/codes.out")|" <<<"$SENDER")
mount_at nora "$no" "$T/n"
N=$T/n
w2() { # CODES ERRNO-WORDS STATE
	echo "$1" >"$T/codes"
	local name=w2-${1// /-}.md rc=0
	printf '# %s\n' "$1" >"$T/item"
	timeout 60 cp "$T/item" "$N/out/$name" 2>"$T/said" || rc=$?
	if [ -n "$2" ]; then
		[ $rc != 0 ] || fail "$1: cp says nothing"
		grep -qi "$2" "$T/said" || fail "$1: $(cat "$T/said")"
	else
		[ $rc = 0 ] || fail "$1: $(cat "$T/said")"
	fi
	assert_wait "[ \"\$(xattr '$N/out/$name' state)\" = $3 ]" 60
	[ "$3" = sent ] && want=1 || want=0
	echo >"$T/codes"
	settle "$N" "$B"
	assert_eq "$(count_of "$B" "$name")" $want "$1: at Bob"
}
w2 '403' 'permission denied' failed
w2 '413' 'too large' failed
w2 '400' 'protocol error' failed
w2 '429' '' sent
w2 '507 503' '' sent
w2 '500 502 429' '' sent
pass W2

echo 503 503 503 >"$T/codes"
python3 - "$N/out" <<'P' &
import os, sys
f = os.open(sys.argv[1] + "/.w3", os.O_WRONLY | os.O_CREAT)
os.write(f, b"# w3\n")
os.fsync(f)
os.close(f)
os.rename(sys.argv[1] + "/.w3", sys.argv[1] + "/w3.md")
P
writer=$!
sleep 0.3
kill -KILL "$(daemon_pid "$N")"
wait $writer
forget_mount "$N"
mount_at nora "$no" "$N"
[ -e "$N/out/w3.md" ] || mv "$N/out/.w3" "$N/out/w3.md" || fail 'it is gone'
arrives "$B" w3.md 30 >/dev/null || exit 1
settle "$N" "$B"
assert_eq "$(count_of "$B" w3.md)" 1 w3
pass W3
umount_at "$N"

say 'W7: ls in a loop while items come and go'
python3 - "$A" "$B" <<'P' || fail 'W7'
import os, subprocess, sys, threading
a, b = sys.argv[1:]
stay = {n for n in os.listdir(b + "/in")}
gone = {n for n in stay if "-r2-" in n}
stop, wrong = threading.Event(), []
def look():
    while not stop.is_set():
        names = os.listdir(b + "/in")
        if len(names) != len(set(names)):
            wrong.append("a name twice")
        if not (stay - gone) <= set(names):
            wrong.append(f"missing: {stay - gone - set(names)}")
t = [threading.Thread(target=look) for _ in range(2)]
[x.start() for x in t]
def write():
    for i in range(200):
        with open(f"{a}/out/w7-{i}.md", "w") as f:
            f.write("# w7")
w = threading.Thread(target=write)
w.start()
for n in sorted(gone):
    os.unlink(f"{b}/in/{n}")
w.join()
stop.set()
[x.join() for x in t]
assert not wrong, wrong[:3]
P
assert_wait "[ \$(ls '$B/in' | grep -c -- '-w7-') = 200 ]" 30
assert_eq "$(ls "$B/in" | grep -c -- '-r2-')" 0 'what was removed'
pass W7

umount_at "$B"
umount_at "$A"
finish
