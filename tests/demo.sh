#!/bin/bash
# SPDX-License-Identifier: MIT
#
# usage: tests/demo.sh [BUILD]     (make demo calls it)
#
# A relay, a session, two directories: what is copied into one's out/ appears
# in the other's in/, and wakes whoever waits for it.  Everything happens in
# a temporary directory and on loopback, and is taken down again.
set -euo pipefail
build=$(cd "${1:-${BUILD:-build}}" && pwd)
airloxfs=$build/airloxfs
work=$(mktemp -d "${TMPDIR:-/tmp}/airloxfs-demo.XXXXXX")
relay=
watcher=
runner=

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'
else bold= dim= off=; fi
step=0
title() { step=$((step + 1)); printf '\n%s%d. %s%s\n' "$bold" "$step" "$*" "$off"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$off"; }
run() { local words="${*//$work\//}"; show "${words/$airloxfs/airloxfs}"; "$@" 2>&1 | sed "s|$work/||; s/^/  /"; }
sorry() { printf '\ndemo: %s\n' "$*" >&2; exit 1; }

take_down() {
	local status=$?
	trap - EXIT
	for pid in $runner; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	for peer in alice bob queue; do
		! grep -q " $work/$peer fuse" /proc/self/mounts ||
			timeout 30 "$airloxfs" umount "$work/$peer" >/dev/null 2>&1 ||
			fusermount3 -uz "$work/$peer" || true
	done
	for pid in $watcher $relay; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	# Never through a mount that did not go.
	grep -q " $work/" /proc/self/mounts || rm -rf "$work"
	exit "$status"
}
trap take_down EXIT
trap 'exit 130' INT TERM

[ -c /dev/fuse ] || sorry "there is no /dev/fuse here (modprobe fuse, or in" \
	"a container: --device /dev/fuse --cap-add SYS_ADMIN)"
[ -r /dev/fuse ] && [ -w /dev/fuse ] || sorry "/dev/fuse may only be opened" \
	"by root here: chmod 666 /dev/fuse, or run this as root"

# Each peer is a machine of its own: with a home of its own.
as() { (become "$@"); }
become() {	# in the background, its pid is the program's
	local home=$work/home-$1
	shift
	mkdir -p "$home"
	exec env -u AIRLOX_INVITE -u AIRLOX_CACHE_DIR HOME="$home" \
		XDG_CACHE_HOME="$home/.cache" \
		XDG_STATE_HOME="$home/.local/state" "$@"
}
value() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p" "$work/session.json" | head -n 1; }
get_xattr() {
	python3 -c 'import os, sys
for name in sorted(os.listxattr(sys.argv[1])):
    print(f"  {name:24}", os.getxattr(sys.argv[1], name).decode())' "$1"
}

title "A relay on loopback. It sees ciphertext and signatures, and has no key."
show 'airlox-relay --listen 127.0.0.1:0 --data relay'
"$build/airlox-relay" --listen 127.0.0.1:0 --data "$work/relay" \
	>"$work/relay.out" 2>"$work/relay.err" &
relay=$!
for _ in $(seq 100); do
	grep -q '^listening on' "$work/relay.out" && break
	kill -0 "$relay" 2>/dev/null || sorry "$(cat "$work/relay.err")"
	sleep 0.05
done
sed 's/^/  /' "$work/relay.out"
url=$(sed -n 's/^listening on //p' "$work/relay.out")

title "A session. The keys are in its links, behind the #, and go nowhere else."
python=$(/usr/bin/python3 -c 'import sys; print("python3.%d" % sys.version_info[1])')
jobs="--execute --no-approval --runtime $python"
show "airloxfs create --as alice --relay $url $jobs --json"
# shellcheck disable=SC2086
as alice "$airloxfs" create --as alice --relay "$url" $jobs --json \
	>"$work/session.json"
sed 's/\([&#]ok\|[&#]k\|[&#]rk\)=[A-Za-z0-9_-]*/\1=.../g; s/^/  /' \
	"$work/session.json"

title "Two directories: Alice owns the session, Bob was given the sender link."
mkdir "$work/alice" "$work/bob"
for peer in alice bob; do
	link=$(value owner)
	[ $peer = alice ] || link=$(value sender)
	show "airloxfs mount --as $peer @link $peer"
	printf '%s\n' "$link" |
		as $peer "$airloxfs" mount --as $peer - "$work/$peer" |
		sed "s|$work/||g; s/^/  /"
done
run ls "$work/bob"

title "Bob waits. Nothing polls: inotify works across the network."
show 'inotifywait -e close_write bob/in'
if command -v inotifywait >/dev/null; then
	timeout 30 inotifywait -q -e close_write --format '  woken: %f' \
		"$work/bob/in" >"$work/woken" &
	watcher=$!
	sleep 1
fi

title "Alice copies a file into her out/."
printf '# Report\n\nAll quiet.\n' >"$work/report.md"
run cp "$work/report.md" "$work/alice/out/"
if [ -n "$watcher" ]; then
	wait "$watcher" || sorry 'nobody was woken'
	watcher=
	cat "$work/woken"
fi
for _ in $(seq 200); do
	file=$(ls "$work"/bob/in/*-report.md 2>/dev/null) && break
	sleep 0.05
done
[ -n "${file:-}" ] || sorry "the file did not arrive: $(cat "$work/bob/log")"

title "It is in Bob's in/: whole, decrypted, verified."
run ls -l "$work/bob/in"
run cat "$file"
cmp "$work/report.md" "$file" || sorry 'the bytes differ'
show "getfattr -d ${file#"$work"/}"
get_xattr "$file"

title "Any program can answer."
show 'echo "thank you" > bob/say'
echo 'thank you' >"$work/bob/say"
for _ in $(seq 200); do
	grep -qsx 'thank you' "$work"/alice/in/*-bob.txt && break
	sleep 0.05
done
show 'cat alice/in/*-bob.txt'
sed 's/^/  /' "$work"/alice/in/*-bob.txt || sorry 'no answer arrived'

title "A job: what Bob copies into jobs/new runs where the runner is."
mkdir "$work/queue"
link=$(value runner)
show 'airloxfs mount --name r1 @runner.link queue && airlox-runner queue &'
printf '%s\n' "$link" | as r1 "$airloxfs" mount --name r1 - "$work/queue" |
	sed "s|$work/||g; s/^/  /"
if "$build/airlox-runner" check >/dev/null 2>&1; then
	become r1 "$build/airlox-runner" "$work/queue" >"$work/runner.log" 2>&1 &
else	# no sandbox on this machine: the runner of docs/ has none
	become r1 sh "$(dirname "$0")/../docs/runner.sh" "$work/queue" \
		>"$work/runner.log" 2>&1 &
fi
runner=$!
printf 'print("six times seven is", 6 * 7)\n' >"$work/main.py"
run cat "$work/main.py"
run cp "$work/main.py" "$work/bob/jobs/new"
show 'cat bob/jobs/last/wait'
timeout 60 cat "$work/bob/jobs/last/wait" | sed 's/^/  /' ||
	sorry "the job did not end: $(cat "$work/bob/jobs/last/status")"
run cat "$work/bob/jobs/last/stdout"
grep -q 'is 42' "$work/bob/jobs/last/stdout" || sorry 'the job said another thing'
kill "$runner" 2>/dev/null || true
wait "$runner" 2>/dev/null || true
runner=

title "What the relay has of it."
if grep -rqaF 'All quiet' "$work/relay"; then
	sorry 'the relay has plain text'
fi
echo '  grep -r "All quiet" relay finds nothing'

title "Unmount. The directories are empty again, and nothing is left."
for peer in alice bob queue; do
	run "$airloxfs" umount "$work/$peer"
done
[ -z "$(ls -A "$work/alice" "$work/bob" "$work/queue" | grep -v : || true)" ] ||
	sorry 'something is left'
printf '\n%sIt works.%s  Next: README.md, man airloxfs\n' "$bold" "$off"
