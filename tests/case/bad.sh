#!/bin/bash
# SPDX-License-Identifier: MIT
# alone
# timeout: 300
#
# Goal: whatever is wrong with what we are given: one sentence that says what
# and what to do, the right errno, nothing lost, nothing half done, and no
# key byte anywhere.
. "$TOP/tests/lib.sh"
need_fuse
relay_start
session_new --types text,md,zip,image --max-item-mb 1
mkdir "$T/m"

# refuses WHAT INVITE [STATUS]: mounting it is refused, in one sentence.
refuses() {
	local status=0
	printf '%s\n' "$2" | as nobody timeout 60 "$AIRLOXFS" mount - "$T/m" \
		>"$T/said" 2>&1 || status=$?
	[ $status != 0 ] && [ $status != 124 ] || fail "$1: exit $status"
	[ -z "${3:-}" ] || assert_eq "$status" "$3" "$1: exit status"
	assert_sentence
	say "$1: exit $status, $(cat "$T/said")"
	assert_no_keys "$T/said"
	assert_not is_mounted "$T/m"
	assert_eq "$(ls -A "$T/m")" '' 'the mount point'
}
change() { sed "s/\([#&]$1=\)\(.\)/\1$([ "$(sed "s/.*[#&]$1=\(.\).*/\1/" \
	<<<"$2")" = A ] && echo B || echo A)/" <<<"$2"; }

say 'invites'
refuses 'no invite' ''
refuses 'garbage' 'hello'
refuses 'not a link of ours' 'https://example.com/'
refuses 'no fragment' "${SENDER%%#*}"
refuses 'cut off' "${SENDER%?????????}"
refuses 'http to elsewhere' "${SENDER/127.0.0.1/192.0.2.1}"
refuses 'unknown role' "${SENDER/r=send/r=boss}"
refuses 'another version' "${SENDER/v=1/v=2}"
refuses 'the role key altered' "$(change rk "$SENDER")"
refuses 'the owner key altered' "$(change ok "$OWNER")"
refuses 'a role it is not' "${SENDER/r=send/r=view}"
first=$SENDER first_owner=$OWNER
first_observer=$OBSERVER first_session=$SESSION
session_new
refuses 'keys of another session' "${first%%#*}#${SENDER#*#}"
OTHER=$SENDER
refuses 'a session nobody knows' \
	"${SENDER%%/s/*}/s/ax_aaaaaaaaaaaaaaaaaaaaaaaaaa#${SENDER#*#}"
pass 'wrong, altered, foreign invites'

say 'a relay that is not one'
python3 -u -m http.server --bind 127.0.0.1 0 --directory "$T/m" \
	>"$T/http.out" 2>&1 &
http=$!
DAEMONS+=("$http")
wait_line "$T/http.out" 'port [0-9]+'
port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$T/http.out")
refuses 'a web server' "${OTHER/127.0.0.1:$RELAY_PORT/127.0.0.1:$port}"
assert_no_keys "$T/http.out"
python3 - >"$T/odd.out" <<'E' &
import os, socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
n = 0
while True:
    c, _ = s.accept()
    c.recv(4096)
    c.sendall((b"\x00\xff garbage\n" * 100,
               b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
               b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n"
               b"Content-Length: 0\r\n\r\n")[n % 3])
    n += 1
    c.close()
E
odd=$!
DAEMONS+=("$odd")
wait_line "$T/odd.out" '^[0-9]+$'
for i in 1 2 3; do
	refuses "not HTTP, empty, elsewhere ($i)" \
		"${OTHER/127.0.0.1:$RELAY_PORT/127.0.0.1:$(cat "$T/odd.out")}"
done
kill "$odd" "$http"
wait "$odd" "$http" 2>/dev/null
refuses 'nobody listens' "${OTHER/127.0.0.1:$RELAY_PORT/127.0.0.1:1}" 75
pass 'no relay there'

SENDER=$first OWNER=$first_owner OBSERVER=$first_observer
SESSION=$first_session
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OWNER" "$T/b"
A=$T/a B=$T/b

say 'types and names'
for name in x.py; do
	assert_errno EOPNOTSUPP "open('$A/out/$name', 'w')"
done
for name in CON.md a:b.md 'back\\\\slash.md' 'dot.md.' 'space.md ' \
	'nul.tar.gz' LPT1.md 'new\nline.md' 'esc\x1b[31m.md' \
	'bidi\u202egpj.md' '\udcff.md'; do
	assert_errno EINVAL "open('$A/out/$name', 'w')"
done
got=$(python3 "$TOP/tests/lib.py" errno "open('$A/out/' + 'n' * 260, 'w')")
assert_match "$got" '^(EINVAL|ENAMETOOLONG)$' '260 bytes'
long=$(printf 'n%.0s' $(seq 252)).md
echo '# long' >"$A/out/$long" || fail '255 bytes'
assert_wait "[ \"\$(xattr '$A/out/$long' state)\" = sent ]"
assert_wait "grep -qs '# long' '$B'/in/*.md"
for f in "$B"/in/*; do
	[ "$(basename "$f" | wc -c)" -le 256 ] || fail "too long: $f"
done
pass 'names and types'

say 'content'
printf '\xff\xfe not utf-8' >"$T/bad"
cp "$T/bad" "$A/out/odd.txt" || fail 'a .txt that is no text'
assert_cmp "$T/bad" "$(arrives "$B" odd.txt)"
for name in b.md b.py.md; do
	assert_errno EBADMSG "import shutil; shutil.copyfile('$T/bad',
		'$A/out/$name')"
	assert_eq "$(xattr "$A/out/$name" state)" failed "$name: state"
	[ -n "$(xattr "$A/out/$name" error)" ] || fail "$name: no sentence"
done
printf 'PK but no zip' >"$T/bad"
for name in b.zip b.png b.jpg b.webp; do
	assert_errno EBADMSG "import shutil; shutil.copyfile('$T/bad',
		'$A/out/$name')"
done
cp "$T/bad" "$A/out/c.zip" 2>"$T/said" && fail 'cp says nothing'
assert_sentence
assert_match "$(cat "$A/log" "$A/status")" 'c.zip' 'log and status name it'
pass 'bad content'

say 'too large'
assert_errno EFBIG "
f = os.open('$A/out/big.md', os.O_WRONLY | os.O_CREAT)
for i in range(40):
    os.write(f, b'x' * 65536)"
assert_not cp /dev/zero "$A/out/zero.zip" 2>"$T/said"
grep -qi 'too large' "$T/said" || fail "cp: $(cat "$T/said")"
assert_eq "$(xattr "$A/out/big.md" state | grep -c sent)" 0 'state'
pass 'too large'

say 'ctl'
for words in nonsense '' 'send' 'send nothing.md' 'retry' 'fetch' \
	'fetch -1' 'fetch 999999' 'send a b' 'reconnect now' 'close' \
	'send ../../etc/passwd' '\x1b[31m' '\xff\xfe' '{\"json\": 1}'; do
	[ -n "$words" ] || continue
	got=$(python3 "$TOP/tests/lib.py" errno "
f = os.open('$A/ctl', os.O_WRONLY)
os.write(f, '''$words
'''.encode('latin-1'))
os.close(f)")
	assert_match "$got" '^(EINVAL|ENOENT)$' "ctl: $words"
done
assert_errno EINVAL "
f = os.open('$A/ctl', os.O_WRONLY)
os.write(f, b'x' * 100000)
os.close(f)"
assert_not grep -q $'\x1b' "$A/log" "$A/status" "$A/ctl"
bash -c "echo nonsense > $A/ctl" 2>"$T/said" && fail 'echo into ctl'
assert_match "$(cat "$A/ctl")" 'retry' 'ctl still lists its verbs'
assert_errno EOPNOTSUPP "os.setxattr('$A/out/$long', 'user.airlox.id', b'x')"
for value in x 999999 '1 2 x' -1; do
	got=$(python3 "$TOP/tests/lib.py" errno "
f = open('$A/out/.r.md', 'w')
os.setxattr('$A/out/.r.md', 'user.airlox.refs', b'$value')")
	assert_eq "$got" EINVAL "refs $value"
done
rm -f "$A/out/.r.md"
for path in README status log session in/x participants/x; do
	got=$(python3 "$TOP/tests/lib.py" errno "open('$A/$path', 'w')")
	assert_match "$got" '^(EACCES|EPERM|EROFS|ENOENT)$' "writing $path"
done
pass 'garbage in ctl, refs and elsewhere'

say 'all of that sent nothing'
settle "$A" "$B"
assert_eq "$(ls "$B/in" | grep -vc 'alice\.txt$')" 2 "in/: $(ls "$B/in")"
pass 'nothing half'

if [ "$(id -u)" = 0 ] && mkdir "$T/small" &&
	tmpfs_at "$T/small" 4m; then
	say 'a full spool'
	session_new
	mkdir -p "$T/small/s" "$T/c"
	printf '%s\n' "$SENDER" | as carol env XDG_STATE_HOME="$T/small/s" \
		"$AIRLOXFS" mount --as carol - "$T/c" >"$T/said" 2>&1 ||
		fail "mount: $(cat "$T/said")"
	MOUNTS+=("$T/c")
	head -c 9000000 /dev/urandom >"$T/nine.bin"
	cp "$T/nine.bin" "$T/c/out/nine.bin" 2>"$T/said" && fail 'no ENOSPC'
	grep -qi 'no space' "$T/said" || fail "cp: $(cat "$T/said")"
	rm -f "$T/c/out/nine.bin"
	printf '# after\n' >"$T/c/out/after.md" || fail 'after ENOSPC'
	mount_at dan "$OBSERVER" "$T/d"
	assert_eq "$(cat "$(arrives "$T/d" after.md 20)")" '# after' 'after'
	assert_eq "$(count_of "$T/d" nine.bin)" 0 'the item that had no room'
	umount_at "$T/c"
	umount_at "$T/d"
	pass 'a full spool'

	say 'a relay whose disk is full'
	relay_stop
	mkdir "$T/tiny"
	tmpfs_at "$T/tiny" 6m || fail tmpfs
	RELAY_PORT=0
	mv "$T/relay" "$T/relay.first"
	ln -s "$T/tiny" "$T/relay"
	rm -f "$A/out/big.md" "$A/out/zero.zip"
	umount_at "$A"
	umount_at "$B"
	relay_start --min-free-bytes 200000
	session_new
	mount_at alice "$SENDER" "$A"
	mount_at bob "$OBSERVER" "$B"
	head -c 5900000 /dev/zero >"$T/tiny/ballast" 2>/dev/null
	head -c 1500000 /dev/urandom >"$T/half.bin"
	timeout 60 cp "$T/half.bin" "$A/out/half.bin" ||
		fail 'a full relay is no error of ours'
	assert_eq "$(xattr "$A/out/half.bin" state)" queued 'state'
	assert_match "$(cat "$A/status")" '[Ff]ull|507|space' 'status'
	rm "$T/tiny/ballast"
	assert_cmp "$T/half.bin" "$(arrives "$B" half.bin 60)"
	settle "$A" "$B"
	assert_eq "$(count_of "$B" half.bin)" 1 'once'
	pass 'a full relay'
fi

say 'the session ends'
mkdir "$T/e"
echo 'last words' >"$A/say"
assert_wait "grep -qx 'last words' '$B'/in/*.txt"
printf '%s\n' "$OWNER" >"$T/owner"
chmod 600 "$T/owner"
assert_status 0 as creator "$AIRLOXFS" close "@$T/owner"
rm "$T/owner"
assert_wait "grep -q '^closed' '$A/status'"
assert_errno ESHUTDOWN "open('$A/out/late.md', 'w')"
assert_errno ESHUTDOWN "
f = os.open('$A/say', os.O_WRONLY)
os.write(f, b'late')
os.close(f)"
grep -qx 'last words' "$B"/in/*.txt || fail 'in/ is readable after close'
refuses 'a session that ended' "$OBSERVER" 69
pass 'closed'

say 'no key anywhere'
pids=$(for dir in "$A" "$B"; do pgrep -f "$dir"; done)
mv "$T/peers/creator" "$T/creator-has-the-json" 2>/dev/null
assert_no_keys "$T/said" "$T/relay.err" "$T/relay.out" "$T/relay" \
	"$T/peers/alice" "$T/peers/bob" "$T/peers/nobody" $pids \
	"$A/status" "$A/log" "$A/session" "$B/log" "$B/status"
pass 'no key in caches, state, logs, arguments, environments'
umount_at "$A"
umount_at "$B"
assert_not test -e "$T/peers/alice/.cache/airlox/$SESSION"
assert_not test -e "$T/peers/alice/.local/state/airloxfs/$SESSION"
pass 'a closed session leaves nothing on disk'
finish
