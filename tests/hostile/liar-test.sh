#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
#
# Goal: whatever a relay tells: in/ never holds a byte, a name, an author or a
# number that its author did not sign, each item at most once; each forgery is
# a line of the log, and the truth is shown again when it is told again.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
A=$T/a
head -c 2000000 /dev/urandom >"$T/two.bin"

# liar LIE: a liar of its own, and Bob's mount through it.
liar() {
	echo none >"$T/lie"
	: >"$T/liar.out"
	python3 "$TOP/tests/hostile/liar.py" "$RELAY_PORT" "$T/lie" \
		>"$T/liar.out" 2>>"$T/liar.err" &
	LIAR=$!
	DAEMONS=("$LIAR")
	wait_line "$T/liar.out" '^[0-9]+$'
	B=$T/b-$1
	link=$(sed "s|$RELAY_URL|http://127.0.0.1:$(cat "$T/liar.out")|" \
		<<<"$OBSERVER")
	mount_at "bob-$1" "$link" "$B"
	printf '# first\n' >"$A/out/$1-first.md"
	arrives "$B" "$1-first.md" >/dev/null || exit 1
	lines=$(wc -l <"$B/log")
	echo "$1" >"$T/lie"
	for n in 1 2 3; do
		printf '# %s %d\n' "$1" $n >"$A/out/$1-$n.md"
	done
	# one that is described while it streams in
	cp "$T/two.bin" "$A/out/$1-4.bin" || fail cp
}
# What is in in/ is what Alice sent, once.
true_in() {
	python3 - "$B/in" "$1" "$T/two.bin" <<'E' || fail "$1: what is in in/ is not true"
import os, sys
where, lie, two = sys.argv[1:]
ids = []
for n in sorted(os.listdir(where)):
    p = f"{where}/{n}"
    a = {k: os.getxattr(p, "user.airlox." + k).decode()
         for k in ("id", "author", "role", "name", "seq")}
    ids.append(a["id"])
    assert (a["author"], a["role"]) == ("alice", "sender"), (n, a)
    assert n == f"{int(a['seq']):06}-alice-{a['name']}", (n, a)
    if a["name"].endswith(".bin"):
        assert open(p, "rb").read() == open(two, "rb").read(), n
        continue
    text = open(p).read()
    if a["name"].startswith(lie):
        number = a["name"][len(lie) + 1:-3]
        want = {"first": "# first\n"}.get(number, f"# {lie} {number}\n")
        assert text == want or number == "after", (n, text)
assert len(ids) == len(set(ids)), "an item twice"
E
}
shown() { count_of "$B" "$1-$2.md"; }
logged() { # LIE: the log has grown by something that is not an arrival
	assert_wait "tail -n +$((lines + 1)) '$B/log' |
		grep -qiE 'refus|reject|forg|gap|missing|skip|duplicate|again|twice|repeat|back|jump|far|invalid|signature|decrypt|mismatch|does not|differ|hash|left out'" 15
}
truth_again() {
	echo none >"$T/lie"
	printf '# after\n' >"$A/out/$1-after.md"
	arrives "$B" "$1-after.md" 40 >/dev/null || exit 1
	true_in "$1"
}
end() {
	umount_at "$B"
	kill "$LIAR"
	wait "$LIAR" 2>/dev/null
	DAEMONS=()
	pass "$1"
}

for lie in envelope author blob flip short long; do
	liar $lie
	logged $lie
	sleep 1
	true_in $lie
	case $lie in
	envelope|author)
		assert_eq "$(shown $lie 1)$(shown $lie 2)$(shown $lie 3)" 000 \
			"$lie: shown"
		;;
	esac
	truth_again $lie
	end $lie
done

liar repeat
assert_wait "[ \$(count_of '$B' repeat-3.md) = 1 ]" 15
logged repeat
true_in repeat
for n in 1 2 3; do assert_eq "$(shown repeat $n)" 1 "repeat $n"; done
umount_at "$B"
mount_at bob-repeat "$link" "$B"
for n in 1 2 3; do assert_eq "$(shown repeat $n)" 1 "$n, mounted again"; done
truth_again repeat
end repeat

liar swap
sleep 1
true_in swap
echo none >"$T/lie"
printf '# swap 4\n' >"$A/out/swap-4.md"
assert_wait "[ \$(count_of '$B' swap-4.md) = 1 ]" 15
true_in swap
truth_again swap
end swap

liar drop
sleep 1
true_in drop
assert_eq "$(shown drop 1)$(shown drop 2)$(shown drop 3)" 000 'left out'
truth_again drop
logged drop
end drop

for lie in back jump; do
	liar $lie
	logged $lie
	true_in $lie
	assert_eq "$(shown $lie 1)$(shown $lie 2)$(shown $lie 3)" 000 "$lie"
	end $lie
done

say 'no blob, for a reason that is not the item'"'"'s'
for lie in forbid redirect present; do
	liar $lie
	assert_wait "grep -qx 'pending 4' '$B/status'" 15
	sleep 1
	assert_eq "$(ls "$B/rejected" | wc -l)" 0 "$lie: refused"
	n=$(wc -l <"$B/log")
	sleep 2
	[ $(($(wc -l <"$B/log") - n)) -le 3 ] || fail "$lie: it goes round"
	truth_again $lie
	for f in $(sed -n 's/.*item \([0-9]*\) is not here yet.*/\1/p' \
		"$B/log" | sort -u); do
		echo "fetch $f" >"$B/ctl"
	done
	for n in 1 2 3; do
		assert_wait "[ \$(count_of '$B' $lie-$n.md) = 1 ]" 15
	done
	true_in $lie
	end $lie
done

liar noise
assert_wait "[ \$(count_of '$B' noise-3.md) = 1 ]" 15
true_in noise
truth_again noise
end noise

say 'people'
for lie in relabel forgejoin; do
	liar $lie
	echo $lie >"$T/lie"
	mount_at "carl-$lie" "$SENDER" "$T/c"
	printf '# by carl\n' >"$T/c/out/$lie-carl.md"
	sleep 2
	[ "$(ls "$B/participants" | grep -c boss)" = 0 ] || fail "$lie: boss"
	assert_eq "$(ls "$B/in" | grep -c boss)" 0 "$lie: boss"
	for f in "$B"/in/*"-$lie-carl.md"; do
		[ ! -e "$f" ] || assert_eq \
			"$(xattr "$f" author)/$(xattr "$f" role)" \
			"carl-$lie/sender" "$lie: the signed name and role"
	done
	umount_at "$T/c"
	end $lie
done

say 'another manifest'
echo manifest >"$T/lie"
python3 "$TOP/tests/hostile/liar.py" "$RELAY_PORT" "$T/lie" >"$T/liar.out" &
LIAR=$!
DAEMONS=("$LIAR")
sleep 0.2
wait_line "$T/liar.out" '^[0-9]+$'
mkdir "$T/n"
sed "s|$RELAY_URL|http://127.0.0.1:$(cat "$T/liar.out")|" <<<"$OBSERVER" |
	as new timeout 30 "$AIRLOXFS" mount - "$T/n" >"$T/said" 2>&1 &&
	fail 'took a manifest that its owner did not sign'
assert_sentence
pass manifest
kill "$LIAR"
wait "$LIAR" 2>/dev/null
DAEMONS=()
finish
