#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: what a role has is there, what it does not have does not exist, and
# what it may not answers the right errno.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at olga "$OWNER" "$T/o"
mount_at alice "$SENDER" "$T/a"
mount_at vera "$OBSERVER" "$T/v"

lists() { # DIR NAMES...: exactly these (latest comes with the first item)
	local dir=$1
	shift
	assert_eq "$(ls -A "$dir" | grep -v '^latest$' | sort | xargs)" \
		"$(printf '%s\n' "$@" | sort | xargs)" "ls $dir"
}
common="README session status log events participants in rejected ctl"
lists "$T/o" $common out say invites audit
lists "$T/a" $common out say
lists "$T/v" $common audit
pass 'each role has its files'

for name in jobs runners queue; do
	for dir in o a v; do
		assert_errno ENOENT "os.stat('$T/$dir/$name')"
	done
done
assert_errno ENOENT "os.stat('$T/v/out')"
assert_errno ENOENT "open('$T/v/say', 'w')"
assert_errno ENOENT "os.stat('$T/a/invites')"
assert_errno ENOENT "open('$T/a/audit')"
pass 'what a role has not does not exist'

assert_eq "$(stat -c %a "$T/o")" 700 'the root is for its owner only' 
for link in "$T"/o/invites/*; do
	assert_eq "$(stat -c %a "$link")" 400 "$link"
	assert_match "$(cat "$link")" "^http.*/s/$SESSION#v=1&r=(send|view)" \
		"$link"
done
assert_eq "$(cat "$T/o/invites/sender")" "$SENDER" 'the sender link'
assert_eq "$(cat "$T/o/invites/observer")" "$OBSERVER" 'the observer link'
assert_not grep -rqF "$OWNER" "$T/o/invites"
grep -qs nosuid <<<"$(grep " $T/o " /proc/self/mounts)" || fail nosuid
grep -qs nodev <<<"$(grep " $T/o " /proc/self/mounts)" || fail nodev
grep -qs noexec <<<"$(grep " $T/o " /proc/self/mounts)" || fail noexec
pass 'invites, modes'

echo 'hello' >"$T/a/say"
printf '# n\n' >"$T/a/out/n.md"
assert_wait "grep -qx hello '$T'/v/in/*-alice.txt" 10
n=$(arrives "$T/v" n.md) || exit 1
assert_eq "$(stat -c '%a %s' "$n")" '444 4' 'an entry'
for dir in o v; do
	n=$(arrives "$T/$dir" n.md) || exit 1
	assert_eq "$(xattr "$n" author)/$(xattr "$n" role)" alice/sender 'by'
	assert_errno EPERM "open('$T/$dir/in/new.md', 'w')"
	assert_errno EPERM "os.mkdir('$T/$dir/in/d')"
	assert_errno EPERM "os.rename('$n', '$T/$dir/in/other.md')"
	assert_errno EPERM "os.link('$n', '$T/$dir/in/link.md')"
	got=$(python3 "$TOP/tests/lib.py" errno "open('$n', 'a')")
	assert_match "$got" '^(EPERM|EACCES)$' 'appending to an entry'
done
assert_eq "$(ls -A "$T/a/in")" '' 'nothing of its own in in/'
pass 'in/ is for reading'

latest=$(readlink "$T/v/latest")
assert_eq "$(basename "$latest")" "$(ls "$T/v/in" | sort | tail -n 1)" latest
assert_cmp "$T/v/latest" "$(arrives "$T/v" n.md)"
pass latest

n=$(arrives "$T/o" n.md) || exit 1
assert rm "$n"
assert_not test -e "$n"
assert test -e "$(entry_of "$T/v" n.md)"
umount_at "$T/o"
mount_at olga "$OWNER" "$T/o"
assert_wait "grep -qx hello '$T'/o/in/*-alice.txt" 10
assert_eq "$(count_of "$T/o" n.md)" 0 'removed here, for good'
pass 'rm in/x hides it here, also after the next mount'

assert_eq "$(sed -n 's/^role[: ]*//p' "$T/v/session" | xargs)" observer role
assert_eq "$(sed -n 's/^id[: ]*//p' "$T/v/session" | xargs)" "$SESSION" id
assert_match "$(head -n 1 "$T/a/status")" '^online' status
assert_wait "[ \$(ls '$T/a/participants' | wc -l) -ge 3 ]" 5
grep -qi '[0-9a-f]\{16\}' "$T/a/participants/"*vera* || fail 'fingerprint'
assert_match "$(cat "$T/a/README")" 'data' README
grep -q . "$T/o/audit" && python3 -c "
import json
for line in open('$T/o/audit'): json.loads(line)" || fail 'audit'
grep -q send "$T/a/ctl" || fail 'ctl lists its verbs'
assert_not grep -qw send "$T/v/ctl"
pass 'session, status, participants, audit, ctl'

say 'events: what was, then what comes'
timeout 60 cat "$T/v/events" >"$T/events" &
reader=$!
sleep 0.5
echo 'one more' >"$T/a/say"
assert_wait "grep -q . '$T/events'" 5
assert_wait "grep -qx 'one more' '$T'/v/in/*-alice.txt" 10
assert_wait "tail -n 1 '$T/events' | grep -q item" 5
umount_at "$T/v"
wait "$reader"
assert_eq "$?" 0 'umount ends a reader with EOF'
python3 - "$T/events" <<'E' || fail 'events are JSON lines'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) >= 1, "no event"
E
pass events

# One of two mounts of a machine is cut off: what both keep stays the other's.
mount_at alice "$OBSERVER" "$T/v"
assert_wait "ls '$T/v/in' | grep -q -- -alice" 10
printf "%s\n" "$OWNER" | as creator "$AIRLOXFS" revoke - observer >/dev/null || fail revoke
assert_wait "grep -q '^closed' '$T/v/status'" 10
umount_at "$T/v"
printf '# kept\n' >"$T/kept.md"
cp "$T/kept.md" "$T/o/out/" || fail cp
assert_cmp "$T/kept.md" "$(arrives "$T/a" kept.md 10)"
assert_eq "$(ls "$T"/peers/alice/.cache/airlox/*/ | grep -c observer)" 0 \
	'the identity that is over'
umount_at "$T/a"
mount_at alice "$SENDER" "$T/a"
assert_eq "$(cat "$T/a/in"/*-kept.md)" '# kept' 'still there'
pass 'a role that ends leaves the cache to the others'
finish
