# SPDX-License-Identifier: MIT
# bash completion for airlox-box(1)

_airlox_box_flags() {
	case $1 in
	check)	echo --url --method --json --help ;;
	run)	echo --session --apply --apply=all --record --no-record \
			--egress --job-user --scratch --help ;;
	agent)	echo --permissions --patience --auth --detach --session \
			--apply=all --record --egress --job-user --scratch --help ;;
	verify)	echo --key --json --help ;;
	show|stop|attach) echo --help ;;
	boxes)	echo --json --help ;;
	reap)	echo --yes --help ;;
	*)	echo --help --version ;;
	esac
}

_airlox_box_runs() {
	airlox-box boxes --json 2>/dev/null |
		sed -n 's/.*"run":"\([a-z0-9-]*\)".*/\1/p'
}

_airlox_box() {
	local cur=${COMP_WORDS[COMP_CWORD]} word=${COMP_WORDS[1]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		COMPREPLY=($(compgen -W "check run agent attach verify show boxes
			stop reap
			--help --version" -- "$cur"))
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		[ "${COMP_WORDS[i]}" != -- ] || break
	done
	if [ "$word" = run ] && [ "$i" -lt "$COMP_CWORD" ]; then
		COMPREPLY=($(compgen -c -f -- "$cur"))
		return
	fi
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--session|--scratch)
		COMPREPLY=($(compgen -d -- "$cur")); return ;;
	--record|--egress)
		COMPREPLY=($(compgen -f -- "$cur")); return ;;
	--job-user)
		COMPREPLY=($(compgen -u -- "$cur")); return ;;
	--method)
		COMPREPLY=($(compgen -W "GET HEAD POST PUT PATCH DELETE" \
			-- "$cur")); return ;;
	--permissions)
		COMPREPLY=($(compgen -W "ask auto_allow" -- "$cur")); return ;;
	--url|--key|--patience|--auth)
		return ;;
	esac
	case $cur in
	-*)	COMPREPLY=($(compgen -W "$(_airlox_box_flags "$word")" \
			-- "$cur")); return ;;
	esac
	case $word in
	check|run|agent)
		COMPREPLY=($(compgen -f -X '!*.y*ml' -- "$cur")
			$(compgen -d -- "$cur")) ;;
	verify|show)
		COMPREPLY=($(compgen -f -X '!*.html' -- "$cur")
			$(compgen -d -- "$cur")) ;;
	stop|attach)
		COMPREPLY=($(compgen -W "$(_airlox_box_runs)" -- "$cur")) ;;
	esac
}
complete -F _airlox_box airlox-box
