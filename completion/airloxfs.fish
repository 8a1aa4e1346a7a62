# SPDX-License-Identifier: MIT
# fish completion for airloxfs(1)

set -l commands create mount umount invites info send items watch run result \
    cancel runners approve reject revoke close audit forget prompt
set -l invited mount invites info send items watch run result cancel runners \
    approve reject revoke close audit

complete -c airloxfs -f
complete -c airloxfs -n "not __fish_seen_subcommand_from $commands" -l help -d 'print the usage'
complete -c airloxfs -n "not __fish_seen_subcommand_from $commands" -l version -d 'print the version'
complete -c airloxfs -n "__fish_seen_subcommand_from $commands" -l help -d 'print the usage'

complete -c airloxfs -n __fish_use_subcommand -a create -d 'make a session and print its links'
complete -c airloxfs -n __fish_use_subcommand -a mount -d 'mount a session on a directory'
complete -c airloxfs -n __fish_use_subcommand -a umount -d 'unmount it, sending what is queued'
complete -c airloxfs -n __fish_use_subcommand -a invites -d 'print the links again (owner)'
complete -c airloxfs -n __fish_use_subcommand -a info -d 'settings and participants'
complete -c airloxfs -n __fish_use_subcommand -a send -d 'send a text, or files'
complete -c airloxfs -n __fish_use_subcommand -a items -d 'print what was sent so far'
complete -c airloxfs -n __fish_use_subcommand -a watch -d 'print items as they arrive'
complete -c airloxfs -n __fish_use_subcommand -a run -d 'run a Python file on a runner'
complete -c airloxfs -n __fish_use_subcommand -a result -d 'the result of a job'
complete -c airloxfs -n __fish_use_subcommand -a cancel -d 'stop a job'
complete -c airloxfs -n __fish_use_subcommand -a runners -d 'who can run jobs'
complete -c airloxfs -n __fish_use_subcommand -a approve -d 'let a runner take jobs (owner)'
complete -c airloxfs -n __fish_use_subcommand -a reject -d 'turn a runner away (owner)'
complete -c airloxfs -n __fish_use_subcommand -a revoke -d 'cut off a role (owner)'
complete -c airloxfs -n __fish_use_subcommand -a close -d 'end the session for all (owner)'
complete -c airloxfs -n __fish_use_subcommand -a audit -d "the relay's record (owner, observer)"
complete -c airloxfs -n __fish_use_subcommand -a forget -d "remove a session's files from this machine"
complete -c airloxfs -n __fish_use_subcommand -a prompt -d 'a prompt for an agent in a mount'

complete -c airloxfs -n "__fish_seen_subcommand_from $invited" -l invite -x -d 'the invite: a link, @FILE, or -'
complete -c airloxfs -n "__fish_seen_subcommand_from create $invited" -l as -x -d 'display name'
complete -c airloxfs -n "__fish_seen_subcommand_from create $invited" -l description -x -d 'what you are or do'
complete -c airloxfs -n "__fish_seen_subcommand_from create forget $invited" -l cache-dir -xa '(__fish_complete_directories)' -d 'instead of ~/.cache/airlox'
complete -c airloxfs -n "__fish_seen_subcommand_from create $invited" -l allow-plain-http -x -d 'to this host also without TLS'
complete -c airloxfs -n "__fish_seen_subcommand_from create $invited" -l json -d 'print JSON'

complete -c airloxfs -n '__fish_seen_subcommand_from create' -l relay -x -d 'the relay'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l profile -xa host-runner -d 'settings for a purpose'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l execute -d 'let runners run Python in this session'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l ttl -xa '30m 1h 1d 7d 30d never' -d 'how long it lasts'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l types -xa 'text py md zip image' -d 'what may be sent'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l max-item-mb -x -d 'largest item, in MiB'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l runtime -x -d 'of jobs'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l job-timeout -x -d 'longest time a job may take'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l job-memory -x -d 'memory of a job, in MiB'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l network -d 'let jobs reach the network'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l package -x -d 'a package that jobs may use'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l no-out-files -d 'do not return the files that jobs write'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l no-approval -d 'let runners take jobs without approval'
complete -c airloxfs -n '__fish_seen_subcommand_from create' -l owner-invite-file -r -F -d "write the owner's link here"

complete -c airloxfs -n '__fish_seen_subcommand_from mount' -s f -d 'stay in the front'
complete -c airloxfs -n '__fish_seen_subcommand_from mount' -s o -xa 'strict allow_other allow_root' -d option
complete -c airloxfs -n '__fish_seen_subcommand_from mount' -l cache-max -x -d 'above it nothing is fetched until there is room (4G)'
complete -c airloxfs -n '__fish_seen_subcommand_from mount' -l items-max -x -d 'the same for the number of entries in in/ (100000)'
complete -c airloxfs -n '__fish_seen_subcommand_from mount' -l name -x -d "a runner's name, by which jobs are sent to it"
complete -c airloxfs -n '__fish_seen_subcommand_from mount' -l labels -x -d "a runner's labels: what it is good for"
complete -c airloxfs -n '__fish_seen_subcommand_from mount' -l keep -d 'keep cache and state when the session ends'
complete -c airloxfs -n '__fish_seen_subcommand_from prompt' -l box -d 'for one in a sealed box'
complete -c airloxfs -n '__fish_seen_subcommand_from mount umount prompt' -xa '(__fish_complete_directories)'
complete -c airloxfs -n '__fish_seen_subcommand_from umount' -l wait -x -d 'how long to wait for what is queued'

complete -c airloxfs -n '__fish_seen_subcommand_from send' -a 'text file'
complete -c airloxfs -n '__fish_seen_subcommand_from send; and __fish_seen_subcommand_from file' -F
complete -c airloxfs -n '__fish_seen_subcommand_from items watch' -l save -xa '(__fish_complete_directories)' -d 'save received files here'
complete -c airloxfs -n '__fish_seen_subcommand_from watch' -l new -d 'only what arrives from now on'
complete -c airloxfs -n '__fish_seen_subcommand_from watch' -l timeout -x -d 'stop after this long'
complete -c airloxfs -n '__fish_seen_subcommand_from run' -F
complete -c airloxfs -n '__fish_seen_subcommand_from run' -l runner -x -d 'this runner, by its name or key'
complete -c airloxfs -n '__fish_seen_subcommand_from run' -l label -x -d 'any idle runner that has all these'
complete -c airloxfs -n '__fish_seen_subcommand_from run' -l input -r -F -d 'a file beside the program'
complete -c airloxfs -n '__fish_seen_subcommand_from run' -l timeout -x -d 'longest time it may take'
complete -c airloxfs -n '__fish_seen_subcommand_from run' -l memory -x -d 'memory, in MiB'
complete -c airloxfs -n '__fish_seen_subcommand_from run' -l requirement -x -d 'a package it needs'
complete -c airloxfs -n '__fish_seen_subcommand_from run' -l no-wait -d 'submit it, print its id, and go'
complete -c airloxfs -n '__fish_seen_subcommand_from run result' -l out-dir -xa '(__fish_complete_directories)' -d 'save the files it writes here'
complete -c airloxfs -n '__fish_seen_subcommand_from run result' -l wait -x -d 'wait for it at most so long'
complete -c airloxfs -n '__fish_seen_subcommand_from reject' -l reason -x -d 'why'
complete -c airloxfs -n '__fish_seen_subcommand_from revoke' -a 'sender observer runner'
complete -c airloxfs -n '__fish_seen_subcommand_from audit' -l out -r -F -d 'write it to this new file'
complete -c airloxfs -n '__fish_seen_subcommand_from audit' -l verify -F -d 'check it, and say what it proves'
complete -c airloxfs -n '__fish_seen_subcommand_from audit' -l session -x -d 'what a saved trail must be about'
complete -c airloxfs -n '__fish_seen_subcommand_from audit' -l manifest -r -F -d 'what a saved trail must begin with'
