#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: each exit status that airloxfs(1) lists is provoked, with one sentence
# on stderr; and none that is not listed is ever given.
. "$TOP/tests/lib.sh"
need_fuse
need unshare setpriv
[ "$(id -u)" = 0 ] || skip 'needs root, to take /dev/fuse away'
relay_start
session_new --max-item-mb 1 --types text,py
shim_start
declare -A seen
mkdir "$T/m" "$T/m2"
printf '%s\n' "$SENDER" >"$T/link"
printf '%s\n' "$OBSERVER" >"$T/view"
printf '%s\n' "$OWNER" >"$T/own"
sed "s|$RELAY_URL|$URL|" "$T/link" >"$T/through"

gives() { # STATUS WHAT command...: one sentence, and no key in it
	local want=$1 what=$2 got=0
	shift 2
	"$@" >"$T/said" 2>&1 </dev/null || got=$?
	assert_eq "$got" "$want" "$what ($(cat "$T/said"))"
	[ "$want" = 0 ] || assert_sentence
	assert_no_keys "$T/said"
	seen[$want]=1
	say "$want: $what: $(head -c 200 "$T/said")"
}
alice() { as alice timeout 90 "$AIRLOXFS" "$@"; }
mount_alice() { alice mount --as alice "$@"; }

gives 64 'no directory' mount_alice "@$T/link"
gives 64 'no such option' mount_alice -o fast "@$T/link" "$T/m"
gives 65 'no invite' mount_alice "@$T/said" "$T/m"
sed 's/rk=../rk=AA/' "$T/link" >"$T/forged"
gives 65 'a forged link' mount_alice "@$T/forged" "$T/m"
gives 71 'no such file' mount_alice "@$T/none" "$T/m"
gives 71 'a state directory that cannot be' as alice env \
	XDG_STATE_HOME="$T/link/x" "$AIRLOXFS" mount "@$T/link" "$T/m"
pass '64, 65, 71'

no_fuse() { # what is done in a machine of its own, before
	as alice unshare -m sh -c "$1"' && exec "$0" mount "$1" "$2"' \
		"$AIRLOXFS" "@$T/link" "$T/m"
}
gives 12 'no /dev/fuse' no_fuse 'mount -t tmpfs t /dev &&
	mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9'
grep -q 'modprobe fuse' "$T/said" && grep -q 'airloxfs send' "$T/said" ||
	fail 'no remedy'
cp "$T/said" "$T/said.1"
gives 12 'no fusermount3' no_fuse "mount --bind '$T/link' \
	'$(readlink -f "$(command -v fusermount3)")'"
grep -q 'install fuse3' "$T/said" && grep -q 'airloxfs send' "$T/said" ||
	fail 'no remedy'
cp "$T/said" "$T/said.2"
gives 12 '/dev/fuse 0600' as alice unshare -m sh -c '
	mount -t tmpfs t /mnt && mknod -m 600 /mnt/fuse c 10 229 &&
	mount --bind /mnt/fuse /dev/fuse && mkdir -m 777 /mnt/m &&
	install -m 644 "$1" /mnt/link && install "$0" /mnt/p && cd /mnt &&
	HOME=/mnt exec setpriv --reuid 65534 --regid 65534 --clear-groups \
	./p mount @link m' "$AIRLOXFS" "$T/link"
grep -q 'chmod 0666' "$T/said" && grep -q 'airloxfs send' "$T/said" ||
	fail 'no remedy'
[ "$(cat "$T/said" "$T/said.1" "$T/said.2" | sort -u | wc -l)" = 3 ] ||
	fail 'three faults, one sentence'
assert_eq "$(ls -A "$T/m")" '' 'the mount point'
pass '12, three ways, each with its remedy (M7)'

gives 0 mount mount_alice "@$T/through" "$T/m"
MOUNTS+=("$T/m")
gives 0 'mounted already' mount_alice "@$T/through" "$T/m"
gives 11 'mounted elsewhere' mount_alice "@$T/through" "$T/m2"
echo x >"$T/m2/file"
gives 10 'not empty' as bob "$AIRLOXFS" mount "@$T/link" "$T/m2"
gives 10 'not a mount' "$AIRLOXFS" umount "$T/m2"
gives 10 'not a mount of ours' "$AIRLOXFS" umount /
pass '0, 10, 11'

shim refuse >/dev/null
assert_wait "grep -q ^offline '$T/m/status'"
echo hi >"$T/m/say"
gives 75 'unsent' "$AIRLOXFS" umount --wait 0s "$T/m"
forget_mount "$T/m"
gives 75 'no relay' as dora "$AIRLOXFS" info "@$T/through"
shim pass >/dev/null
pass 75

say 'a daemon that hangs is no reason to hang with it'
mount_at alice "$(cat "$T/through")" "$T/m"
pid=$(daemon_pid "$T/m")
kill -STOP "$pid"
start=$SECONDS
gives 14 'umount' timeout 60 "$AIRLOXFS" umount --wait 0s "$T/m"
gives 14 'mount there' timeout 60 "$AIRLOXFS" mount "@$T/view" "$T/m"
[ $((SECONDS - start)) -le 40 ] || fail 'that took too long'
kill -CONT "$pid"
umount_at "$T/m"
pass 14

say 'a clock that is off (R6)'
cat >"$T/clock.py" <<'P'
"""A proxy whose relay lives SECONDS ahead of us."""
import http.client, http.server, sys, time
from email.utils import formatdate
port, ahead = int(sys.argv[1]), int(sys.argv[2])
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def ask(self):
        n = int(self.headers.get("Content-Length") or 0)
        c = http.client.HTTPConnection("127.0.0.1", port)
        c.request(self.command, self.path, self.rfile.read(n) if n else None,
                  {k: v for k, v in self.headers.items() if k.lower() not in
                   ("host", "connection", "expect", "content-length")})
        r = c.getresponse()
        body = r.read()
        self.send_response_only(r.status)
        self.send_header("Date", formatdate(time.time() + ahead, usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = ask
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
s.daemon_threads = True
print(s.server_port, flush=True)
s.serve_forever()
P
clock() { # SECONDS: its port
	: >"$T/clock.out"
	python3 "$T/clock.py" "$RELAY_PORT" "$1" >"$T/clock.out" &
	DAEMONS+=($!)
	wait_line "$T/clock.out" '^[0-9]+$'
	AHEAD=http://127.0.0.1:$(cat "$T/clock.out")
}
clock 7200
gives 13 'two hours' as alice "$AIRLOXFS" create --relay "$AHEAD"
grep -qi 'clock' "$T/said" && grep -qE '2h 0m|2h|1h 59m' "$T/said" ||
	fail 'the skew is not named'
clock -7200
gives 13 'two hours back' as alice "$AIRLOXFS" create --relay "$AHEAD"
clock 240
gives 0 'four minutes' as alice "$AIRLOXFS" create --relay "$AHEAD"
pass '13, and a clock 4 minutes off works'

say 'disks, files that are there'
gives 73 'a file that is there' as alice "$AIRLOXFS" create \
	--relay "$RELAY_URL" --owner-invite-file "$T/link"
if mkdir "$T/full" && tmpfs_at "$T/full" 1m; then
	head -c 2000000 /dev/zero >"$T/full/ballast" 2>/dev/null
	gives 73 'a full disk' as carl env XDG_STATE_HOME="$T/full" \
		"$AIRLOXFS" mount --as carl "@$T/link" "$T/m"
fi
pass 73

python3 - >"$T/odd.out" <<'P' &
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    do_POST = do_GET
s = http.server.HTTPServer(("127.0.0.1", 0), H)
print(s.server_port, flush=True)
s.serve_forever()
P
DAEMONS+=($!)
wait_line "$T/odd.out" '^[0-9]+$'
gives 76 'no relay of ours' as fay "$AIRLOXFS" create \
	--relay "http://127.0.0.1:$(cat "$T/odd.out")"
pass 76

gives 77 'an observer sends' as vera "$AIRLOXFS" send text "@$T/view" hello
gives 0 'revoke' as olga "$AIRLOXFS" revoke "@$T/own" observer
gives 77 'revoked' as yan "$AIRLOXFS" mount "@$T/view" "$T/m"
echo '# no' >"$T/no.md"
gives 65 'a type that is not allowed' as alice "$AIRLOXFS" send file \
	"@$T/through" "$T/no.md"
grep -q 'does not take this type' "$T/said" || fail 'another reason'
gives 0 'close' as olga "$AIRLOXFS" close "@$T/own"
gives 69 'closed' as zoe "$AIRLOXFS" mount "@$T/link" "$T/m"
gives 69 'closed, by hand' as alice "$AIRLOXFS" send text "@$T/through" hi
pass '65, 69, 77'

listed=$(sed -n '/^.Sh EXIT STATUS/,/^.El/s/^.It \([0-9]*\)$/\1/p' \
	"$TOP/man/airloxfs.1" | sort -n | xargs)
given=$(printf '%s\n' "${!seen[@]}" | sort -n | xargs)
assert_eq "$given" "$listed" 'what was provoked, and what the page lists'
pass 'the list of airloxfs(1)'
finish
