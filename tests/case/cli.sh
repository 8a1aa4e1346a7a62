#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Goal: the command line without a mount: where an invite may come from and
# that it stays nowhere, what is sent and shown, and how each refusal ends.
. "$TOP/tests/lib.sh"
need python3

relay_start
session_new --types text,py,zip --max-item-mb 1
cli() { as "$1" "$AIRLOXFS" "${@:2}"; }

# --- the invite's five ways ---
printf '%s\n' "$SENDER" >"$T/sender.link"
cli alice send text --as alice "$SENDER" 'by argument' >/dev/null || fail argument
cli alice send text "@$T/sender.link" 'by file' >/dev/null || fail file
printf '%s\nby stdin\nand more\n' "$SENDER" |
	cli alice send text - - >/dev/null || fail stdin
cli alice send text --invite "$SENDER" 'by flag' >/dev/null || fail flag
AIRLOX_INVITE=$SENDER cli alice send text 'by environment' >/dev/null ||
	fail environment
AIRLOX_INVITE=$OBSERVER cli alice send text "$SENDER" 'argument first' \
	>/dev/null || fail 'argument before environment'
cli olga items --json "$OWNER" >"$T/items" || fail items
field_of() { # NAME: of each JSON line on stdin
	python3 -c 'import json, sys
for line in sys.stdin:
    print(json.loads(line)[sys.argv[1]].replace("\n", "|"))' "$1"
}
assert_eq "$(field_of text <"$T/items")" "by argument
by file
by stdin|and more|
by flag
by environment
argument first" 'texts'
assert_eq "$(field_of author_name <"$T/items" | sort -u)" alice \
	'one participant'
pass 'argument, @file, stdin, flag, environment; the argument first'

# --- and nowhere after ---
: >"$T/watch"
home=$T/peers/olga
HOME=$home XDG_CACHE_HOME=$home/.cache AIRLOX_INVITE=$OWNER \
	"$AIRLOXFS" watch \
	--invite "$OBSERVER" --as olga --new >"$T/watch" 2>&1 &
watch_pid=$!
home=$T/peers/wanda
HOME=$home XDG_CACHE_HOME=$home/.cache "$AIRLOXFS" watch --as wanda \
	"$OBSERVER" >/dev/null 2>&1 &
wanda_pid=$!
DAEMONS+=("$watch_pid" "$wanda_pid")
assert_wait "cli olga info '$OWNER' | grep -q wanda" 10
# Both have begun: what is left of a link is asterisks.
assert_wait "grep -qF '****' /proc/$watch_pid/cmdline" 5
assert_wait "grep -qF '****' /proc/$watch_pid/environ" 5
cat "/proc/$watch_pid/cmdline" "/proc/$watch_pid/environ" \
	"/proc/$wanda_pid/cmdline" "/proc/$wanda_pid/environ" |
	tr '\0' '\n' >"$T/seen"
grep -q watch "$T/seen" || fail 'the processes were not seen'
assert_no_keys "$T/seen"
assert_no_keys "$T/relay.err" "$T/peers"
pass 'no key in a command line, an environment, a cache or the log'

# --- watch ---
cli alice send text "$SENDER" $'esc \e[31m\u202e end' >/dev/null || fail send
assert_wait "grep -q 'alice (sender): esc' '$T/watch'" 5
grep -q $'\e' "$T/watch" && fail 'an escape sequence got through'
assert_eq "$(grep -c 'by argument' "$T/watch")" 0 'watch --new'
kill "$watch_pid" "$wanda_pid"
wait "$watch_pid" "$wanda_pid" 2>/dev/null
cli olga items --json "$OWNER" | grep -q $'\u202e' && fail 'bidi in JSON'
pass 'watch --new shows what is new, escaped'

# --- files ---
mkdir "$T/f"
printf 'print(1)\n' >"$T/f/main.py"
printf 'a,b\n' >"$T/f/table.csv"
head -c 600000 /dev/urandom >"$T/f/noise"
(cd "$T/f" && cli alice send file --invite "$SENDER" main.py table.csv noise) \
	>"$T/said" || fail "send file: $(cat "$T/said")"
assert_eq "$(grep -c '^sent .* as ' "$T/said")" 3 'three sent'
cli olga items --save "$T/got" "$OWNER" >/dev/null || fail save
assert_cmp "$T/f/main.py" "$(echo "$T"/got/*-alice-main.py)"
python3 - "$T" <<'END' || fail 'the wrapped file'
import glob, sys, zipfile
t = sys.argv[1]
for name in ("table.csv", "noise"):
    path, = glob.glob(f"{t}/got/*-alice-{name}.zip")
    z = zipfile.ZipFile(path)
    assert z.namelist() == [name], z.namelist()
    assert z.read(name) == open(f"{t}/f/{name}", "rb").read()
END
cli olga items --save "$T/got" "$OWNER" >/dev/null || fail 'save again'
assert_eq "$(ls "$T/got" | wc -l)" 6 'nothing was written over'
pass 'files of any type arrive as they are'

# --- refusals, each with its exit status and one sentence ---
head -c 1500000 /dev/urandom >"$T/f/big"
echo '# no' >"$T/f/n.md"
refused() { # STATUS WHAT PEER arguments...
	local want=$1 what=$2 peer=$3 got=0
	shift 3
	as "$peer" timeout 60 "$AIRLOXFS" "$@" >"$T/said" 2>&1 </dev/null ||
		got=$?
	assert_eq "$got" "$want" "$what: $(cat "$T/said")"
	assert_sentence
	assert_no_keys "$T/said"
}
refused 64 'no command' alice explode
refused 64 'no invite' alice info
refused 64 'unknown flag' alice info --loud "$SENDER"
refused 65 'no link' alice info "http://localhost/s/x#v=1"
refused 77 "a runner's link" alice info "${SENDER/r=send/r=run}"
refused 65 'cut link' alice info "${SENDER%????}"
refused 65 'type' alice send file "$SENDER" "$T/f/n.md"
refused 65 'size' alice send file "$SENDER" "$T/f/big"
refused 71 'no file' alice send file "$SENDER" "$T/f/none"
refused 77 'observer' olga send text "$OBSERVER" hello
refused 77 'close' alice close "$SENDER"
refused 77 'revoke' alice revoke "$SENDER" observer
refused 77 'audit' alice audit "$SENDER"
refused 64 'role' olga revoke "$OWNER" everybody
refused 64 'relay' olga create
refused 64 'http abroad' olga create \
	--relay http://example.com
refused 64 'ttl' olga create --relay "$URL" --ttl 31d
refused 75 'no relay there' olga create \
	--relay http://127.0.0.1:1
pass 'refusals'

# --- a link that leads elsewhere must not get the token ---
python3 - "$T" <<'END' &
import http.server, sys
t = sys.argv[1]
class Thief(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(t + "/thief.log", "a") as f:
            f.write(f"{self.path} {self.headers}")
        self.send_response(302)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_POST = do_GET
    def log_message(self, *a):
        pass
s = http.server.HTTPServer(("127.0.0.1", 0), Thief)
open(t + "/thief.tmp", "w").write(str(s.server_port))
import os
os.rename(t + "/thief.tmp", t + "/thief.port")
s.serve_forever()
END
DAEMONS+=($!)
assert_wait "[ -s '$T/thief.port' ]"
other=http://127.0.0.1:$(cat "$T/thief.port")
refused 65 'altered link' alice send text \
	"$other${SENDER#"$URL"}" hello
[ ! -e "$T/thief.log" ] || fail 'another relay was asked'
refused 76 'redirect' eve info "$other${SENDER#"$URL"}"
grep -qi authorization "$T/thief.log" && fail 'a token was sent'
pass 'an altered link is refused; no redirect is followed'

# --- owner ---
cli creator create --relay "$URL" --owner-invite-file "$T/owner" \
	--json >"$T/c.json" || fail create
assert_eq "$(stat -c %a "$T/owner")" 600 'owner file'
assert_eq "$(json_get invites.owner <"$T/c.json")" '' 'owner link printed'
refused 73 'owner file is there' creator create \
	--relay "$URL" --owner-invite-file "$T/owner"
cli creator invites "@$T/owner" | grep -q '^sender ' || fail invites
cli creator audit "@$T/owner" --out "$T/audit" || fail audit
python3 -c 'import json, sys
for line in open(sys.argv[1]): json.loads(line)' "$T/audit" || fail 'audit'
cli creator revoke "$OWNER" observer >/dev/null || fail revoke
refused 77 'revoked' olga items "$OBSERVER"
cli creator close "$OWNER" >/dev/null || fail close
refused 69 'closed' alice items "$SENDER"
pass 'invites, audit, revoke, close'

# --- forget ---
[ -d "$T/peers/alice/.cache/airlox/$SESSION" ] || fail 'no cache'
cli alice forget "$SESSION" || fail forget
[ ! -e "$T/peers/alice/.cache/airlox/$SESSION" ] || fail 'not forgotten'
refused 64 'no session id' alice forget ..
pass forget
relay_stop
finish
