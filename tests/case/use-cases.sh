#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the scripts of docs/USE-CASES.md work as they stand there.
. "$TOP/tests/lib.sh"
need_fuse
need inotifywait getfattr setfattr
"$BUILD/airlox-runner" check >"$T/check" 2>&1 ||
	skip "no sandbox here: $(tail -n 1 "$T/check")"
version=python3.$(/usr/bin/python3 -c 'import sys; print(sys.version_info[1])')
relay_start
session_new --execute --no-approval --runtime "$version"
H=$T/home
mkdir -p "$H" "$T/q1" "$T/q2"
mount_at alice "$SENDER" "$H/s"
mount_at bob "$OWNER" "$H/b"
for n in 1 2; do
	printf '%s\n' "$RUNNER" | as "r$n" "$AIRLOXFS" mount --name "r$n" \
		--labels pool - "$T/q$n" || fail "the mount of r$n"
	MOUNTS+=("$T/q$n")
	as "r$n" "$BUILD/airlox-runner" "$T/q$n" >"$T/r$n.out" 2>&1 &
	DAEMONS+=($!)
done
assert_wait "grep -qx idle '$H/s/runners/r1/state'" 30
assert_wait "grep -qx idle '$H/s/runners/r2/state'" 30

# The indented block below a heading, run; what it prints is in $T/out.
block() {
	awk -v want="## $1" '/^## / { on = $0 == want } on && sub(/^    /, "")' \
		"$TOP/docs/USE-CASES.md" >"$T/block"
	[ -s "$T/block" ] || fail "no block: $1"
	(cd "$H" && HOME=$H timeout $((120 * SLOW)) bash -eu "$T/block") \
		>"$T/out" 2>"$T/err" || fail "$1: $(cat "$T/out" "$T/err")"
}
says() { grep -qE "$1" "$T/out" || fail "no $1 in: $(cat "$T/out")"; }

printf 'who,amount\na,20\nb,22\n' >"$H/sales.csv"
block 'Summarise a data set'
says '^completed exit 0'
says '^2 rows, in all 42$'
assert_wait "[ -e '$H/b/in/'*-summary.md ]"
pass 'summarise a data set'

mkdir -p "$H/project/lib"
echo 'answer = 41' >"$H/project/lib/thing.py"
touch "$H/project/lib/__init__.py"
printf '%s\n' 'import sys; sys.path.insert(0, ".")' \
	'from lib.thing import answer' 'print("answer", answer)' \
	'sys.exit(answer != 42)' >"$H/project/check.py"
block 'Remote CI from a shell script'
says '^answer 41$'
says '^CI: exit 1$'
pass 'remote CI'

block 'Fan-out over a pool of runners'
assert_eq "$(tail -n 4 "$T/out")" $'1\n4\n9\n16' 'four jobs'
pass 'fan-out over two runners'

printf '# Change\n' >"$H/change.md"
block 'A code review between two mounts'
says '^# Review of [0-9]+-alice-change.md$'
pass 'a code review'

block 'An agent that has only cp, cat, ls and inotifywait'
says '^completed exit 0'
says '^3\.[0-9]+\.[0-9]+'
pass 'an agent with four programs'
for pid in "${DAEMONS[@]}"; do
	kill -TERM "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
done
DAEMONS=()
finish
