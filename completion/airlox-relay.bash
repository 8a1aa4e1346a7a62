# SPDX-License-Identifier: MIT
# bash completion for airlox-relay(8)

_airlox_relay() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--data)	COMPREPLY=($(compgen -d -- "$cur")); return ;;
	--listen)
		COMPREPLY=($(compgen -W "127.0.0.1:8440 [::1]:8440 unix:" \
			-- "$cur")); return ;;
	--threads)
		COMPREPLY=($(compgen -W "1 2 3 4" -- "$cur")); return ;;
	--max-*)
		return ;;
	esac
	COMPREPLY=($(compgen -W "--listen --data --ephemeral --threads
		--max-item-bytes --max-session-bytes --max-items
		--max-participants --max-sessions --max-ttl --no-never --help
		--version" -- "$cur"))
}
complete -F _airlox_relay airlox-relay
