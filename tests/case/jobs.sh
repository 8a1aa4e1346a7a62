#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: jobs/ and runners/ are as airloxfs(4) says: a job goes through its
# states, what it prints and writes comes back, and what cannot be answers the
# right errno.  The runner is this script: it serves a queue by hand, so that
# each state can be looked at.
. "$TOP/tests/lib.sh"
need_fuse
need inotifywait zip
relay_start
session_new --execute --job-timeout 60s --job-memory 64 --package numpy
mount_at olga "$OWNER" "$T/o"
mount_at alice "$SENDER" "$T/a"
mount_at vera "$OBSERVER" "$T/v"
mkdir "$T/q"
printf '%s\n' "$RUNNER" | as r1 "$AIRLOXFS" mount --name r1 --labels gpu,big \
	- "$T/q" || fail 'the mount of a runner'
MOUNTS+=("$T/q")
A=$T/a/jobs
Q=$T/q/queue
O=$T/o/runners/r1

state() { cut -d' ' -f1 "$A/$1/status"; }
is_state() { assert_wait "grep -qE '^$2( |\$)' '$A/$1/status'" 20; }
# The job that the runner was given; claimed.
take() {
	assert_wait "ls '$Q'/*/spec.json" 20
	J=$(dirname "$(ls "$Q"/*/spec.json)")
	assert_wait "echo claim >'$J/ctl'" 10
}
end() { # CODE
	echo "$1" >"$J/exit"
	echo 'done' >"$J/ctl" || fail 'done'
	assert_wait "[ ! -e '$J' ]"
}
reads() { # SECONDS FILE: what it gives in that time
	timeout $(($1 * SLOW)) cat "$2" || fail "$2 was not read to its end"
}

# --- who has what ----------------------------------------------------------
for dir in v q; do
	assert_errno ENOENT "os.stat('$T/$dir/jobs')"
	assert_errno ENOENT "os.stat('$T/$dir/runners')"
done
assert_wait "[ -e '$T/a/runners/r1/info' ]"
assert_wait "[ -e '$O/ctl' ]"
assert_errno ENOENT "os.stat('$T/a/runners/r1/ctl')"
assert_match "$(cat "$O/info")" $'name r1\n.*labels (gpu big|big gpu)\n' info
assert_eq "$(cat "$O/state")" awaiting 'a runner that nobody approved'
pass 'jobs/ and runners/ by role'

# --- names -----------------------------------------------------------------
assert_errno EEXIST "os.mkdir('$A/new')"
assert_errno EINVAL "os.mkdir('$A/last')"
assert_errno EINVAL "os.mkdir('$A/7')"
assert_errno EINVAL "os.mkdir('$A/.d')"
assert_errno EPERM "open('$A/file', 'w')"
assert_errno EPERM "os.symlink('x', '$A/l')"
assert_errno ENOENT "os.readlink('$A/last')"
assert_errno EACCES "open('$A/new')"
assert_errno OK "os.mkdir('$A/names')"
assert_errno EEXIST "os.mkdir('$A/names')"
assert_errno EINVAL "open('$A/names/exit', 'w')"
assert_errno EACCES "open('$A/names/status', 'w')"
assert_errno EPERM "os.rename('$A/names/ctl', '$A/names/x')"
assert_errno EPERM "os.rename('$A/names', '$A/other')"
assert_eq "$(cat "$A/names/status")" draft 'a new directory'
pass 'names'

# --- verbs -----------------------------------------------------------------
verb() { # ERRNO LINE [JOB]
	assert_errno "$1" "os.write(os.open('$A/${3:-names}/ctl', os.O_WRONLY), b'''$2''')"
}
verb EINVAL run				# there is no .py
verb EINVAL cancel
verb EINVAL bogus
verb EINVAL 'entry'
verb EINVAL 'entry a/b'
verb EINVAL 'run now'
verb EINVAL 'timeout 0'
verb EINVAL 'timeout 61'
verb EINVAL 'timeout 1x'
verb EINVAL 'memory 65'
verb EINVAL 'label Gpu'
verb EINVAL 'runner nobody'
verb EINVAL 'runner alice'
verb EINVAL 'requirement pandas'
verb OK $'timeout 30\nmemory 48\nlabel gpu big\nrequirement NumPy'
verb OK 'runner r1'
verb OK 'entry a.py'
verb EINVAL run				# there is no a.py
grep -q 'last_error .*no a.py' "$T/a/status" || fail 'the sentence'
echo 'print(1)' >"$A/names/b.py"
echo 'print(2)' >"$A/names/c.py"
verb EINVAL run
exec 5>"$A/names/a.py"
echo 'print(3)' >&5
verb EBUSY run				# it is still being written
exec 5>&-
(cd "$T" && echo x >x.csv && zip -q a.zip x.csv && cp x.csv X.CSV)
mkdir "$A/names/dir"
cp "$T/x.csv" "$A/names/dir/"
cp "$T/x.csv" "$A/names/"
cp "$T/X.CSV" "$A/names/"
verb EEXIST run
rm "$A/names/X.CSV"
assert_errno ENOTEMPTY "os.rmdir('$A/names/dir')"
mv "$A/names/b.py" "$A/names/helper.py" || fail 'mv of an input'
assert_eq "$(cat "$A/names/ctl" | head -n 1)" 'entry FILE' 'cat ctl'
verb OK run
verb EINVAL run
verb EINVAL 'timeout 3'
assert_errno EPERM "open('$A/names/new.txt', 'w')"
assert_errno EPERM "open('$A/names/a.py', 'a')"
assert_errno EBUSY "os.unlink('$A/names/a.py')"
assert_errno EBUSY "os.rmdir('$A/names')"
pass 'verbs and inputs'

# --- approval; a job that waits --------------------------------------------
assert_eq "$(state names)" waiting 'nobody is approved'
assert_eq "$(readlink "$A/last")" names 'jobs/last'
timeout 0.3 cat "$A/names/wait" && fail 'wait did not wait'
exec 9>"$Q/ready"
sleep 0.5
assert_eq "$(state names)" waiting 'not approved'
assert_errno EINVAL "os.write(os.open('$O/ctl', os.O_WRONLY), b'allow')"
echo approve >"$O/ctl" || fail approve
take
assert_eq "$(cat "$J/from" | head -n 1)" 'name alice' from
assert_eq "$(cat "$J/work/a.py")" 'print(3)' 'the entry'
assert_cmp "$J/work/dir/x.csv" "$T/x.csv"
assert_cmp "$J/work/helper.py" "$A/names/helper.py"
for want in '"timeout_s":30' '"memory_mb":48' '"requirements":\["numpy"\]' \
	'"entry":"a.py"'; do
	grep -qE "$want" "$J/spec.json" || fail "spec: $(cat "$J/spec.json")"
done
is_state names running
assert_wait "grep -qx 'busy names' '$T/a/runners/r1/state'"
pass 'approved, and the job runs'

# --- live output -----------------------------------------------------------
cat "$A/names/output" >"$T/output" &
OUTPUT=$!
cat "$A/names/wait" >"$T/wait" &
WAIT=$!
inotifywait -q -m -e create,close_write,modify --format '%e %f' "$A/names" \
	>"$T/events" 2>/dev/null &
WATCH=$!
sleep 0.3
echo one >"$J/stdout"
assert_wait "grep -qx one '$A/names/stdout'"
assert_wait "grep -qx one '$T/output'"
echo err >"$J/stderr"
assert_wait "grep -qx err '$A/names/stderr'"
echo two >>"$J/stdout"
assert_wait "grep -qx two '$A/names/stdout'"
printf 'file' >"$J/out/r.csv"
mkdir "$J/out/sub"
printf '# hi\n' >"$J/out/sub/n.md"
end 3
wait "$OUTPUT" "$WAIT"
assert_eq "$(cat "$T/output")" $'one\nerr\ntwo' output
assert_match "$(cat "$T/wait")" '^completed exit 3 in [0-9.]+ s on r1$' wait
assert_eq "$(cat "$A/names/exit")" 3 exit
assert_eq "$(cat "$A/names/stdout")" $'one\ntwo' stdout
assert_eq "$(cat "$A/names/out/r.csv")/$(cat "$A/names/out/sub/n.md")" \
	'file/# hi' 'files that it wrote'
assert_errno ENOENT "os.stat('$A/names/reason')"
assert_errno EPERM "os.unlink('$T/a/runners/r1/info')"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1]))
assert d["exit_code"] == 3 and d["stdout"] == "one\ntwo\n", d' \
	"$A/names/result.json" || fail result.json
assert_wait "grep -q 'CREATE result.json' '$T/events'"
assert_wait "grep -q 'MODIFY stdout' '$T/events'"
kill "$WATCH"
assert_wait "grep -qx idle '$T/a/runners/r1/state'"
pass 'live output, result, files'

# --- jobs/new; the last word is there when cp has returned ------------------
echo 'print(6*7)' >"$T/m.py"
(take; echo 42 >"$J/stdout"; end 0) &
RUN=$!
timeout 60 cp "$T/m.py" "$A/new" || fail 'cp jobs/new'
assert_match "$(reads 60 "$A/last/wait")" '^completed exit 0' 'wait after cp'
assert_eq "$(cat "$A/last/stdout" "$A/last/main.py")" $'42\nprint(6*7)' 'quick'
wait "$RUN" || exit 1
name=$(readlink "$A/last")
assert_match "$name" '^[0-9]+$' 'its name is a number'
assert_errno EFBIG "open('$T/big', 'wb').write(b'#' * (1 << 20) + b'x') and __import__('shutil').copyfile('$T/big', '$A/new')"
got=$(python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
os.write(fd, b"print(1)\n")
print(os.read(fd, 100).decode(), end="")
print(os.read(fd, 100).decode(), end="")' "$A/new")
assert_eq "$got" "$((name + 1))" 'the name is read'
assert_eq "$(readlink "$A/last")" "$got" 'and it is the last'
take
echo 'refuse not today' >"$J/ctl"
is_state "$got" refused
assert_eq "$(cat "$A/$got/reason")" 'not today' 'refused'
printf '\n' | timeout 9 dd of="$A/new" status=none conv=notrunc
take
printf 'bad \033[31m word' >"$J/reason"
echo 'timed_out' >"$J/ctl" || fail timed_out
is_state last timed_out
assert_eq "$(cat "$A/last/status")" 'timed_out bad \x1B[31m word' 'escaped'
pass 'jobs/new'

# --- cancel; nowait ----------------------------------------------------------
cp "$T/m.py" "$A/new"
take
is_state last running
verb OK cancel last
assert_wait "[ -e '$J/cancelled' ]"
assert_match "$(cat "$A/last/status")" '^running on r1, to be cancelled' cancel
echo 1 >"$J/exit"
echo 'done' >"$J/ctl"
is_state last cancelled
assert_match "$(reads 20 "$A/last/wait")" '^cancelled' 'cancelled while it ran'
verb EINVAL cancel last
cp "$T/m.py" "$A/new"
take			# the runner is busy: what comes now waits, or does not
first=$(readlink "$A/last")
cp "$T/m.py" "$A/new"
assert_match "$(cat "$A/last/status")" '^waiting' 'busy'
verb OK cancel last
is_state last cancelled
mkdir "$A/hasty"
cp "$T/m.py" "$A/hasty/"
verb OK $'nowait\nrun' hasty
is_state hasty failed
assert_match "$(cat "$A/hasty/reason")" 'busy|available' 'nowait'
end 0
is_state "$first" completed
pass 'cancel and nowait'

# --- removed; mounted again ------------------------------------------------
rm -r "$A/hasty" || fail 'rm -r of a job that has ended'
assert_errno ENOENT "os.stat('$A/hasty')"
before=$(cd "$A" && find . -type f ! -name wait ! -name output ! -name new \
	! -name ctl -exec sha256sum {} + | sort)
mkdir "$A/draft"
echo 'timeout 5' >"$A/draft/ctl"
cp "$T/m.py" "$A/draft/"
umount_status=0
"$AIRLOXFS" umount "$T/a" >"$T/said" 2>&1 || umount_status=$?
assert_eq "$umount_status" 75 "a draft is unsent: $(cat "$T/said")"
grep -q 'jobs/draft' "$T/said" || fail "$(cat "$T/said")"
forget_mount "$T/a"
mount_at alice "$SENDER" "$T/a"
assert_cmp "$A/draft/m.py" "$T/m.py"
verb OK run draft
take
grep -q '"timeout_s":5[,}]' "$J/spec.json" || fail "$(cat "$J/spec.json")"
end 0
is_state draft completed
rm -r "$A/draft"
assert_eq "$(cd "$A" && find . -type f ! -name wait ! -name output \
	! -name new ! -name ctl -exec sha256sum {} + | sort)" "$before" \
	'what was there is there again'
assert_eq "$(reads 9 "$A/names/output")" $'one\ntwo\nerr' 'output again'
assert_match "$(reads 9 "$A/names/wait")" '^completed exit 3' 'wait again'
pass 'removed, mounted again'

# --- rejected, for good ------------------------------------------------------
echo 'reject it was
for a test' >"$O/ctl" 2>/dev/null && fail 'two lines are two verbs'
assert_wait "grep -qx rejected '$O/state'"
assert_wait "grep -qx rejected '$T/a/runners/r1/state'"
assert_errno EINVAL "os.write(os.open('$O/ctl', os.O_WRONLY), b'approve')"
cp "$T/m.py" "$A/new"
sleep 0.3
assert_eq "$(state last)" waiting 'nobody is left'
cat "$A/last/wait" >"$T/wait" &
WAIT=$!
printf '%s\n' "$OWNER" | as olga "$AIRLOXFS" close - >/dev/null || fail close
wait "$WAIT"
assert_eq "$(cat "$T/wait")" 'lost the session is over' 'the end'
assert_errno ESHUTDOWN "os.mkdir('$A/after')"
exec 9>&-
pass 'rejected; closed'

# --- a session without jobs --------------------------------------------------
session_new
mount_at dora "$OWNER" "$T/d"
assert_errno ENOENT "os.stat('$T/d/jobs')"
assert_errno ENOENT "os.stat('$T/d/runners')"
pass 'relay mode has neither'
finish
