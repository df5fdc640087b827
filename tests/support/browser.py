"""Debian's Chromium without a window, for tests of pages: driven by the DevTools protocol over its pipe.

Expectations of a page go into ``evaluate``; ``eventually`` waits for them. Nothing is fetched but what a page asks for.
"""

import base64
import json
import shutil
import socket
import subprocess
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, Deque, Dict, List, Optional, Type

import pytest

from tests.support.waiting import PATIENCE_S

PROGRAM = "chromium"
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--no-proxy-server", "--remote-debugging-pipe",
)  # fmt: skip
# The browser reads fd 3 and writes fd 4: one socket, which the shell gets as its stdin.
SHELL = 'exec "$0" "$@" 3<&0 4>&0 </dev/null'
# Other tests add networks to this machine, and take them away: Chromium then ends what it is loading.
NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
KEYS = {"Tab": 9, "Enter": 13, " ": 32}
Values = Dict[str, Any]


def skip_without() -> None:
    """Skip the test that calls it where this machine has no Chromium."""
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"needs chromium: this machine lacks {PROGRAM} (apt-get install chromium)")


class Browser:
    """A browser with a profile in ``folder`` and further ``options``, which lives while entered.

    Raises:
      AssertionError: the browser refuses a command, or does not answer in time.
    """

    def __init__(self, folder: Path, *options: str):
        self._folder, self._options = folder, options
        self._read = b""
        self._sent = 0
        self.events: Deque[Values] = deque(maxlen=10000)

    def __enter__(self) -> "Browser":
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(PATIENCE_S)
        options = [*OPTIONS, *self._options, f"--user-data-dir={self._folder}"]
        with theirs:
            self._process = subprocess.Popen(
                ["sh", "-c", SHELL, PROGRAM, *options, "about:blank"],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if kind is None:
                self.call("Browser.close")
            self._process.wait(PATIENCE_S if kind is None else 0.1)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            self._ours.close()

    def call(self, method: str, session: Optional[str] = None, **params: Any) -> Values:
        """Send a command and return its result; events that come before it are kept."""
        self._sent += 1
        sent = {"id": self._sent, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self._ours.sendall(json.dumps(sent).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._sent:
                assert "error" not in message, (method, message["error"])
                result: Values = message["result"]
                return result
            self.events.append(message)

    def _message(self) -> Values:
        while b"\0" not in self._read:
            data = self._ours.recv(1 << 16)
            assert data, f"{PROGRAM} has ended"
            self._read += data
        line, self._read = self._read.split(b"\0", 1)
        message: Values = json.loads(line.decode())
        return message

    def page(self, width: int = 1200, height: int = 900) -> "Page":
        """Return a new empty page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"], width, height)


class Page:
    """One page of the browser, with what it asked for and complained about."""

    def __init__(self, browser: Browser, session: str, width: int, height: int):
        self._browser, self._session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method: str, **params: Any) -> Values:
        """Send a command about this page and return its result."""
        return self._browser.call(method, self._session, **params)

    def resize(self, width: int, height: int) -> None:
        """Give the window a size in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark`` colours."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Load a page, and return when its script has run."""
        for _ in range(3):
            failed = self.call("Page.navigate", url=url).get("errorText", "")
            if failed != NETWORK_CHANGED:
                break
        assert not failed, f"{url}: {failed}"
        loaded = "new Promise((done) => document.readyState === 'complete' ? done(0) : addEventListener('load', done))"
        self.evaluate(f"{loaded}.then(() => 0)")

    def close(self) -> None:
        """Close the page."""
        self.call("Page.close")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, or of its promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, times: int = 1) -> None:
        """Press a key of ``KEYS``."""
        text = {"Enter": "\r", " ": " "}.get(key)
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                more = {"text": text} if text and kind == "keyDown" else {}
                self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=KEYS[key], **more)

    def picture(self) -> bytes:
        """Return what the window shows, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def requested(self) -> List[str]:
        """Return the URLs that the page has asked for so far."""
        return [each["request"]["url"] for each in self._events("Network.requestWillBeSent")]

    def complaints(self) -> List[str]:
        """Return what the page has written to the console, and the errors that nothing caught.

        A request that ended because this machine's networks changed is none: a page asks again.
        """
        entries = [each["entry"] for each in self._events("Log.entryAdded")]
        written = [f"{each['level']}: {each['text']}" for each in entries if NETWORK_CHANGED not in each["text"]]
        printed = [str(each["args"]) for each in self._events("Runtime.consoleAPICalled")]
        return [*written, *printed, *(str(each) for each in self._events("Runtime.exceptionThrown"))]

    def _events(self, method: str) -> List[Values]:
        self.evaluate("0")  # what happened before it has been read then
        of_page = [each for each in self._browser.events if each.get("sessionId") == self._session]
        return [each["params"] for each in of_page if each["method"] == method]
