"""Drives a headless Chromium by its debugging protocol, over a pipe: just enough to try a page."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

__all__ = ["Browser", "find_chromium"]

# The browser reads from file 3 and writes to file 4.
_LAUNCHER = """
import os, sys
incoming, outgoing = (os.dup(int(number)) for number in sys.argv[1:3])
if outgoing == 3:
    outgoing = os.dup(outgoing)
for source, number in ((incoming, 3), (outgoing, 4)):
    os.dup2(source, number)
    os.set_inheritable(number, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium():
    """The path of a Chromium, None if there is none."""
    return next((path for path in map(shutil.which, _NAMES) if path is not None), None)


class Browser:
    """One page. Messages of its console and exceptions that nobody caught are collected in ``complaints``."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _LAUNCHER, str(to_browser), str(from_browser), find_chromium()),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._folder.name}",
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = count(1)
        self._rest = b""
        self._session = None
        self.complaints = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self.look()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)
        os.close(self._read)
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def look(self, width=1200, height=900, dark=False):
        """The size of the window and the colours that the system asks for."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self.run("new Promise(done => setTimeout(done, 100))")  # the page is told in its own time

    def open(self, path):
        """Load a file, until it is there."""
        self._call("Page.navigate", url=Path(path).resolve().as_uri())
        self.run("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")

    def run(self, script):
        """The value of an expression in the page; promises are waited for."""
        answer = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key):
        """Press a key where the focus is."""
        written = {"text": "\r"} if key == "Enter" else {}  # without it, buttons are not pressed
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, **written)

    def _call(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if answer.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.complaints.append(answer["params"])

    def _receive(self):
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 16)
            if not more:
                raise RuntimeError("the browser has gone")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)
