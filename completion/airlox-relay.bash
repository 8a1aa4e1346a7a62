# SPDX-License-Identifier: MIT
# bash completion for airlox-relay(8)

_airlox_relay() {
	local cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--data|fsck)	COMPREPLY=($(compgen -d -- "$cur")); return ;;
	--tls-*|--access-log)
		COMPREPLY=($(compgen -f -- "$cur")); return ;;
	--user)	COMPREPLY=($(compgen -u -- "$cur")); return ;;
	--listen)
		COMPREPLY=($(compgen -W "127.0.0.1:8440 [::1]:8440 tls: unix:" \
			-- "$cur")); return ;;
	--threads)
		COMPREPLY=($(compgen -W "1 2 3 4" -- "$cur")); return ;;
	--max-*|--min-*|--trusted-proxies|--metrics-from)
		return ;;
	esac
	COMPREPLY=($(compgen -W "--listen --data --ephemeral --tls-cert --tls-key --user
		--threads --access-log --log-addresses --trusted-proxies
		--metrics-from --max-item-bytes --max-session-bytes
		--max-transfer-bytes --max-items --max-items-minute
		--max-participants --max-sessions --max-sessions-hour
		--max-streams --max-streams-each --max-address-connections
		--max-address-requests --min-free-bytes --claim-s
		--runner-silent-s --max-ttl --no-never --help --version fsck" -- "$cur"))
}
complete -F _airlox_relay airlox-relay
