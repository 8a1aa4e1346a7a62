#!/bin/sh
# A runner in twenty lines: runner.sh ~/q, where ~/q is a runner's mount.
# It runs what it is given as you, without a sandbox: for sessions in which
# you trust everybody.  airlox-runner has the sandbox.
q=${1:?where the queue is mounted}/queue
exec 9>"$q/ready"
while sleep 0.2; do
	for job in "$q"/*/; do
		[ -e "$job/spec.json" ] && echo claim >"$job/ctl" || continue
		entry=$(sed 's/.*"entry":"\([^"]*\)".*/\1/' "$job/spec.json")
		work=$(mktemp -d) && cp -r "$job/work/." "$work" && mkdir "$work/out"
		cd "$work" && AIRLOX_OUT=$work/out python3 "$entry" \
			>"$job/stdout" 2>"$job/stderr" 9>&- &
		pid=$!
		while kill -0 $pid 2>/dev/null && [ ! -e "$job/cancelled" ]; do
			sleep 0.1
		done
		kill $pid 2>/dev/null; wait $pid; echo $? >"$job/exit"
		cp -r "$work/out/." "$job/out/"; cd / && rm -rf "$work"
		echo done >"$job/ctl"
	done
done
