# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Fixtures of the scenarios: a relay on loopback, sessions, mounts, a bad
# network.  A scenario begins with
#
#	. "$TOP/tests/lib.sh"
#	relay_start; session_new; mount_at alice "$OWNER" "$T/a"
#
# and ends with `finish`.  Every mount is a machine of its own: it has its
# own HOME under $T/peers.  Whatever was started is ended by its pid.
set -u
: "${TOP:?run me with tests/run}" "${BUILD:?}" "${T:?}"
umask 022
AIRLOXFS=$BUILD/airloxfs
AIRLOX_RELAY_BIN=$BUILD/airlox-relay
SHIM=$TOP/tests/hostile/shim.py
MOUNTS=()
DISKS=()
DAEMONS=()
RELAY_PID=
SHIM_PID=
RELAY_PORT=0
STEPS=0
FINISHED=
# Sanitizers and small machines take their time.
case $BUILD in
*/build)	SAN=; SLOW=1 ;;
*)		SAN=${BUILD##*/}; SLOW=3 ;;
esac

say() { echo "# $*"; }
skip() { FINISHED=1; echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; show_state >&2; exit 1; }
pass() { STEPS=$((STEPS + 1)); echo "ok $STEPS - $*"; }

show_state() {
	local dir
	echo "at: $(caller 1)"
	for dir in ${MOUNTS[@]+"${MOUNTS[@]}"}; do
		echo "-- $dir/status"
		timeout 5 head -n 40 "$dir/status"
		echo "-- $dir/log"
		timeout 5 tail -n 15 "$dir/log"
		echo "-- $dir/{in,out,rejected}"
		timeout 5 ls -lA "$dir/in" "$dir/out" "$dir/rejected" |
			tail -n 40
	done 2>&1
	[ ! -e "$T/relay.err" ] || tail -n 10 "$T/relay.err"
}

# --- waiting and asserting -------------------------------------------------

# wait_for 'command' [SECONDS]: until it succeeds; gives 1 after that long.
wait_for() {
	local end=$((SECONDS + ${2:-10} * SLOW))
	until eval "$1" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}
assert_wait() {
	wait_for "$1" "${2:-10}" || fail "not within ${2:-10} s: $1"
}
assert() { "$@" || fail "$*"; }
assert_not() { ! "$@" || fail "should not have worked: $*"; }
assert_eq() { # GOT WANT WHAT
	[ "$1" = "$2" ] || fail "$3: got '$1', want '$2'"
}
assert_match() { # TEXT ERE WHAT
	[[ $1 =~ $2 ]] || fail "$3: '$1' does not match '$2'"
}
assert_cmp() { cmp "$1" "$2" || fail "differ: $1 $2"; }
# assert_status N command...: its exit status; its words are in $T/said.
assert_status() {
	local want=$1 got=0
	shift
	if [ "$1" = as ]; then
		set -- as "$2" timeout $((60 * SLOW)) "${@:3}"
	else
		set -- timeout $((60 * SLOW)) "$@"
	fi
	"$@" >"$T/said" 2>&1 </dev/null || got=$?
	[ "$got" = "$want" ] ||
		fail "exit $got, not $want: $* ($(cat "$T/said"))"
}
# assert_errno ENAME python-expression: what an operation answers.
assert_errno() {
	local got
	got=$(timeout $((60 * SLOW)) python3 "$TOP/tests/lib.py" errno "$2")
	[ "$got" = "$1" ] || fail "$2: $got, not $1"
}
# One line, one sentence.
assert_sentence() {
	local text
	text=$(cat "${1:-$T/said}")
	[ "$(grep -c . <<<"$text")" = 1 ] || fail "not one sentence: $text"
}
# No key of this session in these files, directories, processes.
assert_no_keys() {
	local found
	found=$(printf '%s\n' "$OWNER" "$SENDER" "$OBSERVER" "$RUNNER" |
		python3 "$TOP/tests/lib.py" keys "$@") || fail "$found"
}

# --- relay and network -----------------------------------------------------

wait_line() { # FILE ERE
	assert_wait "grep -qE '$2' '$1'" 10
}

# relay_start [flags...]: RELAY_URL, RELAY_PID, RELAY_PORT.  A port stays
# the relay's from one start to the next.
relay_start() {
	: >"$T/relay.out"
	"$AIRLOX_RELAY_BIN" --listen "127.0.0.1:$RELAY_PORT" \
		--data "$T/relay" "$@" >"$T/relay.out" 2>>"$T/relay.err" &
	RELAY_PID=$!
	wait_line "$T/relay.out" '^listening on http://127.0.0.1:[0-9]+$'
	RELAY_URL=$(sed -n 's/^listening on //p' "$T/relay.out")
	RELAY_PORT=${RELAY_URL##*:}
	URL=$RELAY_URL
}
relay_stop() { # [SIGNAL]
	[ -n "$RELAY_PID" ] || return 0
	kill -"${1:-TERM}" "$RELAY_PID"
	wait "$RELAY_PID" 2>/dev/null
	RELAY_PID=
}
# shim_start: URL leads through the shim from here on.
shim_start() {
	"$SHIM" "$RELAY_PORT" "$T/shim" >"$T/shim.out" 2>>"$T/shim.err" &
	SHIM_PID=$!
	wait_line "$T/shim.out" '^[0-9]+$'
	URL=http://127.0.0.1:$(cat "$T/shim.out")
}
shim() { "$SHIM" tell "$T/shim" "$@"; }

# --- peers -----------------------------------------------------------------

# as NAME command...: on the machine of that peer.
as() {
	local home=$T/peers/$1
	shift
	mkdir -p "$home"
	HOME=$home XDG_CACHE_HOME=$home/.cache \
		XDG_STATE_HOME=$home/.local/state \
		XDG_CONFIG_HOME=$home/.config "$@"
}
json_get() { # PATH with dots, on stdin
	python3 "$TOP/tests/lib.py" get "$1"
}

# session_new [create's flags]: SESSION, and the links OWNER SENDER OBSERVER
# RUNNER.  Nobody but the test sees them: they go by pipe.
session_new() {
	as creator "$AIRLOXFS" create --relay "$URL" --json "$@" \
		>"$T/session.json" || fail "create $*"
	SESSION=$(json_get session_id <"$T/session.json")
	OWNER=$(json_get invites.owner <"$T/session.json")
	SENDER=$(json_get invites.sender <"$T/session.json")
	OBSERVER=$(json_get invites.observer <"$T/session.json")
	RUNNER=$(json_get invites.runner <"$T/session.json")
}

need_fuse() {
	[ -c /dev/fuse ] && [ -r /dev/fuse ] && [ -w /dev/fuse ] ||
		skip "no /dev/fuse that this user may open"
	command -v fusermount3 >/dev/null || skip "no fusermount3"
}
need() {
	local p
	for p; do
		command -v "$p" >/dev/null || skip "$p is not installed"
	done
}

# mount_at NAME INVITE DIR [flags...]: mounted and online, or it fails.
mount_at() {
	mount_try "$@" || fail "mount of $1: $(cat "$T/said")"
	local dir=$3
	[ -e "$dir/README" ] || fail "$dir is not a mount: $(cat "$T/said")"
}
# The same, and its status is the answer; its words are in $T/said.
mount_try() {
	local name=$1 invite=$2 dir=$3 status=0
	shift 3
	mkdir -p "$dir"
	printf '%s\n' "$invite" | as "$name" timeout $((30 * SLOW)) \
		"$AIRLOXFS" mount --as "$name" "$@" - "$dir" \
		>"$T/said" 2>&1 || status=$?
	[ "$status" != 0 ] || MOUNTS+=("$dir")
	return "$status"
}
# The pid that serves DIR.
daemon_pid() { python3 "$TOP/tests/lib.py" daemon "$1"; }
# A zombie has ended: it waits for tests/run, which adopts orphans.
is_running() { grep -qs '^State:[[:space:]]*[RSDTtIP]' "/proc/$1/status"; }
# tmpfs_at DIR SIZE: a small disk; gives 1 where that is not allowed.
tmpfs_at() {
	mount -t tmpfs -o "size=$2" tmpfs "$1" 2>/dev/null || return 1
	DISKS+=("$1")
}
is_mounted() { grep -q " $1 fuse" /proc/self/mounts; }

forget_mount() {
	local kept=() dir
	for dir in ${MOUNTS[@]+"${MOUNTS[@]}"}; do
		[ "$dir" = "$1" ] || kept+=("$dir")
	done
	MOUNTS=(${kept[@]+"${kept[@]}"})
}
# umount_at DIR [flags]: exit status 0, gone, and the daemon with it.
umount_at() {
	local dir=$1 pid
	shift
	pid=$(daemon_pid "$dir")
	assert_status 0 "$AIRLOXFS" umount "$@" "$dir"
	assert_not is_mounted "$dir"
	[ -z "$pid" ] || assert_wait "! is_running $pid" 10
	forget_mount "$dir"
}

# A sends by way of the shim, B watches; `through` is A's link.
pair_through_shim() {
	need_fuse
	relay_start
	session_new
	shim_start
	through=$(sed "s|$RELAY_URL|$URL|" <<<"$SENDER")
	mount_at alice "$through" "$T/a"
	mount_at bob "$OBSERVER" "$T/b"
	A=$T/a B=$T/b
}

# --- items -----------------------------------------------------------------

# The entry of in/ whose name ends so; "" while there is none.
entry_of() { # DIR SUFFIX
	local f
	for f in "$1"/in/*-"$2"; do
		[ -e "$f" ] && { echo "$f"; return; }
	done
}
count_of() { # DIR SUFFIX: how many items came under that name
	local f n=0
	for f in "$1"/in/*-"$2"; do
		[ ! -e "$f" ] || n=$((n + 1))
	done
	echo "$n"
}
xattr() { python3 "$TOP/tests/lib.py" xattr "$1" "user.airlox.$2"; }
set_xattr() { python3 "$TOP/tests/lib.py" setxattr "$1" "user.airlox.$2" "$3"; }
# arrives DIR SUFFIX [SECONDS]: waits, gives the entry.
arrives() {
	wait_for "[ -n \"\$(entry_of '$1' '$2')\" ]" "${3:-10}" ||
		fail "$2 did not arrive in $1"
	entry_of "$1" "$2"
}
# Everything sent before this has arrived: a marker through the same way.
settle() { # FROM TO
	SETTLED=$((${SETTLED:-0} + 1))
	echo "settled $SETTLED" >"$1/say"
	assert_wait "grep -qxF 'settled $SETTLED' '$2'/in/*.txt" 20
}
sum_of() { sha256sum <"$1" | cut -c1-64; }
rss_peak_kb() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

# --- the end ---------------------------------------------------------------

finish() {
	local dir
	for dir in ${MOUNTS[@]+"${MOUNTS[@]}"}; do
		umount_at "$dir"
	done
	FINISHED=1
	[ "$STEPS" -gt 0 ] || STEPS=1
	exit 0
}

clean_up() {
	local status=$? dir pid
	trap - EXIT
	[ -n "$FINISHED" ] || [ "$status" != 0 ] ||
		{ echo "FAILED: ended without finish"; status=1; }
	for dir in ${MOUNTS[@]+"${MOUNTS[@]}"}; do
		pid=$(daemon_pid "$dir")
		fusermount3 -u "$dir" 2>/dev/null || fusermount3 -uz "$dir"
		[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null
	done
	for pid in $SHIM_PID $RELAY_PID ${DAEMONS[@]+"${DAEMONS[@]}"}; do
		kill -TERM "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	for dir in ${DISKS[@]+"${DISKS[@]}"}; do
		umount "$dir" || umount -l "$dir"
	done
	exit "$status"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
