# SPDX-License-Identifier: MIT
# fish completion for airlox-runner(8)

complete -c airlox-runner -f
complete -c airlox-runner -n __fish_is_first_arg -a join -d 'mount an invite in private and serve it'
complete -c airlox-runner -n __fish_is_first_arg -a check -d 'what this host can enforce'
complete -c airlox-runner -n 'not __fish_seen_subcommand_from join check' -a '(__fish_complete_directories)'
complete -c airlox-runner -n '__fish_seen_subcommand_from join' -l name -x -d 'name of this runner'
complete -c airlox-runner -n '__fish_seen_subcommand_from join' -l labels -x -d 'what it is good for'
complete -c airlox-runner -n '__fish_seen_subcommand_from join' -l description -x -d 'shown to who chooses'
complete -c airlox-runner -n '__fish_seen_subcommand_from join' -l mount-cache-dir -xa '(__fish_complete_directories)' -d 'the cache of the mount'
complete -c airlox-runner -n '__fish_seen_subcommand_from join' -l airloxfs -rF -d 'the program that mounts'
complete -c airlox-runner -n '__fish_seen_subcommand_from check' -l json -d 'one JSON object'
complete -c airlox-runner -l job-user -xa '(__fish_complete_users)' -d 'jobs run as this user'
complete -c airlox-runner -l scratch -xa '(__fish_complete_directories)' -d 'directories of running jobs'
complete -c airlox-runner -l cache-dir -xa '(__fish_complete_directories)' -d 'where packages are kept'
complete -c airlox-runner -l disk -x -d 'MB that a job may write'
complete -c airlox-runner -l tasks -x -d 'processes and threads of a job'
complete -c airlox-runner -l policy -rF -d 'what jobs reach where a session allows network'
complete -c airlox-runner -l no-cgroups -d 'rlimits and a watchdog'
complete -c airlox-runner -l help -d 'print the usage'
complete -c airlox-runner -l version -d 'print the version'
