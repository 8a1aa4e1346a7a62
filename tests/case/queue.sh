#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 180
#
# Goal: between mounts: jobs of jobs/ are run by docs/runner.sh on a runner's
# mount, with approval; output is seen while it grows; what was asked to end
# ends; a result outlives the network and the daemon, and comes once.
. "$TOP/tests/lib.sh"
need_fuse
need python3
relay_start
session_new --execute --runtime python3.11
mount_at olga "$OWNER" "$T/o"
mount_at bob "$SENDER" "$T/b"
mount_at run "$RUNNER" "$T/q" --name run --labels big

assert_eq "$(ls "$T/q" | xargs)" \
	'README ctl events log queue session status' "a runner's files"
assert_wait "grep -q '^runner ' '$T/q/session'"	# its own join has come
assert_match "$(cat "$T/q/session")" $'runner run\nlabels big' session
assert_eq "$(ls -A "$T/q/queue")" ready 'nothing yet'
assert_errno EPERM "open('$T/q/queue/x', 'w')"
assert_errno EPERM "os.mkdir('$T/q/queue/x')"
assert_errno EACCES "open('$T/q/queue/ready')"
pass "a runner's mount"

"$TOP/docs/runner.sh" "$T/q" >"$T/runner.out" 2>&1 &
DAEMONS+=($!)
RUNNER_PID=$!
printf 'print("hello")\n' >"$T/hello.py"
cp "$T/hello.py" "$T/b/jobs/new"
sleep 1.2	# by now the sender's mount has seen it online, and no approval
assert_eq "$(ls "$T/q/queue")" ready 'nothing before it is approved'
assert_wait "[ -e '$T/o/runners/run' ]"
echo approve >"$T/o/runners/run/ctl" || fail approve
assert_match "$(timeout $((30 * SLOW)) cat "$T/b/jobs/last/wait")" \
	'^completed' 'a job that waited for a runner'
assert_eq "$(cat "$T/b/jobs/last/stdout")" hello 'its output'
pass 'approved, it runs'

cat >"$T/slow.py" <<'P'
import os, time
print("first", flush=True)
while not os.path.exists("/nowhere"):
    time.sleep(0.05)
P
cp "$T/slow.py" "$T/b/jobs/new"
assert_wait "grep -qx first '$T/b/jobs/last/stdout'" 10
assert_match "$(cat "$T/b/jobs/last/status")" '^running' 'seen while it runs'
echo cancel >"$T/b/jobs/last/ctl" || fail cancel
assert_match "$(timeout $((30 * SLOW)) cat "$T/b/jobs/last/wait")" \
	'^cancelled' 'cancelled'
assert_wait "[ '$(ls "$T/q/queue")' = ready ] || ! ls '$T'/q/queue/*/ctl" 10
pass 'live output, cancel'

mkdir "$T/b/jobs/full"
printf 'import lib\nprint(lib.x, open("t.csv").read())\n' \
	>"$T/b/jobs/full/main.py"
echo 'x = 5' >"$T/b/jobs/full/lib.py"
echo '1,2' >"$T/b/jobs/full/t.csv"
printf 'entry main.py\nlabel big\nrun\n' >"$T/b/jobs/full/ctl" || fail run
assert_match "$(timeout $((30 * SLOW)) cat "$T/b/jobs/full/wait")" \
	'^completed' 'with inputs'
assert_eq "$(cat "$T/b/jobs/full/stdout")" '5 1,2' 'its output'
pass 'inputs, by label'
assert_wait "grep -qx idle '$T/o/runners/run/state'"
kill "$RUNNER_PID"
wait "$RUNNER_PID" 2>/dev/null
assert_wait "grep -qx offline '$T/o/runners/run/state'" 5
umount_at "$T/q"
pass 'nobody serves it any more: offline at once'

say 'by hand, through a network that breaks'
shim_start
far=${RUNNER/$RELAY_URL/$URL}
mount_at run2 "$far" "$T/q2" --name two
exec 9>"$T/q2/queue/ready"
assert_wait "[ -e '$T/o/runners/two' ]"
echo approve >"$T/o/runners/two/ctl" || fail 'approve two'
mkdir "$T/b/jobs/hard"
cp "$T/hello.py" "$T/b/jobs/hard/"
printf 'runner two\nrun\n' >"$T/b/jobs/hard/ctl" || fail 'run on two'
assert_wait "ls '$T'/q2/queue/*/spec.json" 20
job=$(echo "$T"/q2/queue/*/)
echo claim >"$job/ctl" || fail claim
echo 'by hand' >"$job/stdout"
echo left >"$job/out/left.txt"
echo 4 >"$job/exit"
shim drop
echo done >"$job/ctl" || fail 'done without a network'
assert_wait "! ls '$T'/q2/queue/*/ctl" 20
assert_match "$(cat "$T/q2/log")" 'completed: exit 4' 'it has ended'
pid=$(daemon_pid "$T/q2")
kill -KILL "$pid"
assert_wait "! is_running $pid"
exec 9>&-
forget_mount "$T/q2"
shim pass
mount_at run2 "$far" "$T/q2" --name two
assert_match "$(timeout $((30 * SLOW)) cat "$T/b/jobs/hard/wait")" \
	'^completed' 'its result'
assert_eq "$(cat "$T/b/jobs/hard/exit" "$T/b/jobs/hard/stdout" \
	"$T/b/jobs/hard/out/left.txt" | xargs)" '4 by hand left' 'all of it'
assert_eq "$(ls -A "$T/q2/queue")" ready 'not run again'
settle "$T/b" "$T/o"
assert_eq "$(grep -c 'item [0-9]*: result from' "$T/o/log")" 4 \
	'a result for each job, no more'
pass 'a result outlives the network and the daemon'
finish
