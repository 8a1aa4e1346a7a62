#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 180
#
# Goal: the edges of writing: what fails leaves a draft that can still be
# sent, what is sent again shows the newest, what waits holds up nobody.
. "$TOP/tests/lib.sh"
pair_through_shim
settle "$A" "$B"

say 'a rename to a name that cannot be sent'
echo '# mv' >"$A/out/.mv"
assert_errno EINVAL "os.rename('$A/out/.mv', '$A/out/a:b.md')"
mv "$A/out/.mv" "$A/out/mv.md" || fail 'mv to a good name'
assert_eq "$(cat "$(arrives "$B" mv.md)")" '# mv' 'the draft was not lost'
long=$(printf '%0252d' 0)
assert_errno EINVAL "open('$A/out/${long:0:248}.bin', 'w')"
pass 'names'

say 'a directory, sent again'
mkdir "$A/out/d"
echo one >"$A/out/d/one"
echo send >"$A/out/d/ctl" || fail 'send'
assert_wait "[ \"\$(xattr '$A/out/d.zip' state)\" = sent ]" 10
first=$(xattr "$A/out/d.zip" id) size=$(stat -c %s "$A/out/d.zip")
head -c 5000 /dev/urandom >"$A/out/d/two"
echo send >"$A/out/d/ctl" || fail 'send again'
assert_wait "[ \"\$(xattr '$A/out/d.zip' state)\" = sent ]" 10
assert_not [ "$(xattr "$A/out/d.zip" id)" = "$first" ]
assert_wait "[ \$(stat -c %s '$A/out/d.zip') -gt $((size + 5000)) ]" 5
python3 -c "import sys, zipfile
assert sorted(zipfile.ZipFile(sys.argv[1]).namelist()) == ['one', 'two']" \
	"$A/out/d.zip" || fail 'its record'
settle "$A" "$B"
assert_eq "$(count_of "$B" d.zip)" 2 'both arrived'
pass 'a directory'

say 'room asked for that nobody gives'
python3 - "$A/out/big.md" <<'P' || fail 'python'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, b"# whole\n")
for call in (lambda: os.ftruncate(fd, 1 << 62),
             lambda: os.ftruncate(fd, 1 << 40),
             lambda: os.posix_fallocate(fd, 0, 1 << 40)):
    try:
        call()
        sys.exit("took it")
    except OSError as e:
        assert e.errno in (errno.EFBIG, errno.EINVAL), e
os.close(fd)
P
assert_eq "$(cat "$(arrives "$B" big.md)")" '# whole' 'sent all the same'
echo >"$A/say"
settle "$A" "$B"
assert_eq "$(find "$B/in" -name '*.txt' -empty | wc -l)" 0 'an empty text'
pass 'nothing lost, nothing empty'

say 'verbs that wait for the network'
shim drop
for i in $(seq 12); do
	echo "# $i" >"$A/out/.v$i" && mv "$A/out/.v$i" "$A/out/v$i.tmp"
done
sleep 0.2
for i in $(seq 12); do
	(echo "send v$i.tmp" >"$A/ctl") &
done
sleep 0.3
start=$(date +%s%N)
ls "$A/out" "$A/in" >/dev/null
cat "$A/status" >/dev/null
ms=$((($(date +%s%N) - start) / 1000000))
[ $ms -le $((2500 * SLOW)) ] || fail "ls took $ms ms"
wait $(jobs -p | grep -vx -e "$RELAY_PID" -e "$SHIM_PID")
shim pass
pass 'others go on'

say 'a stream that two read'
python3 - "$B/events" "$A/say" <<'P' || fail 'python'
import os, sys, threading, time
fd = os.open(sys.argv[1], os.O_RDONLY)
heard = []
def read():
    try:
        while len(heard) < 2:
            heard.append(os.read(fd, 65536))
    except OSError as e:
        heard.append(e)
while len(os.read(fd, 65536)) == 65536:
    pass
threads = [threading.Thread(target=read, daemon=True) for _ in range(2)]
for t in threads:
    t.start()
for i in range(8):
    with open(sys.argv[2], "w") as f:
        f.write("%d" % i)
for t in threads:
    t.join(15)
    assert not t.is_alive(), "a reader waits for ever"
assert all(isinstance(h, bytes) and h for h in heard), heard
P
pass 'a stream'
finish
