"""A folder with plans and a module of tools to run them with, and processes that run there."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli_runs import started

TOOLS = '''\
"""Tools that note their calls in files, and wait for files."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from planning.tools import Tool
from planning.tools.errors import ToolTimeout


def _note(name):
    with open("calls.txt", "a") as calls:
        calls.write(name + "\\n")


def find(topic: str) -> dict:
    _note("find")
    return {"topic": topic, "pages": 3}


def fail() -> str:
    _note("fail")
    if Path("mended").exists():
        return "better now"
    raise ValueError("bad\\n[bold]luck\\x1b[31m")


def loud() -> str:
    print("from print")
    subprocess.run(["echo", "from a process"], check=True)
    os.write(1, b"without an end")
    return "said"


def leave() -> str:
    sys.exit(3)


def interrupt() -> str:
    raise KeyboardInterrupt


async def sleeper() -> str:
    _note("sleeper")
    if not Path("go").exists():
        await asyncio.sleep(60)
    return "slept"


def _wait(name):
    _note(name)
    while not Path("go").exists():
        time.sleep(0.01)
    return "waited"


def waiter() -> str:
    return _wait("waiter")


async def stubborn() -> str:
    _note("stubborn")
    while not Path("go").exists():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
    return "gave in"


async def blocking() -> str:
    return _wait("blocking")


def late() -> str:
    time.sleep(0.2)
    print("too late")
    return ""


def flaky() -> str:
    _note("flaky")
    if Path("calls.txt").read_text().count("flaky") < 2:
        raise ToolTimeout("not yet")
    return "at last"


some = (find, fail, loud, leave, interrupt, late, flaky)
tools = {each.__name__: each for each in (*some, sleeper, waiter, stubborn, blocking)}
once = {**tools, "waiter": Tool("waiter", "", waiter, idempotent=False)}
'''
PATIENCE = 30.0  # seconds for a process that may have to wait for a busy machine


def plan(*steps: dict[str, Any], goal: str = "Look into it") -> str:
    """A plan document of steps."""
    return json.dumps({"schema_version": 2, "goal": goal, "steps": steps})


def step(name: str, *after: str, **fields: Any) -> dict[str, Any]:
    """A step that calls the tool of its own name."""
    call = {"type": "tool", "name": name, "inputs": {}, "depends_on": list(after)}
    return {"step_id": name, "description": f"Call {name}", **call, **fields}


def thought(step_id: str, *after: str) -> dict[str, Any]:
    """A thinking step."""
    return {"step_id": step_id, "description": f"Think of {step_id}", "depends_on": list(after)}


FIND = step("find", inputs={"topic": "${user_prompt}"}, expected_key="found", output_path=["pages"])
FAILING = plan(FIND, step("fail", "find"), thought("left", "find"), thought("right", "fail"))
FINE = plan(FIND, thought("left", "find"))


def timeless(text: str) -> str:
    """A text with every time in it as 0.0 s."""
    return re.sub(r"\b\d+\.\d s\b", "0.0 s", text)


def calls(folder: Path) -> list[str]:
    """The calls that the tools have noted, sorted."""
    noted = folder / "calls.txt"
    return sorted(noted.read_text().split()) if noted.exists() else []


class Running:
    """A process of the command, in a group of its own, as a terminal has it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as errors:
            options: Any = {"cwd": folder, "stdout": out, "stderr": errors, "start_new_session": True}
            self._process = started("run", *arguments, **options)

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + PATIENCE
        while not is_so():
            if is_late := time.monotonic() > end:
                self.signal(signal.SIGKILL)
            assert not is_late, self.shown()
            assert self._process.poll() is None, self.shown()
            time.sleep(0.01)

    def until_called(self, *names: str) -> None:
        """Wait until tools have been called."""
        self.until(lambda: set(names) <= set(calls(self.folder)))

    def until_told(self, words: str) -> None:
        """Wait until something is said on standard error."""
        self.until(lambda: words in (self.folder / "err.txt").read_text())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the group."""
        os.killpg(self._process.pid, number)

    def ended(self) -> int:
        """Wait for the end; returns the exit code."""
        self.until(lambda: self._process.poll() is not None)
        return self._process.returncode

    def shown(self) -> str:
        """What it has printed so far."""
        out, errors = ((self.folder / name).read_text() for name in ("out.txt", "err.txt"))
        return timeless(f"--- stderr\n{errors}--- stdout\n{out}")
