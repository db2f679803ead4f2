"""A Chromium that tests drive, over its DevTools protocol through two pipes."""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

PATIENCE: Final = 30.0  # seconds that the browser may take for anything
_FLAGS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--no-first-run", "--lang=en-GB"),
    "--remote-debugging-pipe",
)


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
        pipes = f"3</dev/fd/{theirs_in} 4>/dev/fd/{theirs_out}"  # it reads from 3, and writes to 4
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" {pipes}', "sh", program, *_FLAGS, f"--user-data-dir={folder}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._numbers = itertools.count(1)
        self._listeners: dict[str, Callable[[str, dict[str, Any]], None]] = {}
        self._rest = b""

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; what happens until then is heard."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        waiting = json.dumps(message).encode() + b"\0"
        while waiting:
            waiting = waiting[os.write(self._commands, waiting) :]
        for got in iter(self._next, None):
            if got.get("id") == number:
                if "error" in got:
                    raise BrowserError(f"{method}: {got['error']['message']}")
                result: dict[str, Any] = got["result"]
                return result
            if listener := self._listeners.get(got.get("sessionId", "")):
                listener(got["method"], got["params"])
        raise BrowserError(f"the browser does not answer {method}")

    def _next(self) -> dict[str, Any] | None:
        """The next message; None if none comes."""
        while b"\0" not in self._rest:
            if not select.select([self._messages], [], [], PATIENCE)[0]:
                return None
            self._rest += os.read(self._messages, 1 << 20)
        whole, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(whole)
        return message

    def page(self, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Page:
        """Open an empty page in a window of this size, its colours ``light`` or ``dark``."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, context)
        self._listeners[session] = page.hear
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        page.send("Emulation.setDeviceMetricsOverride", **size)
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
        os.close(self._messages)


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
