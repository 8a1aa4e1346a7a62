#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: a job runs once, whatever dies: the daemon killed in each of its
# states and mounted again has the same job, whose runner is given it once and
# whose result it shows; the connection cut after the relay has stored it gives
# one job.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
shim_start
session_new --execute --no-approval
mount_at alice "$SENDER" "$T/a"
mkdir "$T/q"
printf '%s\n' "${RUNNER/$URL/$RELAY_URL}" | as r1 "$AIRLOXFS" mount \
	--name r1 - "$T/q" || fail 'the mount of a runner'
MOUNTS+=("$T/q")
A=$T/a/jobs
Q=$T/q/queue
CLAIMED=0

again() { # kill -9, and the same mount command
	local pid
	pid=$(daemon_pid "$T/a")
	kill -KILL "$pid"
	assert_wait "! is_running $pid"
	forget_mount "$T/a"
	mount_at alice "$SENDER" "$T/a"
}
is_state() { assert_wait "grep -qE '^$2( |\$)' '$A/$1/status'" 30; }
assigned() {
	assert_wait "ls '$Q'/*/spec.json" 30
	J=$(dirname "$(ls "$Q"/*/spec.json)")
}
claim() {
	assert_wait "echo claim >'$J/ctl'" 10
	CLAIMED=$((CLAIMED + 1))
}
end() {
	echo "$1" >"$J/exit"
	echo 'done' >"$J/ctl" || fail 'done'
	assert_wait "[ ! -e '$J' ]"
}
completes() { # NAME CODE
	is_state "$1" completed
	assert_eq "$(cat "$A/$1/exit")" "$2" "the exit code of $1"
}

# --- a draft, then waiting ---------------------------------------------------
mkdir "$A/one"
echo 'print(1)' >"$A/one/a.py"
echo data >"$A/one/data.csv"
echo 'timeout 9' >"$A/one/ctl"
again
assert_eq "$(cat "$A/one/status" "$A/one/a.py" "$A/one/data.csv")" \
	$'draft\nprint(1)\ndata' 'a draft'
echo run >"$A/one/ctl" || fail run
echo 'print(2)' >"$T/two.py"
cp "$T/two.py" "$A/new"
two=$(readlink "$A/last")
again
is_state one waiting
is_state "$two" waiting
assert_eq "$(readlink "$A/last")" "$two" 'jobs/last'
pass 'killed: draft, waiting'

# --- assigned; running; done meanwhile ---------------------------------------
exec 9>"$Q/ready"
assigned
again
is_state one assigned
claim
is_state one running
grep -q '"timeout_s":9' "$J/spec.json" || fail "$(cat "$J/spec.json")"
again
is_state one running
echo out >"$J/stdout"
end 4
completes one 4
assert_eq "$(cat "$A/one/stdout")" out 'its output'
pass 'killed: assigned, running'
assigned
claim
is_state "$two" running
pid=$(daemon_pid "$T/a")
kill -KILL "$pid"
assert_wait "! is_running $pid"
forget_mount "$T/a"
printf 'x' >"$J/out/file.txt"
end 5
mount_at alice "$SENDER" "$T/a"
completes "$two" 5
assert_eq "$(cat "$A/$two/out/file.txt")" x 'what it wrote'
again
completes "$two" 5
completes one 4
assert_eq "$(cat "$A/$two/out/file.txt")" x 'what it wrote, again'
pass 'ended while nobody was there; killed at its end'

# --- no answer ---------------------------------------------------------------
exec 9>&-
sleep 0.2
echo 'print(3)' >"$T/three.py"
cp "$T/three.py" "$A/new"
three=$(readlink "$A/last")
exec 9>"$Q/ready"
shim drop >/dev/null		# whatever is under way is not answered
sleep 0.5
again_offline=$(daemon_pid "$T/a")
kill -KILL "$again_offline"
assert_wait "! is_running $again_offline"
forget_mount "$T/a"
shim pass >/dev/null
mount_at alice "$SENDER" "$T/a"
assigned
claim
end 6
completes "$three" 6
sleep 0.5
assert_eq "$(ls "$Q")" ready 'nothing is left in the queue'
assert_eq "$CLAIMED" 3 'each was run once'
pass 'cut off while it was posted'
exec 9>&-
finish
