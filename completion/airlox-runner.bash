# SPDX-License-Identifier: MIT
# bash completion for airlox-runner(8)

_airlox_runner() {
	local cur=${COMP_WORDS[COMP_CWORD]} word=${COMP_WORDS[1]} flags
	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--scratch|--cache-dir|--mount-cache-dir)
		COMPREPLY=($(compgen -d -- "$cur")); return ;;
	--airloxfs)	COMPREPLY=($(compgen -f -- "$cur")); return ;;
	--job-user)	COMPREPLY=($(compgen -u -- "$cur")); return ;;
	--name|--labels|--description|--disk|--tasks)
		return ;;
	esac
	flags="--job-user --scratch --cache-dir --disk --tasks --policy --no-cgroups
		--help"
	case $word in
	join)	flags="$flags --name --labels --description --mount-cache-dir
		--airloxfs" ;;
	check)	flags="$flags --json" ;;
	*)	flags="$flags --version" ;;
	esac
	case $cur in
	-*)	COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
	@*)	COMPREPLY=($(compgen -P @ -f -- "${cur#@}")) ;;
	*)	[ "$word" = join ] || [ "$word" = check ] ||
			COMPREPLY=($(compgen -d -- "$cur"))
		[ "$COMP_CWORD" != 1 ] ||
			COMPREPLY+=($(compgen -W "join check" -- "$cur")) ;;
	esac
}
complete -F _airlox_runner airlox-runner
