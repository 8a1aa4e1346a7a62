# SPDX-License-Identifier: MIT
# bash completion for airloxfs(1)

_airloxfs_flags() {
	local common="--invite --as --description --cache-dir
		--allow-plain-http --json --help"
	case $1 in
	create)	echo "--relay --profile --execute --ttl --types --max-item-mb
		--runtime --job-timeout --job-memory --network --package --no-out-files
		--no-approval --owner-invite-file --as --description
		--cache-dir --allow-plain-http --json --help" ;;
	mount)	echo "$common -f -o --cache-max --items-max --name --labels --keep" ;;
	umount)	echo "--wait --help" ;;
	invites|info|send|revoke|close|cancel|runners|approve)
		echo "$common" ;;
	run)	echo "$common --runner --label --input --timeout --memory
		--requirement --out-dir --no-wait --wait" ;;
	result)	echo "$common --out-dir --wait" ;;
	reject)	echo "$common --reason" ;;
	items)	echo "$common --save" ;;
	watch)	echo "$common --save --new --timeout" ;;
	audit)	echo "$common --out --verify --session --manifest" ;;
	forget)	echo "--cache-dir --help" ;;
	prompt)	echo "--box --help" ;;
	*)	echo "--help --version" ;;
	esac
}

# @FILE: the part after the @ is a file's name.
_airloxfs_invite() {
	local f
	while IFS= read -r f; do
		[ ! -d "${f#@}" ] || f=$f/
		COMPREPLY+=("$f")
	done < <(compgen -P @ -f -- "${1#@}")
	compopt -o nospace 2>/dev/null
}

# The first word that is no flag and no flag's value.
_airloxfs_command() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-*)	;;
		*)	echo "${COMP_WORDS[i]}"; return ;;
		esac
	done
}

_airloxfs_words() {
	COMPREPLY+=($(compgen -W "$1" -- "$2"))
}

_airloxfs() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	local prev=${COMP_WORDS[COMP_CWORD - 1]}
	local cmd
	COMPREPLY=()
	cmd=$(_airloxfs_command)
	case $prev in
	--cache-dir|--save|--out-dir)
		COMPREPLY=($(compgen -d -- "$cur")); return ;;
	--owner-invite-file|--out|--manifest|--input)
		COMPREPLY=($(compgen -f -- "$cur")); return ;;
	--types)
		_airloxfs_words "text py md zip image" "$cur"; return ;;
	--profile)
		_airloxfs_words host-runner "$cur"; return ;;
	--ttl)
		_airloxfs_words "30m 1h 1d 7d 30d never" "$cur"; return ;;
	-o)
		_airloxfs_words "strict allow_other allow_root" "$cur"
		return ;;
	--invite)
		_airloxfs_invite "$cur"; return ;;
	--as|--description|--relay|--max-item-mb|--runtime|--job-timeout|\
	--job-memory|--allow-plain-http|--package|--wait|--timeout|--session|\
	--runner|--label|--memory|--requirement|--reason)
		return ;;
	esac
	case $cur in
	-*)	_airloxfs_words "$(_airloxfs_flags "$cmd")" "$cur"; return ;;
	@*)	_airloxfs_invite "$cur"; return ;;
	esac
	case $cmd in
	"")	_airloxfs_words "create mount umount invites info send items
			watch run result cancel runners approve reject
			revoke close audit forget prompt" "$cur" ;;
	send)	if [ "$prev" = send ]; then
			_airloxfs_words "text file" "$cur"
		else
			COMPREPLY=($(compgen -f -- "$cur"))
		fi ;;
	revoke)	_airloxfs_words "sender observer runner" "$cur" ;;
	audit|run)
		COMPREPLY=($(compgen -f -- "$cur")) ;;
	mount|umount|prompt)
		COMPREPLY=($(compgen -d -- "$cur")) ;;
	esac
}
complete -o filenames -F _airloxfs airloxfs
