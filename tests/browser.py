# SPDX-License-Identifier: MIT
"""A real browser, driven by its own protocol over a pipe."""
import base64
import json
import os
import shutil
import subprocess

import lib


def find():
    return next((p for p in ("/usr/lib/chromium/chromium",
                             shutil.which("chromium"),
                             shutil.which("google-chrome"))
                 if p and os.access(p, os.X_OK)), None)


class Browser:
    def __init__(self, program):
        down, self.to = os.pipe()
        self.at, up = os.pipe()
        self.next, self.buf, self.events = 0, b"", []
        profile = lib.T + "/browser"
        self.child = subprocess.Popen(
            ["bash", "-c", 'exec "$0" "$@" 3<&{} 4>&{} 2>"$T/browser.err"'
             .format(down, up), program, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars",
             "--user-data-dir=" + profile, "--remote-debugging-pipe",
             "about:blank"], pass_fds=(down, up), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        os.close(down)
        os.close(up)
        target = self.call("Target.createTarget", url="about:blank")
        self.session = None
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for room in ("Page", "Network", "Runtime", "Log"):
            self.call(room + ".enable")

    def hear(self):
        while b"\0" not in self.buf:
            part = os.read(self.at, 1 << 20)
            if not part:
                raise lib.Failed("the browser has ended")
            self.buf += part
        one, _, self.buf = self.buf.partition(b"\0")
        return json.loads(one)

    def call(self, method, **params):
        self.next += 1
        message = {"id": self.next, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            got = self.hear()
            if got.get("id") == self.next:
                if "error" in got:
                    raise lib.Failed(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def open(self, path, width=1200, scheme="light"):
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url="file://" + path)
        while not any(e["method"] == "Page.loadEventFired"
                      for e in self.events):
            self.events.append(self.hear())

    def js(self, code):
        got = self.call("Runtime.evaluate", expression=code,
                        returnByValue=True)
        if "exceptionDetails" in got:
            raise lib.Failed(f"{code}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      **({"text": key} if len(key) == 1
                         and kind == "keyDown" else {}))

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(
                self.call("Page.captureScreenshot")["data"]))
        return os.stat(path).st_size

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events
                if e["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        return [e["params"] for e in self.events if e["method"] in
                ("Runtime.exceptionThrown", "Log.entryAdded",
                 "Runtime.consoleAPICalled", "Page.javascriptDialogOpening")]

    def end(self):
        try:
            os.write(self.to, b'{"id":0,"method":"Browser.close"}\0')
            self.child.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()
