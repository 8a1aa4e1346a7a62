#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: jobs of a real session run in airlox-runner: what they print, leave and
# end with comes back; limits are kept and named; cancel, kill -9 and the end of
# the mount leave one result and nothing else; join does it all by itself.
. "$TOP/tests/lib.sh"
need_fuse
need bwrap
BIN=$BUILD/airlox-runner
"$BIN" check >"$T/check" 2>&1 || skip "no sandbox: $(cat "$T/check")"
PY=$(ls /usr/bin/python3.[0-9]* 2>/dev/null | grep -xE '.*python3\.[0-9]+' |
	head -n 1)
[ -n "$PY" ] || skip 'no /usr/bin/python3.N'
KEEP=$(mktemp -d /var/tmp/airlox-t.XXXXXX)
chmod 755 "$KEEP"
mkdir "$KEEP/scratch" "$KEEP/cache"
trap 'rm -rf "$KEEP"; clean_up' EXIT
RUNNER_PID=
PEER=box	# whose machine it runs on

# runner_start LOG arguments...
runner_start() {
	local log=$1
	shift
	mkdir -p "$T/peers/$PEER"
	HOME=$T/peers/$PEER XDG_CACHE_HOME=$T/peers/$PEER/.cache \
		XDG_STATE_HOME=$T/peers/$PEER/.local/state \
		"$BIN" "$@" >"$log" 2>&1 </dev/null &
	RUNNER_PID=$!
	DAEMONS+=("$RUNNER_PID")
	wait_line "$log" ' serving '
}
flags=(--scratch "$KEEP/scratch" --cache-dir "$KEEP/cache" --disk 64)

# run_job NAME [flags...] FILE: its exit status is the answer
run_job() {
	local name=$1 status=0
	shift
	printf '%s\n' "$SENDER" | as "$name" timeout $((${SOAK:+10 *} 90 * SLOW)) \
		"$AIRLOXFS" run "$@" --as "$name" --invite - \
		>"$T/out" 2>"$T/err" || status=$?
	return "$status"
}
assert_job() { # STATUS run_job's arguments
	local want=$1 got=0
	shift
	run_job alice "$@" || got=$?
	[ "$got" = "$want" ] || fail "run $*: $got, not $want: $(cat "$T/out" \
		"$T/err" "$T"/*.log)"
}
nothing_left() {
	assert_wait '[ -z "$(ls "$KEEP/scratch")" ]' 10
	assert_wait '! pgrep -f "$MARK" >/dev/null' 10
}
MARK=airlox-mark-$$-$RANDOM

cd "$T" || exit 1
cat >hello.py <<'PY_'
import os, sys
print('hello from', os.getcwd(), open('data.txt').read())
print('words', file=sys.stderr)
open(os.environ['AIRLOX_OUT'] + '/result.csv', 'w').write('a,b\n')
os.symlink('/etc/passwd', '/out/link')
sys.exit(3)
PY_
echo input >data.txt
cat >long.py <<PY_
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.execv(sys.executable, [sys.executable, '-c',
        'import time\nwhile True: time.sleep(.1)', '$MARK'])
print('up')
time.sleep(60)
PY_
echo 'a = []
while True: a.append(bytearray(4 << 20))' >hog.py
echo 'print(42)' >short.py
size=64
[ -z "${SOAK:-}" ] || size=5120
cat >flood.py <<PY_
import os, sys
os.write(1, b'HEAD\n')
for i in range($size):
    os.write(1, b'x' * (1 << 20))
os.write(1, b'TAIL\n')
sys.stderr.write('REASON\n')
PY_

relay_start
session_new --execute --runtime "${PY##*/}" --no-approval \
	--job-timeout 10m --job-memory 256
mount_at box "$RUNNER" "$T/q" --name box --labels small
mount_at olga "$OWNER" "$T/o"
runner_start "$T/runner.log" "${flags[@]}" "$T/q"

mkdir got
assert_job 3 --input data.txt --out-dir got hello.py
grep -q 'hello from /work input' out || fail "stdout: $(cat out)"
grep -q words err || fail "stderr: $(cat err)"
python3 -m zipfile -l got/out.zip | grep -q result.csv ||
	fail "out: $(find got)"
grep -q 'not sent from out/: link (symbolic link)' runner.log ||
	fail "log: $(cat runner.log)"
pass 'a job runs; output, exit code and files come back'

run_job alice --timeout 1s long.py && fail 'a job beyond its time'
grep -q 'its time of 1 s was up' runner.log || fail "$(cat runner.log)"
nothing_left
run_job alice --memory 64 hog.py && fail 'a job beyond its memory'
grep -qi 'out of memory' out err || fail "$(cat out err)"
pass "time and memory: $(grep -ho 'out of memory.*' err out | head -n 1)"

run_job bob flood.py &
flood=$!
n=0
while kill -0 "$flood" 2>/dev/null; do
	timeout $((10 * SLOW)) ls "$T/o" >/dev/null || fail 'a second mount'
	n=$((n + 1))
	sleep 0.1
done
wait "$flood" || fail "flood: $(tail -c 300 err)"
head -n 1 out | grep -q HEAD || fail 'no head'
tail -n 1 out | grep -q TAIL || fail 'no tail'
grep -q 'bytes skipped' out || fail 'no marker'
grep -q REASON err || fail 'no reason'
[ "$(stat -c %s out)" -lt 1200000 ] || fail "$(stat -c %s out) bytes"
peak=$(rss_peak_kb "$RUNNER_PID")
[ "$SLOW" != 1 ] || [ "$peak" -lt 30000 ] || fail "runner has $peak kB"
pass "$size MiB printed: runner $peak kB, a second mount answered $n times"

run_job alice --no-wait long.py || fail "$(cat err)"
job=$(grep -oE '[A-Za-z0-9_-]{22}' out | head -n 1)
assert_wait 'pgrep -f "$MARK" >/dev/null' 20
printf '%s\n' "$SENDER" | as alice "$AIRLOXFS" cancel --invite - -- "$job" \
	>said 2>&1 || fail "cancel: $(cat said)"
assert_wait 'grep -q "failed: cancelled" runner.log' 20
nothing_left
printf '%s\n' "$SENDER" | as alice "$AIRLOXFS" result --invite - -- "$job" \
	>said 2>&1
grep -q cancelled said || fail "result: $(cat said)"
pass 'a cancelled job is gone, and says so'

run_job alice --no-wait long.py || fail "$(cat err)"
job=$(grep -oE '[A-Za-z0-9_-]{22}' out | head -n 1)
assert_wait 'pgrep -f "$MARK" >/dev/null' 20
kill -KILL "$RUNNER_PID"
wait "$RUNNER_PID" 2>/dev/null
nothing_left
result() {
	printf '%s\n' "$SENDER" | as alice "$AIRLOXFS" result --invite - -- "$job" \
		>said 2>&1
	grep -q 'runner went away' said
}
assert_wait result 20
runner_start "$T/runner2.log" "${flags[@]}" "$T/q"
assert_job 0 short.py
assert_eq "$(cat out)" 42 'after a restart'
assert_not grep -q "$job" runner2.log
pass 'kill -9: one end, no trace, not run again; the next job runs'

umount_at "$T/q"
wait_for "! is_running $RUNNER_PID" 20 || fail 'the runner stays'
wait "$RUNNER_PID" || fail "exit $?: $(cat runner2.log)"
assert_wait "grep -qx offline '$T/o/runners/box/state'" 5
pass 'the end of the mount is the end of the runner, which is seen at once'

printf '%s\n' "$RUNNER" >link
chmod 600 link
for end in TERM KILL close; do
	PEER=shed-$end
	runner_start "$T/join-$end.log" join --name "shed-${end,,}" \
		--labels big --description 'a shed' "${flags[@]}" @link
	dir=$(sed -n 's/.* serving \([^:]*\):.*/\1/p' "join-$end.log")
	assert is_mounted "$dir"
	assert_job 0 --runner "shed-${end,,}" short.py
	assert_eq "$(cat out)" 42 'a job by name'
	assert_no_keys "/proc/$RUNNER_PID/cmdline" "/proc/$RUNNER_PID/environ"
	if [ $end = close ]; then
		printf '%s\n' "$OWNER" | as creator "$AIRLOXFS" close - \
			>/dev/null || fail close
	else
		kill -$end "$RUNNER_PID"
	fi
	status=0
	wait "$RUNNER_PID" 2>/dev/null || status=$?
	[ $end = KILL ] || assert_eq $status 0 "$(cat "join-$end.log")"
	assert_wait "! is_mounted '$dir' && [ ! -e '$dir' ]" 30
	pass "join, ended by $end: the mount and its directory are gone"
done
nothing_left

session_new --execute --runtime python3.99
printf '%s\n' "$RUNNER" | as shed-none timeout $((30 * SLOW)) "$BIN" join \
	--name none "${flags[@]}" - >said 2>&1 && fail "joined: $(cat said)"
grep -q 'want python3.99, which this host has not: install it' said ||
	fail "$(cat said)"
assert_eq "$(ls -d {"${TMPDIR:-/tmp}","${XDG_RUNTIME_DIR:-/tmp}"}/airlox-queue.* 2>/dev/null)" '' \
	'no mount stays'
pass 'join where the Python is not: says so'
finish
