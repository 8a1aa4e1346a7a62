#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# timeout: 180
"""Goal: a command in a box: ordinary clients work with what the policy allows,
everything else leads nowhere and is a line, no credential is anywhere inside,
and nothing stays when any of the processes is killed."""
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile

sys.path.insert(0, os.environ["TOP"] + "/tests")
import lib                                            # noqa: E402
import broker_peer as bp                              # noqa: E402

SECRET = "the-real-credential-4711/x+y"
VENV = lib.TOP + "/build/venv-box"
POLICY = f"""
allow:
  - api.test
  - host: files.test
    method: [GET, HEAD]
credentials:
  - host: api.test
    scheme: substitute
    placeholder: placeholder-for-api
    env: API_KEY
    from: env:REAL
  - host: files.test
    scheme: bearer
    from: env:REAL
files:
  - path: {lib.T}/shared
    at: /shared
    mode: write
  - path: {lib.T}/in
    at: /copied
    mode: copy
  - path: {VENV}
    at: /opt/venv
limits:
  time: 60s
session: none
"""

NGINX = """
daemon off; master_process off; pid {T}/nginx.pid; error_log {T}/nginx.err;
events {{ }}
http {{
  access_log off; root {T}/www;
  client_body_temp_path {T}/n1; proxy_temp_path {T}/n2;
  fastcgi_temp_path {T}/n3; uwsgi_temp_path {T}/n4; scgi_temp_path {T}/n5;
  server {{ listen 93.184.1.3:443 ssl; ssl_certificate {cert};
    ssl_certificate_key {key}; autoindex on;
    if ($http_authorization != "Bearer {secret}") {{ return 401; }} }}
}}
"""


def box(*command, policy="policy.yaml", status=0, egress=None, timeout=60):
    env = dict(os.environ, REAL=SECRET, AIRLOX_INVITE="an-invite",
               SSL_CERT_FILE=bp.CA)
    done = subprocess.run(
        [bp.BOX, "run", f"{lib.T}/{policy}", "--egress",
         egress or lib.T + "/egress.jsonl", "--record", lib.T + "/r.html",
         "--", *command], env=env,
        preexec_fn=bp.drop_caps, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=timeout * lib.SLOW)
    if status is not None and done.returncode != status:
        told = subprocess.run([bp.BOX, "show", lib.T + "/r.html"],
                              stdout=subprocess.PIPE, text=True).stdout
        raise lib.Failed(f"{command[:3]}: exit {done.returncode}: "
                         f"{told[-600:]} "
                         f"{done.stdout[-800:]} {done.stderr[-800:]}")
    return done


def lines():
    with open(lib.T + "/egress.jsonl") as f:
        return [json.loads(line) for line in f]


def make_site():
    www = lib.T + "/www"
    os.makedirs(www + "/simple/tiny")
    os.makedirs(lib.T + "/src")
    name = www + "/simple/tiny/tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(name, "w") as z:
        z.writestr("tiny.py", "print('tiny is here')\n")
        z.writestr("tiny-1.0.dist-info/METADATA",
                   "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n"
                   "Generator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("tiny-1.0.dist-info/RECORD", "")
    with open(www + "/simple/tiny/index.html", "w") as f:
        f.write('<a href="tiny-1.0-py3-none-any.whl">tiny</a>')
    git = dict(os.environ, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b",
               GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
    with open(lib.T + "/src/file", "w") as f:
        f.write("from git\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"],
                  ["clone", "-q", "--bare", ".", www + "/repo.git"],
                  ["-C", www + "/repo.git", "update-server-info"]):
        subprocess.run(["git", *words], cwd=lib.T + "/src", env=git,
                       check=True)
    with open(lib.T + "/nginx.conf", "w") as f:
        f.write(NGINX.format(T=lib.T, cert=bp.CERT, key=bp.KEY,
                             secret=SECRET))
    child = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx",
                              "-c", lib.T + "/nginx.conf"],
                             stderr=subprocess.DEVNULL)
    bp.atexit.register(child.kill)
    lib.wait_for(lambda: os.path.exists(lib.T + "/nginx.pid"), "nginx")


def make_venv():
    """requests and httpx, as their users have them; made at first use."""
    if os.path.exists(VENV + "/ready"):
        return
    done = subprocess.run(
        ["sh", "-c", f"/usr/bin/python3 -m venv --clear '{VENV}' && "
         f"'{VENV}/bin/pip' install -q --disable-pip-version-check requests "
         f"httpx && touch '{VENV}/ready'"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print("# no requests and httpx here: " + done.stdout[-300:])
        os.makedirs(VENV, exist_ok=True)
        lib.ok(os.environ.get("MUST_WORK") != "1", "they are not needed")


def libraries(up):
    if not os.path.exists(VENV + "/ready"):
        return
    for name, code in (
            ("requests", "import os, requests as r; s = r.Session(); "
             "h = {'Authorization': 'Bearer ' + os.environ['API_KEY']}; "
             "print(s.post('https://api.test/lib', json={'a': 1}, headers=h)"
             ".json()['target'], s.get('https://api.test/two', headers=h)"
             ".status_code, end=' ')\n"
             "try: s.get('https://evil.test/')\n"
             "except r.exceptions.ProxyError as e: "
             "print('403' if '403' in str(e) else e)"),
            ("httpx", "import os, httpx; c = httpx.Client(headers={"
             "'Authorization': 'Bearer ' + os.environ['API_KEY']}); "
             "print(c.post('https://api.test/lib', json={'a': 1})"
             ".json()['target'], c.get('https://api.test/two').status_code, "
             "end=' ')\n"
             "try: c.get('https://evil.test/')\n"
             "except httpx.ProxyError as e: print(str(e)[:3])")):
        got = box("/opt/venv/bin/python", "-c", code)
        lib.same(got.stdout, "/lib 200 403\n", name)
        lib.ok(["Authorization", "Bearer " + SECRET] in
               [list(x) for x in up.seen[-1]["fields"]], "with the credential")


GO = r'''package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	req, _ := http.NewRequest("GET", "https://api.test/go", nil)
	req.Header.Set("Authorization", "Bearer " + os.Getenv("API_KEY"))
	r, err := http.DefaultClient.Do(req)
	if err != nil { fmt.Println(err); return }
	b, _ := io.ReadAll(r.Body)
	fmt.Println(r.StatusCode, r.Proto, len(b) > 0)
	_, err = http.Get("https://evil.test/")
	fmt.Println(err)
}
'''


def go(up):
    """Compiling its library takes a minute where nobody has yet."""
    program = shutil.which("go")
    if not program or not os.environ.get("SOAK"):
        return
    with open(lib.T + "/shared/main.go", "w") as f:
        f.write(GO)
    subprocess.run([program, "build", "-o", lib.T + "/shared/client",
                    lib.T + "/shared/main.go"], check=True,
                   env=dict(os.environ, CGO_ENABLED="0",
                            GOCACHE=lib.TOP + "/build/go", GO111MODULE="off"))
    got = box("/shared/client")
    lib.ok(got.stdout.startswith("200 HTTP/1.1 true\n") and "Denied by the "
           "policy" in got.stdout, "go: " + got.stdout)
    lib.ok(["Authorization", "Bearer " + SECRET] in up.seen[-1]["fields"],
           "with the credential")


def clients(up):
    got = box("curl", "-sS", "-H", "Authorization: Bearer placeholder-for-api",
              "https://api.test/curl")
    lib.ok('"/curl"' in got.stdout, "curl")
    lib.ok(["Authorization", "Bearer " + SECRET] in up.seen[-1]["fields"],
           "the upstream saw the credential")
    lib.ok(SECRET not in got.stdout and "***" in got.stdout,
           "and the box did not, though it was echoed")
    box("curl", "-sS", "--noproxy", "*", "https://api.test/direct")
    lib.same(lines()[0]["door"], "https", "curl without a proxy")
    got = box("/usr/bin/python3", "-c", "import urllib.request as u;"
              "print(u.urlopen('https://api.test/py').read().decode())")
    lib.ok('"/py"' in got.stdout, "python's urllib")
    got = box("git", "clone", "-q", "https://files.test/repo.git", "/work/r")
    lib.ok(got.stderr.startswith("airlox-box: record: "), "git clones")
    got = box("sh", "-c", "git clone -q https://files.test/repo.git r && "
              "cat r/file && cat /copied/a && pwd && ls")
    lib.same(got.stdout, "from git\ncopied\n/work\nr\n", "and has it")
    got = box("node", "-e", "fetch('https://api.test/node')"
              ".then(r => r.text()).then(console.log)")
    lib.ok('"/node"' in got.stdout, "node's fetch, which knows no proxy")
    lib.same(lines()[0]["door"], "https", "goes by :443")
    got = box("sh", "-c", "/usr/bin/python3 -m pip install -q --no-cache "
              "--break-system-packages --target /work/p --no-deps "
              "-i https://files.test/simple tiny && "
              "/usr/bin/python3 /work/p/tiny.py")
    lib.same(got.stdout, "tiny is here\n", "pip installs")


BREAK_OUT = r"""
import base64, json, os, socket, urllib.request, urllib.error
def attempt(name, f):
    try:
        print(name, 'WORKED', f())
    except Exception as e:
        print(name, 'no:', type(e).__name__, str(e)[:80])
def tcp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(3)
    s.connect((host, port))
    return s
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.sendto(b'x', ('93.184.1.1', 53))
    return s
attempt('tcp', lambda: tcp('93.184.1.1', 443))
attempt('udp', udp)
attempt('v6', lambda: tcp('2001:db8::1', 443, socket.AF_INET6))
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt('metadata', lambda: tcp('169.254.169.254', 80))
attempt('name', lambda: socket.getaddrinfo('evil.test', 443))
attempt('evil', lambda: urllib.request.urlopen('https://evil.test/'))
attempt('ip', lambda: urllib.request.urlopen('https://93.184.1.1/'))
attempt('post', lambda: urllib.request.urlopen('https://files.test/', b'x'))
attempt('http', lambda: urllib.request.urlopen('http://api.test/'))
attempt('egress', lambda: open('/run/airlox/egress', 'a'))
attempt('invite', lambda: os.environ['AIRLOX_INVITE'])
url = os.environ['HTTPS_PROXY']
user = url[len('http://'):url.index('@')].encode()
token = b'Proxy-Authorization: Basic ' + base64.b64encode(user) + b'\r\n'
def nameless():
    s = tcp('127.0.0.1', 3128)
    s.sendall(b'CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n')
    said = s.recv(100)
    assert b' 407 ' not in said, said
attempt('token', nameless)
def relay():
    a = socket.create_server(('127.0.0.1', 9999))
    s = tcp('127.0.0.1', 3128)
    s.sendall(b'CONNECT 127.0.0.1:9999 HTTP/1.1\r\nHost: 127.0.0.1:9999\r\n'
              + token + b'\r\n')
    assert b' 200 ' in s.recv(100)
attempt('relay', relay)
try:
    urllib.request.urlopen('https://files.test/', b'x')
except urllib.error.HTTPError as e:
    print('BODY', e.code, e.read().decode()[:600])
print('LINES', sum('denied' in x for x in open('/run/airlox/egress')))
"""


def break_out():
    got = box("/usr/bin/python3", "-c", BREAK_OUT)
    lib.ok("WORKED" not in got.stdout, "no way out: " + got.stdout[:3000])
    lib.ok("BODY 403 airlox-box: denied" in got.stdout
           and "files.test:443 GET HEAD" in got.stdout,
           "and a body says what is allowed")
    why = [(x.get("host"), x["reason"]) for x in lines()
           if x["decision"] == "denied"]
    for host in ("evil.test", "93.184.1.1", "files.test", "api.test",
                 "127.0.0.1"):
        lib.ok(host in [h for h, _ in why], f"{host}: a line")
    lib.ok(f"LINES {len(why)}" in got.stdout, "which the box can read")


SEARCH = r"""
import os, re, time, urllib.request, glob
key = os.environ['API_KEY']
for _ in range(3):
    r = urllib.request.Request('https://api.test/?echo',
                               headers={'Authorization': 'Bearer ' + key})
    body = urllib.request.urlopen(r).read()
out = open('/shared/memory', 'wb')
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline', 'mountinfo', 'status'):
        try:
            out.write(open(f'/proc/{pid}/{name}', 'rb').read())
        except OSError:
            pass
    try:
        mem = open(f'/proc/{pid}/mem', 'rb', 0)
        maps = open(f'/proc/{pid}/maps').read()
    except OSError:
        continue
    for m in re.finditer(r'^(\w+)-(\w+) r.*?(\S*)$', maps, re.M):
        a, b = int(m[1], 16), int(m[2], 16)
        if m[3] in ('[vvar]', '[vsyscall]'):
            continue
        try:
            mem.seek(a)
            out.write(mem.read(b - a))
        except OSError:
            pass
for d in ('/run', '/etc', '/tmp', '/work', '/home', '/dev/shm'):
    for path in glob.glob(d + '/**', recursive=True):
        if os.path.isfile(path):
            try:
                out.write(open(path, 'rb').read())
            except OSError:
                pass
out.close()
print(key, len(body), flush=True)
open('/shared/looked', 'w').close()
until = time.monotonic() + 40
while not os.path.exists('/shared/go') and time.monotonic() < until:
    time.sleep(0.02)
"""


def memory_of(pid):
    """All that can be read of a process, from outside."""
    seen = []
    with open(f"/proc/{pid}/maps") as f:
        maps = f.read()
    with open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for m in re.finditer(r"^(\w+)-(\w+) r.*?(\S*)$", maps, re.M):
            if m[3] in ("[vvar]", "[vsyscall]"):
                continue
            try:
                mem.seek(int(m[1], 16))
                seen.append(mem.read(int(m[2], 16) - int(m[1], 16)))
            except OSError:
                pass
    for name in ("environ", "cmdline"):
        with open(f"/proc/{pid}/{name}", "rb") as f:
            seen.append(f.read())
    return b"".join(seen)


def box_processes():
    """Those in another pid namespace than ours."""
    ours, found = os.readlink("/proc/self/ns/pid"), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") != ours:
                found.append(pid)
        except OSError:
            pass
    return found


def no_secret():
    looked = []

    def look():
        lib.wait_for(lambda: os.path.exists(lib.T + "/shared/looked"),
                     "the box has looked at itself", 30)
        looked.extend(memory_of(pid) for pid in box_processes())
        open(lib.T + "/shared/go", "w").close()

    thread = threading.Thread(target=look)
    thread.start()
    got = box("/usr/bin/python3", "-c", SEARCH)
    thread.join()
    lib.ok(got.stdout.startswith("placeholder-for-api "), "a placeholder")
    lib.ok(len(looked) >= 2 and sum(b"placeholder-for-api" in m
                                    for m in looked) >= 1,
           f"{len(looked)} processes of the box were looked at from outside")
    with open(lib.T + "/shared/memory", "rb") as f:
        seen = f.read() + b"".join(looked)
    raw = SECRET.encode()
    lib.ok(len(seen) > 1 << 20 and b"placeholder-for-api" in seen,
           f"{len(seen)} bytes of the box were looked at")
    with open(lib.T + "/egress.jsonl", "rb") as f:
        seen += f.read()
    with open(lib.T + "/r.html", "rb") as f:
        seen += f.read()
    seen += subprocess.run([bp.BOX, "show", lib.T + "/r.html"], check=True,
                           stdout=subprocess.PIPE).stdout
    seen += (got.stdout + got.stderr).encode()
    for where, _, names in os.walk(os.environ["TMPDIR"]):
        for name in names:
            with open(f"{where}/{name}", "rb") as f:
                seen += f.read()
    for word, needle in (
            ("raw", raw), ("base64", base64.b64encode(raw)[:-4]),
            ("base64, second", base64.b64encode(b"a" + raw)[3:-4]),
            ("base64, third", base64.b64encode(b"ab" + raw)[4:-4]),
            ("hex", raw.hex().encode()),
            ("hex, upper", raw.hex().upper().encode()),
            ("percent, lower", raw.replace(b"/", b"%2f").replace(b"+",
                                                                 b"%2b")),
            ("all percent", b"".join(b"%%%02x" % c for c in raw)),
            ("percent", raw.replace(b"/", b"%2F").replace(b"+", b"%2B"))):
        lib.ok(needle not in seen, f"no credential inside: {word}")
    os.unlink(lib.T + "/shared/memory")


def record():
    box("sh", "-c", "echo said; curl -sS https://evil.test/; "
        "curl -sS https://api.test/rec >/dev/null", status=None)
    page = lib.T + "/r.html"
    done = subprocess.run([bp.BOX, "verify", page], stdout=subprocess.PIPE,
                          text=True)
    lib.same(done.returncode, 0, "the record is signed")
    shown = subprocess.run([bp.BOX, "show", page], stdout=subprocess.PIPE,
                           text=True).stdout
    for word in ("stdout  said", "decision=denied", "host=evil.test",
                 "decision=allowed", "path=/rec", "end  exit=0"):
        lib.ok(word in shown, f"the record has {word}")
    with open(page, "rb") as f:
        text = f.read()
    lib.ok(SECRET.encode() not in text, "and no credential")
    with open(page, "wb") as f:
        f.write(text.replace(b"evil.test", b"good.test", 1))
    done = subprocess.run([bp.BOX, "verify", page], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    lib.ok(done.returncode != 0, "one name changed is seen")


def pids_of(word):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if word in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def ends():
    lib.same(box("sh", "-c", "exit 7", status=7).returncode, 7, "its exit")
    lib.same(box("sh", "-c", "kill -9 $$", status=137).returncode, 137,
             "a signal")
    with open(lib.T + "/short.yaml", "w") as f:
        f.write("limits:\n  time: 1s\n")
    got = box("sleep", "60", policy="short.yaml", status=124)
    lib.ok("time" in got.stderr, "the time of the policy")
    with open(lib.T + "/bad.yaml", "w") as f:
        f.write("allow:\n  - api.test\ncredentials:\n  - {host: api.test, "
                "scheme: bearer, from: env:NOT_THERE}\n")
    got = box("true", policy="bad.yaml", status=65)
    lib.ok("bad.yaml: " in got.stderr and "line 4" in got.stderr
           and "NOT_THERE is not set" in got.stderr, got.stderr.strip())
    for whom in ("cli", "broker", "box"):
        env = dict(os.environ, REAL=SECRET)
        child = subprocess.Popen(
            [bp.BOX, "run", lib.T + "/policy.yaml", "--egress",
             lib.T + "/e2.jsonl", "--no-record", "--", "sleep", f"12{len(whom)}.5"],
            env=env, preexec_fn=bp.drop_caps, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mark = f"12{len(whom)}.5".encode()
        lib.wait_for(lambda: any(
            open(f"/proc/{p}/cmdline", "rb").read().startswith(b"sleep")
            for p in pids_of(b"sleep\0" + mark)), "the box runs", 30)
        brokers = pids_of(b"--broker")
        lib.same(len(brokers), 1, "one broker")
        if whom == "cli":
            child.kill()
        elif whom == "broker":
            os.kill(brokers[0], signal.SIGKILL)
            child.terminate()
        else:
            child.terminate()
        child.wait(30)
        lib.wait_for(lambda: not pids_of(mark) and not pids_of(b"--broker"),
                     f"all is gone when {whom} was killed", 15)
        lib.ok(True, f"{whom} killed: nothing stays")
    left = [n for n in os.listdir(os.environ["TMPDIR"]) if "airlox" in n]
    lib.same(left, [], "no directory is left")


def main():
    if os.environ.get("BROKER_INSIDE") != "1":
        make_venv()
    bp.enter()
    bp.make_certs()
    for name in ("shared", "in"):
        os.mkdir(f"{lib.T}/{name}")
    with open(lib.T + "/in/a", "w") as f:
        f.write("copied\n")
    with open(lib.T + "/policy.yaml", "w") as f:
        f.write(POLICY)
    up = bp.Upstream()
    make_site()
    clients(up)
    libraries(up)
    go(up)
    break_out()
    no_secret()
    record()
    ends()


lib.run_main(main)
