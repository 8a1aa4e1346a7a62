#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# Goal: what ordinary programs write into out/ is one item each, whole, under
# the name that was meant; no temporary name is sent, no warning printed.
. "$TOP/tests/lib.sh"
need_fuse
need rsync tar vim dd install
relay_start
session_new
mount_at alice "$SENDER" "$T/a"
mount_at bob "$OBSERVER" "$T/b"
A=$T/a B=$T/b
declare -A want

# does WHAT NAME CONTENT-FILE command...: quietly, and one item of it comes.
does() {
	local what=$1 name=$2 file=$3
	shift 3
	"$@" >"$T/out.txt" 2>"$T/err.txt" || fail "$what: exit $? \
($(cat "$T/err.txt"))"
	[ ! -s "$T/err.txt" ] || fail "$what said: $(cat "$T/err.txt")"
	want[$name]=$((${want[$name]:-0} + 1))
	arrived "$what" "$name" "$file"
}
# The newest item of that name has these bytes.
arrived() {
	local entry
	assert_wait "[ \$(count_of '$B' '$2') = ${want[$2]} ]" 15
	entry=$(ls -d "$B"/in/*-"$2" | sort | tail -n 1)
	assert_cmp "$3" "$entry"
	assert_eq "$(xattr "$A/out/$2" state)" sent "$1: state"
	pass "$1"
}
sh_c() { bash -c "$1"; }

printf '# one\n\ntext\n' >"$T/src.md"
head -c 3000000 /dev/urandom | base64 >"$T/big.md"
mkdir "$T/from"
cd "$T/from" || exit 1
cp "$T/src.md" t1.md
cp "$T/big.md" r1.md
cp "$T/src.md" m1.md
printf 'one\ntwo\nthree\n' >"$T/three"
printf 'x\n' >"$T/x"
printf 'a\nb\n' >"$T/ab"

does cp cp.md "$T/src.md" cp "$T/src.md" "$A/out/cp.md"
does 'cp -p' cpp.md "$T/src.md" cp -p "$T/src.md" "$A/out/cpp.md"
does 'cp -a' cpa.md "$T/src.md" cp -a "$T/src.md" "$A/out/cpa.md"
does 'cp, 4 MB' cpbig.md "$T/big.md" cp "$T/big.md" "$A/out/cpbig.md"
cp "$T/from/m1.md" "$T/m1"
does mv m1.md "$T/m1" mv "$T/from/m1.md" "$A/out/m1.md"
does tee tee.md "$T/big.md" sh_c "cat $T/big.md | tee $A/out/tee.md"
does 'dd conv=fsync' dd.md "$T/big.md" dd if="$T/big.md" \
	of="$A/out/dd.md" bs=7919 conv=fsync status=none
does echo echo.md "$T/x" sh_c "echo x > $A/out/echo.md"
does 'a group with a child in it' group.md "$T/three" sh_c \
	"{ echo one; /bin/echo two; echo three; } > $A/out/group.md"
does 'exec 5>' exec.md "$T/ab" sh_c \
	"exec 5>$A/out/exec.md; echo a >&5; echo b >&5; exec 5>&-"
does 'exec 5> and children' execc.md "$T/ab" sh_c \
	"exec 5>$A/out/execc.md; /bin/echo a >&5; /bin/echo b >&5; exec 5>&-"
does 'a writer in the background' bg.md "$T/ab" sh_c \
	"(/bin/echo a; sleep 0.7; echo b) > $A/out/bg.md & wait"
does 'two writers, one redirection' two.md "$T/ab" sh_c \
	"sh -c '(sleep 0.7; echo b) & echo a' > $A/out/two.md; sleep 1.2"
does 'python with' pw.md "$T/x" python3 -c \
	"with open('$A/out/pw.md', 'w') as f: f.write('x\n')"
does 'python without close' pn.md "$T/x" python3 -c \
	"f = open('$A/out/pn.md', 'w'); f.write('x\n')"
does 'python, many writes and flushes' pf.md "$T/three" python3 -c "
f = open('$A/out/pf.md', 'w')
for w in 'one', 'two', 'three':
    print(w, file=f, flush=True)
f.close()"
does 'python shutil' ps.md "$T/src.md" python3 -c \
	"import shutil; shutil.copy2('$T/src.md', '$A/out/ps.md')"
does 'python tempfile and os.replace' pr.md "$T/x" python3 -c "
import os, tempfile
f = tempfile.NamedTemporaryFile('w', dir='$A/out', delete=False)
f.write('x\n'); f.flush(); os.fsync(f.fileno()); f.close()
os.replace(f.name, '$A/out/pr.md')"
does 'a name that ends in .tmp, renamed' tmp.md "$T/x" sh_c \
	"echo x > $A/out/t.tmp && mv $A/out/t.tmp $A/out/tmp.md"
does 'rsync -a' r1.md "$T/from/r1.md" rsync -a "$T/from/r1.md" "$A/out/"
tar -C "$T/from" -cf "$T/t.tar" t1.md
does 'tar x' t1.md "$T/from/t1.md" tar -C "$A/out" -xf "$T/t.tar"
does install inst.md "$T/src.md" install -m 600 "$T/src.md" \
	"$A/out/inst.md"
does 'truncate and write over' echo.md "$T/ab" sh_c \
	"printf 'a\nb\n' > $A/out/echo.md"
printf 'a\nb\nmore\n' >"$T/more"
does 'append to a sent name' echo.md "$T/more" sh_c \
	"echo more >> $A/out/echo.md"
sed 's/more/less/' "$T/more" >"$T/less"
does 'sed -i' echo.md "$T/less" sed -i s/more/less/ "$A/out/echo.md"
printf 'typed\n' >"$T/typed"
does 'vim, a new file' vim.md "$T/typed" sh_c \
	"cd $A/out && vim -Nu NONE -n -es -c 'call setline(1, \"typed\")' \
	-c wq vim.md </dev/null"
printf 'typed\nagain\n' >"$T/again"
printf 'xtyped\n' >"$T/xtyped"
printf 'typed\ntyped\n' >"$T/twice"
does 'vim, the same again' vim.md "$T/again" sh_c \
	"cd $A/out && vim -Nu NONE -n -es -c 'call append(1, \"again\")' \
	-c wq vim.md </dev/null"
does 'vim with backup and swap' vimb.md "$T/typed" sh_c \
	"cd $A/out && vim -Nu NONE -es --cmd 'set backup writebackup swapfile' \
	-c 'call setline(1, \"typed\")' -c wq vimb.md </dev/null"

nano_types() { # FILE TEXT: keys on a terminal, as a person does it
	python3 - "$@" <<'P'
import os, pty, select, sys, time
file, text = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "vt100"
    os.execvp("nano", ["nano", "-I", file])
def drain(quiet=0.4, most=20):
    end = time.monotonic() + most
    seen = b""
    while time.monotonic() < end and select.select([fd], [], [], quiet)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    return seen
drain(2)
for keys in (text.encode(), b"\x0f", b"\r", b"\x18"):
    os.write(fd, keys)
    drain()
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
P
}
if command -v nano >/dev/null; then
	does nano nano.md "$T/typed" nano_types "$A/out/nano.md" typed
	does 'nano, once more' nano.md "$T/xtyped" nano_types \
		"$A/out/nano.md" x
fi
emacs_types() { # FILE
	HOME=$T emacs -Q --batch --eval "(progn (find-file \"$1\") \
		(goto-char (point-max)) (insert \"typed\\n\") \
		(set-buffer-modified-p t) (save-buffer 0))" 2>"$T/emacs.err"
}
if command -v emacs >/dev/null; then
	does emacs emacs.md "$T/typed" emacs_types "$A/out/emacs.md"
	does 'emacs, once more' emacs.md "$T/twice" emacs_types \
		"$A/out/emacs.md"
fi

say 'what must not send anything'
quiet() {
	"$@" 2>"$T/err.txt" || fail "$*: exit $? ($(cat "$T/err.txt"))"
	[ ! -s "$T/err.txt" ] || fail "$* said: $(cat "$T/err.txt")"
}
quiet touch "$A/out/cp.md"
quiet touch -d '2020-01-01' "$A/out/cp.md"
quiet chmod 640 "$A/out/cp.md"
quiet chown "$(id -u)" "$A/out/cp.md"
quiet sync "$A/out"
quiet touch "$A/out/empty.md"
quiet sh_c "echo draft > $A/out/.hidden"
quiet sh_c "echo draft > $A/out/back~"
quiet sh_c "echo draft > $A/out/half.part"
quiet cat "$A/out/cp.md" >/dev/null
assert_eq "$(xattr "$A/out/.hidden" state)" staged 'a draft'
quiet rm "$A/out/.hidden" "$A/out/back~" "$A/out/half.part" \
	"$A/out/empty.md" "$A/out/cpp.md"
assert_not test -e "$A/out/cpp.md"
pass 'touch, chmod, chown, sync, drafts and rm are silent and send nothing'

say 'a directory travels as a zip when it is told to'
quiet mkdir "$A/out/tree"
quiet cp "$T/src.md" "$A/out/tree/one.md"
quiet mkdir "$A/out/tree/sub"
quiet sh_c "echo 1,2 > $A/out/tree/sub/t.csv"
settle "$A" "$B"
assert_eq "$(count_of "$B" one.md)" 0 'nothing inside is sent by itself'
quiet sh_c "echo send > $A/out/tree/ctl"
entry=$(arrives "$B" tree.zip)
mkdir "$T/un"
quiet python3 -m zipfile -e "$entry" "$T/un"
assert_cmp "$T/src.md" "$(find "$T/un" -name one.md)"
assert_eq "$(cat "$(find "$T/un" -path '*sub/t.csv')")" 1,2 'in the zip'
want[tree.zip]=1
pass 'mkdir out/D, fill, send'

say 'what Bob has is what was meant, and nothing else'
settle "$A" "$B"
for name in "${!want[@]}"; do
	assert_eq "$(count_of "$B" "$name")" "${want[$name]}" "$name"
done
total=0
for name in "${!want[@]}"; do total=$((total + want[$name])); done
have=$(ls "$B/in" | grep -cv '^[0-9]*-[^-]*\.txt$')
assert_eq "$have" "$total" "items: $(ls "$B/in")"
pass "$total items, each once"
finish
