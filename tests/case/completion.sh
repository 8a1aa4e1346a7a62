#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the shell completions complete, and know every command and flag that
# --help names.
. "$TOP/tests/lib.sh"
C=$TOP/completion

. "$C/airloxfs.bash"
. "$C/airlox-relay.bash"
. "$C/airlox-runner.bash"
. "$C/airlox-box.bash"
# complete FUNCTION word...: what the last word may become
complete_words() {
	local function=$1
	shift
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	"$function" 2>/dev/null
	echo "${COMPREPLY[*]}"
}
assert_eq "$(complete_words _airloxfs airloxfs mo)" mount 'a command'
assert_eq "$(complete_words _airloxfs airloxfs mount --ke)" --keep 'a flag'
assert_eq "$(complete_words _airloxfs airloxfs create --ttl n)" never 'a value'
assert_eq "$(complete_words _airloxfs airloxfs send f)" file 'send what'
assert_eq "$(complete_words _airloxfs airloxfs umount --as)" '' 'not its flag'
assert_eq "$(complete_words _airlox_relay airlox-relay --eph)" --ephemeral flag
assert_eq "$(complete_words _airlox_runner airlox-runner jo)" join 'a command'
assert_eq "$(complete_words _airlox_runner airlox-runner join --la)" --labels \
	'a flag of it'
assert_eq "$(complete_words _airlox_box airlox-box re)" reap 'a command'
assert_eq "$(complete_words _airlox_box airlox-box run p.yaml --no)" \
	--no-record 'a flag of it'
assert_eq "$(complete_words _airlox_box airlox-box run p.yaml -- mkfif |
	tr ' ' '\n' | sort -u)" mkfifo 'the command of a run'
mkdir "$T/adir"
echo x >"$T/afile.link"
cd "$T" || exit 1
assert_eq "$(complete_words _airloxfs airloxfs mount @afi)" @afile.link @FILE
assert_eq "$(complete_words _airloxfs airloxfs mount @afile.link ad)" adir DIR
pass 'bash completes commands, flags, values and files'

flags_of() { grep -oE '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u; }
has() { # FILE WORD FISH-WORD
	case $1 in
	*.fish)	grep -qE -- "$3( |\$)" "$1" ;;
	*)	grep -qE -- "(^|[^a-z-])$2([^a-z-]|\$)" "$1" ;;
	esac || fail "$1 does not know $2"
}
fish_flag() { # --name or -f as fish writes it
	case $1 in
	--*)	echo "-l ${1#--}" ;;
	*)	echo "-s ${1#-}" ;;
	esac
}

commands=$("$AIRLOXFS" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 13 ] || fail "commands: $commands"
n=0
for command in $commands; do
	what=$command
	[ "$command" != send ] || what='send text'
	for file in "$C/airloxfs.bash" "$C/_airloxfs" "$C/airloxfs.fish"; do
		has "$file" "$command" "$command"
	done
	# shellcheck disable=SC2086
	flags=$("$AIRLOXFS" $what --help | sed -n 's/^  \(--*[^ ]*\).*/\1/p')
	known=" $(_airloxfs_flags "$command" | tr -s '\n\t' '  ') "
	for flag in $flags --help; do
		[[ $known = *" $flag "* ]] || fail "bash: $command $flag"
		for file in "$C/_airloxfs" "$C/airloxfs.fish"; do
			has "$file" "$flag" "$(fish_flag "$flag")"
		done
		n=$((n + 1))
	done
done
[ "$n" -gt 60 ] || fail "only $n flags"
for flag in $("$AIRLOX_RELAY_BIN" --help | sed -n 's/^  \(-.*\)/\1/p' |
	flags_of); do
	for file in "$C/airlox-relay.bash" "$C/_airlox-relay" \
		"$C/airlox-relay.fish"; do
		has "$file" "$flag" "$(fish_flag "$flag")"
	done
	n=$((n + 1))
done
for what in serve join check; do
	known=$(complete_words _airlox_runner airlox-runner "$what" --)
	for flag in $("$BUILD/airlox-runner" --help $what |
		sed -n 's/^  \(--[^ ]*\).*/\1/p'); do
		[[ " $known " = *" $flag "* ]] || fail "bash: $what $flag"
		for file in "$C/_airlox-runner" "$C/airlox-runner.fish"; do
			has "$file" "$flag" "$(fish_flag "$flag")"
		done
		n=$((n + 1))
	done
done
for what in $("$BUILD/airlox-box" --help |
	sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'); do
	for file in "$C/airlox-box.bash" "$C/_airlox-box" \
		"$C/airlox-box.fish"; do
		has "$file" "$what" "-a $what"
	done
	known=$(complete_words _airlox_box airlox-box "$what" -)
	for flag in $("$BUILD/airlox-box" "$what" --help |
		sed -n 's/^  \(--[a-z-]*\).*/\1/p'); do
		[[ " $known " = *" $flag"[=\ ]* ]] || fail "bash: $what $flag"
		for file in "$C/_airlox-box" "$C/airlox-box.fish"; do
			has "$file" "$flag" "$(fish_flag "$flag")"
		done
		n=$((n + 1))
	done
done
pass "$n flags of $(wc -w <<<"$commands") commands are in all of them"

for file in airloxfs airlox-relay airlox-runner airlox-box; do
	bash -n "$C/$file.bash" || fail "bash: $file"
	! command -v zsh >/dev/null || zsh -n "$C/_$file" || fail "zsh: $file"
	! command -v fish >/dev/null ||
		fish -n "$C/$file.fish" || fail "fish: $file"
done
pass 'the shells that are here read them'
finish
