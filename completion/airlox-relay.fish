# SPDX-License-Identifier: MIT
# fish completion for airlox-relay(8)

complete -c airlox-relay -f
complete -c airlox-relay -l listen -xa '127.0.0.1:8440 unix:' -d 'where to listen'
complete -c airlox-relay -l data -xa '(__fish_complete_directories)' -d 'where sessions are kept'
complete -c airlox-relay -l ephemeral -d 'keep them in memory'
complete -c airlox-relay -l threads -xa '1 2 3 4' -d 'reactors'
complete -c airlox-relay -l max-item-bytes -x -d 'largest item a session may allow'
complete -c airlox-relay -l max-session-bytes -x -d 'blobs held for one session'
complete -c airlox-relay -l max-items -x -d 'items of one session'
complete -c airlox-relay -l max-participants -x -d 'participants of one session'
complete -c airlox-relay -l max-sessions -x -d 'sessions in all'
complete -c airlox-relay -l max-ttl -x -d 'longest life of a session, in seconds'
complete -c airlox-relay -l no-never -d 'take no sessions without an end'
complete -c airlox-relay -l help -d 'print the usage'
complete -c airlox-relay -l version -d 'print the version'
