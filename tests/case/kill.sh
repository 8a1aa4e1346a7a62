#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: a writer that is killed sends nothing half; a daemon that is killed
# loses nothing, sends nothing twice, and leaves no dead mount behind.
. "$TOP/tests/lib.sh"
pair_through_shim
mkfifo "$T/pipe"

for sig in KILL TERM INT HUP; do
	name=k-$sig.md
	# The writer has the fifo as its input and waits there for more.
	(trap - INT; exec cat "$T/pipe" >"$A/out/$name") &
	writer=$!
	exec 7>"$T/pipe"
	head -c 300000 /dev/zero | tr '\0' x >&7
	assert_wait "[ \$(stat -c %s '$A/out/$name') = 300000 ]" 5
	# A background job of a script ignores INT: it dies of it only when
	# it was told to.
	if [ $sig = INT ] && grep -q '^SigIgn:.*[2367abef]$' \
		"/proc/$writer/status"; then
		say 'INT is ignored here'
		kill -TERM "$writer"
	else
		kill -$sig "$writer"
	fi
	wait "$writer" 2>/dev/null
	exec 7>&-
	sleep 0.3
	assert_eq "$(xattr "$A/out/$name" state)" staged "$sig: state"
	assert_match "$(xattr "$A/out/$name" error)" '[Ss]ignal|SIG|killed' \
		"$sig: its sentence"
	pass "a writer killed by SIG$sig"
done
(yes | tee "$A/out/k-PIPE.md" | head -c 100000 >/dev/null) 2>/dev/null
sleep 0.5
assert_eq "$(xattr "$A/out/k-PIPE.md" state)" staged 'PIPE: state'
settle "$A" "$B"
assert_eq "$(ls "$B/in" | grep -c 'k-')" 0 "half an item: $(ls "$B/in")"
pass 'nothing half was sent'

printf '# whole\n' >"$A/out/k-KILL.md" || fail 'a rewrite'
assert_eq "$(cat "$(arrives "$B" k-KILL.md)")" '# whole' 'rewritten'
echo 'send k-TERM.md' >"$A/ctl" || fail 'ctl send'
entry=$(arrives "$B" k-TERM.md) || exit 1
assert_eq "$(stat -c %s "$entry")" 300000 'sent by ctl as it was'
rm "$A/out/k-INT.md" "$A/out/k-HUP.md" "$A/out/k-PIPE.md" ||
	fail 'rm of drafts'
settle "$A" "$B"
assert_eq "$(count_of "$B" k-KILL.md)" 1 'a rewrite, once'
assert_eq "$(count_of "$B" k-TERM.md)" 1 'by ctl, once'
pass 'a rewrite clears it, ctl sends it, rm discards it'

say 'the daemon is killed while an item is on its way'
head -c 8000000 /dev/urandom >"$T/eight.bin"
for round in 1 2 3; do
	shim rate 3000000
	before=$(shim stat | awk '{ print $6 }')
	cp "$T/eight.bin" "$A/out/d$round.bin" 2>/dev/null &
	writer=$!
	assert_wait "[ \$('$SHIM' tell '$T/shim' stat | awk '{ print \$6 }') \
		-gt $((before + 500000 * round)) ]" 20
	kill -KILL "$(daemon_pid "$A")"
	wait "$writer"
	shim pass
	shim reset
	start=$(date +%s%N)
	forget_mount "$A"
	mount_at alice "$through" "$A"
	ms=$((($(date +%s%N) - start) / 1000000))
	[ $ms -le $((3000 * SLOW)) ] || fail "mounting again took $ms ms"
	assert_eq "$(grep -c " $A fuse" /proc/self/mounts)" 1 'one mount'
	assert_cmp "$T/eight.bin" "$(arrives "$B" "d$round.bin" 30)"
	assert_wait "[ \"\$(xattr '$A/out/d$round.bin' state)\" = sent ]" 20
	settle "$A" "$B"
	assert_eq "$(count_of "$B" "d$round.bin")" 1 "d$round"
done
pass 'exactly once'

say 'the receiving daemon is killed while items arrive'
python3 -c "
for i in range(200):
    open('$A/out/r%d.md' % i, 'w').write('# %d' % i)" &
writer=$!
for _ in 1 2 3; do
	sleep 0.4
	kill -KILL "$(daemon_pid "$B")"
	forget_mount "$B"
	mount_at bob "$OBSERVER" "$B"
done
wait "$writer" || fail 'the writer'
assert_wait "[ \$(ls '$B/in' | grep -c -- '-r[0-9]*.md') = 200 ]" 30
for f in "$B"/in/*-r*.md; do
	n=${f##*-r}
	assert_eq "$(cat "$f")" "# ${n%.md}" "$f"
done
pass 'all there, once, whole'

say 'the helper is killed: what comes still wakes'
helper=$(pgrep -P "$(daemon_pid "$B")" | head -n 1)
if [ -n "$helper" ]; then
	kill -KILL "$helper"
	sleep 0.5
	printf '# after\n' >"$A/out/after.md"
	assert_eq "$(cat "$(arrives "$B" after.md)")" '# after' 'after'
	pass 'a new helper'
fi
finish
