"""A Chromium that tests drive, over its DevTools protocol through two pipes."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final, Self

PATIENCE: Final = 30.0  # seconds that the browser may take for anything
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--lang=en-GB",
    "--remote-debugging-pipe",
)
# The browser reads from descriptor 3 and writes to 4.
_LAUNCH: Final = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for number, end in zip((3, 4), ends):
    os.dup2(end, number)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str | None:
    """Where the browser is; None when it is not installed."""
    return shutil.which("chromium")


class BrowserError(Exception):
    """The browser refused a command, or the page did not become what a test waited for."""


class Browser:
    """A browser, until it is closed."""

    def __init__(self, program: str, folder: Path) -> None:
        """Start the program with an empty folder for what it keeps."""
        theirs_in, self._commands = os.pipe()
        self._messages, theirs_out = os.pipe()
        launch = [sys.executable, "-c", _LAUNCH, str(theirs_in), str(theirs_out)]
        self._process = subprocess.Popen(
            [*launch, program, *_FLAGS, f"--user-data-dir={folder}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._numbers = itertools.count(1)
        self._answers: dict[int, Queue[dict[str, Any]]] = {}
        self._listeners: dict[str, Callable[[str, dict[str, Any]], None]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._numbers)
        answer = self._answers[number] = Queue()
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        waiting = json.dumps(message).encode() + b"\0"
        while waiting:
            waiting = waiting[os.write(self._commands, waiting) :]
        try:
            got = answer.get(timeout=PATIENCE)
        except Empty:
            raise BrowserError(f"the browser does not answer {method}") from None
        if "error" in got:
            raise BrowserError(f"{method}: {got['error']['message']}")
        result: dict[str, Any] = got["result"]
        return result

    def page(self, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Page:
        """Open an empty page in a window of this size, its colours ``light`` or ``dark``."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, context)
        self._listeners[session] = page.hear
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        page.resize(width, height)
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        return page

    def close(self) -> None:
        """End the browser."""
        os.close(self._commands)  # it ends by itself then
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(PATIENCE)

    def _read(self) -> None:
        with os.fdopen(self._messages, "rb") as messages:
            rest = b""
            while part := messages.read1(1 << 20):
                *whole, rest = (rest + part).split(b"\0")
                for each in whole:
                    self._hear(json.loads(each))

    def _hear(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers.pop(message["id"]).put(message)
        elif listener := self._listeners.get(message.get("sessionId", "")):
            listener(message["method"], message["params"])


class Page:
    """One page of the browser, and what it did."""

    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self._browser = browser
        self._session = session
        self._context = context
        self.errors: list[str] = []  # on its console, and exceptions that nothing caught
        self.requests: list[str] = []
        self.dialogs: list[str] = []

    def __enter__(self) -> Self:
        """Return the page."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it, and forget what it kept."""
        self._browser.send("Target.disposeBrowserContext", browserContextId=self._context)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command about this page and return its result."""
        return self._browser.send(method, self._session, **parameters)

    def hear(self, method: str, event: dict[str, Any]) -> None:
        """Note what happens in the page."""
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in {"error", "assert", "warning"}:
            self.errors.append(json.dumps(event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in {"error", "warning"}:
            self.errors.append(event["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(event["message"])

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def open(self, url: str) -> None:
        """Open an address, and wait until the page has drawn."""
        self.send("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; of a promise, what it becomes."""
        got = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in got:
            raise BrowserError(f"{expression}: {json.dumps(got['exceptionDetails'])}")
        return got["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.evaluate(condition):
                    return
            except BrowserError as error:
                if "context" not in str(error) and "ReferenceError" not in str(error):
                    raise
            time.sleep(0.01)
        raise BrowserError(f"it never became true: {condition}")

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")

    def press(self, key: str) -> None:
        """Press a key, by its name in an event: ``ArrowLeft``, ``/``."""
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "End": 35, "Home": 36}
        codes |= {"Escape": 27, "Tab": 9, "Enter": 13}
        event = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.send("Input.insertText", text=text)

    def text(self, selector: str) -> str:
        """Return the text that a person reads in an element, without empty lines."""
        text: str = self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")
        return re.sub("\n+", "\n", text)

    def texts(self, selector: str) -> list[str]:
        """Return the texts that a person reads in all elements that a selector finds."""
        return self.values(selector, "innerText")

    def values(self, selector: str, field: str = "textContent") -> list[Any]:
        """Return a field of all elements that a selector finds."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        values: list[Any] = self.evaluate(f"{found}.map(each => each.{field})")
        return values

    def click(self, selector: str) -> None:
        """Click an element."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        self.settle()
