#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the man pages say what the programs do: exit codes, flags, variables,
# files of a mount; and mandoc has nothing to say about them.
. "$TOP/tests/lib.sh"
need mandoc python3
M=$TOP/man

for page in "$M"/*.[1-9]; do
	mandoc -Tlint -Wwarning "$page" >"$T/lint" 2>&1 || true
	[ ! -s "$T/lint" ] || fail "$(cat "$T/lint")"
	mandoc -Tascii "$page" | sed 's/.\x08//g' >"$T/$(basename "$page").txt"
done
pass 'mandoc'

codes=$(sed -n '/^static const struct {/,/^};/p' "$TOP/core/err.c" |
	sed -n 's/.*[0-9][0-9]*, *\([0-9][0-9]*\) },$/\1/p' | sort -nu)
[ "$(wc -w <<<"$codes")" -gt 8 ] || fail "codes: $codes"
told=$(sed -n '/^\.Sh EXIT STATUS/,/^\.El/s/^\.It \([0-9]*\)$/\1/p' \
	"$M/airloxfs.1" | sort -nu)
assert_eq "$told" "$codes" 'exit codes of airloxfs(1) and core/err.c'
for code in $(sed -n '/^\.Sh EXIT STATUS/,/^\.El/s/^\.It \([0-9]*\)$/\1/p' \
	"$M/airlox-relay.8" "$M/airlox-runner.8"); do
	grep -qxF "$code" <<<"$codes" || fail "airlox-relay, -runner: exit $code"
done
pass "exit codes: $(echo $codes)"

has() { grep -qE -- "(^|[^a-z-])$2([^a-z-]|\$)" "$T/$1.txt" || fail "$1: $2"; }
commands=$("$AIRLOXFS" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
n=0
for command in $commands; do
	has airloxfs.1 "airloxfs $command|$command"
	what=$command
	[ "$command" != send ] || what='send text'
	# shellcheck disable=SC2086
	for flag in $("$AIRLOXFS" $what --help |
		sed -n 's/^  \(--*[^ ]*\).*/\1/p'); do
		has airloxfs.1 "$flag"
		n=$((n + 1))
	done
done
[ "$n" -gt 50 ] || fail "only $n flags"
for flag in $("$AIRLOX_RELAY_BIN" --help | sed -n 's/^  \(-.*\)/\1/p' |
	grep -oE -- '--[a-z-]+'); do
	has airlox-relay.8 "$flag"
	n=$((n + 1))
done
for what in serve join check; do
	for flag in $("$BUILD/airlox-runner" --help $what |
		grep -oE -- '^  --[a-z-]+'); do
		has airlox-runner.8 "$flag"
		n=$((n + 1))
	done
done
for what in $("$BUILD/airlox-box" --help |
	sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
	has airlox-box.1 "$what"
	for flag in $("$BUILD/airlox-box" "$what" --help |
		grep -oE -- '^  --[a-z-]+'); do
		has airlox-box.1 "$flag"
		n=$((n + 1))
	done
done
pass "$n flags"

# One for each scheme; what they lack here is a credential, and no more.
for scheme in basic bearer header substitute local; do
	file=$TOP/docs/policy/$scheme.yaml
	"$BUILD/airlox-box" check "$file" >"$T/out" 2>"$T/err" || true
	[ "$scheme" = local ] || grep -q " $scheme .*from " "$T/out" ||
		fail "$scheme: $(cat "$T/out")"
	! grep -v 'warning:\|line [0-9]*: \(env\|file\|cmd\):' "$T/err" ||
		fail "$scheme: $(cat "$T/err")"
done
env EXAMPLE_TOKEN=0123456789 "$BUILD/airlox-box" check \
	"$TOP/docs/policy/bearer.yaml" >/dev/null || fail 'a policy with all'
"$BUILD/airlox-box" check "$TOP/docs/policy/bearer.yaml" --method POST --url \
	https://api.example.com/v2/x >"$T/out" 2>&1 && fail "$(cat "$T/out")"
pass 'the policies of docs/policy'

for name in $(grep -ho '"AIRLOX_[A-Z_]*"' "$TOP/relay/options.c"); do
	has airlox-relay.8 "${name//\"/}"
done
for name in $(grep -ho '"AIRLOX_[A-Z_]*"' "$TOP/airloxfs/main.c"); do
	has airloxfs.1 "${name//\"/}"
done
pass variables

rows=$(sed -n '/^static const struct row table/,/^};/s/^\t{ "\([^"]*\)".*/\1/p' \
	"$TOP/airloxfs/table.c")
[ "$(wc -w <<<"$rows")" -ge 14 ] || fail "rows: $rows"
for row in $rows; do
	grep -qE "^\.It Pa (.*, )?$row(/[a-z]*)?( |\$)" "$M/airloxfs.4" ||
		fail "airloxfs(4) has no $row"
	grep -qE "^\| \`$row/?\`" "$TOP/README.md" || fail "README: no $row"
done
for verb in $(sed -n '/^} verbs\[\]/,/^};/s/^\t{ "\([a-z]*\)".*/\1/p' \
	"$TOP/airloxfs/ctl.c"); do
	grep -q "^\.It Cm $verb\b" "$M/airloxfs.4" || fail "no verb $verb"
done
for name in $(sed -n '/attr_names\[\] = {/,/};/p' "$TOP/airloxfs/in.c" |
	grep -o '"[a-z0-9]*"' | tr -d '"') state error; do
	has airloxfs.4 "user.airlox.$name"
done
pass 'files, verbs and attributes of a mount'

need_fuse
relay_start
session_new --execute
mount_at alice "$OWNER" "$T/a"
mount_at bob "$SENDER" "$T/b"
echo hello >"$T/b/say"
settle "$T/b" "$T/a"
for file in $(cd "$T/a" && ls); do
	grep -qxF "$file" <<<"$rows" || fail "a mount has $file, not the table"
done
assert_eq "$(cd "$T/a" && ls | sort)" "$(sort <<<"$rows" | grep -vx queue)" \
	"an owner's files"
pass 'a real mount has them'
finish
