# SPDX-License-Identifier: MIT
# fish completion for airlox-box(1)

function __airlox_box_runs
    airlox-box boxes --json 2>/dev/null | string replace -rf '.*"run":"([a-z0-9-]*)".*' '$1'
end

complete -c airlox-box -f
complete -c airlox-box -n __fish_is_first_arg -a check -d 'read a policy and say what it does'
complete -c airlox-box -n __fish_is_first_arg -a run -d 'run a command in a box'
complete -c airlox-box -n __fish_is_first_arg -a agent -d 'give a prompt to an agent in a box'
complete -c airlox-box -n __fish_is_first_arg -a attach -d 'watch a run, answer its questions'
complete -c airlox-box -n __fish_is_first_arg -a verify -d 'whether a record is as it was signed'
complete -c airlox-box -n __fish_is_first_arg -a show -d 'a record as text'
complete -c airlox-box -n __fish_is_first_arg -a boxes -d 'the runs there are'
complete -c airlox-box -n __fish_is_first_arg -a stop -d 'end a run; its record is written'
complete -c airlox-box -n __fish_is_first_arg -a reap -d 'clear what a killed command line left'
complete -c airlox-box -n '__fish_seen_subcommand_from check run agent verify show' -F
complete -c airlox-box -n '__fish_seen_subcommand_from stop attach' -a '(__airlox_box_runs)'
complete -c airlox-box -n '__fish_seen_subcommand_from check' -l url -x -d 'what would happen to a request'
complete -c airlox-box -n '__fish_seen_subcommand_from check' -l method -xa 'GET HEAD POST PUT PATCH DELETE' -d 'its method'
complete -c airlox-box -n '__fish_seen_subcommand_from check verify boxes' -l json -d 'for programs'
complete -c airlox-box -n '__fish_seen_subcommand_from run agent' -l session -xa '(__fish_complete_directories)' -d 'a mounted session'
complete -c airlox-box -n '__fish_seen_subcommand_from run agent' -l record -rF -d 'where the record goes'
complete -c airlox-box -n '__fish_seen_subcommand_from run agent' -l apply -a all -d 'take changes of copied files back'
complete -c airlox-box -n '__fish_seen_subcommand_from run' -l no-record -d 'none is written'
complete -c airlox-box -n '__fish_seen_subcommand_from run agent' -l egress -rF -d 'the account as JSON lines, too'
complete -c airlox-box -n '__fish_seen_subcommand_from run agent' -l job-user -xa '(__fish_complete_users)' -d 'as root: who the box is'
complete -c airlox-box -n '__fish_seen_subcommand_from run agent' -l scratch -xa '(__fish_complete_directories)' -d 'where its directories are made'
complete -c airlox-box -n '__fish_seen_subcommand_from agent' -l permissions -xa 'ask auto_allow' -d 'who answers its questions'
complete -c airlox-box -n '__fish_seen_subcommand_from agent' -l patience -x -d 'how long one waits for somebody'
complete -c airlox-box -n '__fish_seen_subcommand_from agent' -l auth -x -d 'how it is to authenticate itself'
complete -c airlox-box -n '__fish_seen_subcommand_from agent' -l detach -d 'print the name of the run and go'
complete -c airlox-box -n '__fish_seen_subcommand_from verify' -l key -x -d 'fail unless it signed'
complete -c airlox-box -n '__fish_seen_subcommand_from reap' -l yes -d 'do it'
complete -c airlox-box -l help -d 'print the usage'
complete -c airlox-box -n __fish_is_first_arg -l version -d 'print the version'
