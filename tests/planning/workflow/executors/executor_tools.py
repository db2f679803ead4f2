"""Tools that worker processes find by their names, and what else the tests of executors share."""

from __future__ import annotations

import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_cases import SORRY, called, told

from planning.tools import (
    BaseTool,
    StorageUnavailable,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
    tool,
)
from planning.tools.errors import UserInputNeeded
from planning.workflow import WorkflowStep


class Own(Executor):
    """An executor as users may write one: a thread for each call."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(fn, *args, **kwargs)


def spawned(workers: int = 2) -> ProcessPoolExecutor:
    """The pool of the standard library, with fresh interpreters."""
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def step(step_id: str, tool: str, *depends_on: str, **fields: Any) -> WorkflowStep:
    return called(step_id, *depends_on, tool=tool, **{"inputs": {}, **fields})


def failure(message: str, code: str = "unknown", cause: str | None = None, user_message: str = SORRY) -> Any:
    return told(message, code, user_message, cause)


def note(path: str) -> None:
    """Count a call, where it happens: one letter more in a file."""
    with Path(path).open("a") as file:
        file.write("x")


def count(path: Path) -> int:
    return len(path.read_text()) if path.exists() else 0


# Tools that work


@tool
def add(a: int, b: int) -> int:
    return a + b


@tool
async def add_later(a: int, b: int) -> int:
    return a + b


twice: Callable[[int], int] = lambda a: 2 * a  # noqa: E731 - a function without a name of its own


@dataclass(frozen=True)
class Pair:
    a: int
    b: int


def add_pair(pair: Pair) -> int:
    return pair.a + pair.b


ADD_PAIR = Tool("add_pair", "", add_pair, parameters=Pair)


def look_up(query_type: str, parameters: Any, context: ToolContext) -> Any:
    return [query_type, parameters.a, context.values["step_id"]]


FACTS = ToolSpec("facts", {"pair": Pair}, "facts", function=look_up)


class Greet(BaseTool):
    name = "greet"
    description = "Greet."

    def __init__(self, word: str) -> None:
        self.word = word

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "data": f"{self.word} {args['who']}"}


class Outer:
    @staticmethod
    def inner(a: int) -> int:
        return a


@tool
def seen(context: ToolContext) -> list[str]:
    return sorted(context.values)


@tool
def noted(path: str) -> str:
    note(path)
    return "noted"


once = Tool("once", "", noted.function, idempotent=False)


# Tools that fail


class Unreached(ConnectionError):
    """It may pass by itself, and cannot be written down."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} does not answer")
        self.lock = threading.Lock()


class Sealed(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text, threading.Lock())

    def __str__(self) -> str:
        return str(self.args[0])


class NeverMade(ToolError):
    """It never called its base's constructor, and cannot be written down."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class Talking(Exception):
    """An exception of which whatever is asked ends the program."""

    def __reduce__(self) -> Any:
        raise SystemExit

    def __str__(self) -> str:
        raise SystemExit


class Unwritable:
    def __init__(self, text: str = "this stays here") -> None:
        self.text = text

    def __reduce__(self) -> Any:
        raise ValueError(self.text)


class Unreadable:
    def __reduce__(self) -> Any:
        return _unread, ()


def _unread() -> None:
    raise ValueError("this does not come back")


@dataclass
class Unread:
    """A record that only its JSON form brings back."""

    part: int = 1

    def __reduce__(self) -> Any:
        return _unread, ()


OUTCOMES: dict[str, Callable[[], Any]] = {
    "refused": lambda: StorageUnavailable("the archive is closed"),
    "unreached": lambda: Unreached("archive"),
    "asked": lambda: UserInputNeeded("the account is missing", "Which account?"),
    "stopped": StopIteration,
    "sealed": lambda: Sealed("the secret is 42"),
    "unwritable": lambda: Unwritable("the secret is 42"),
    "unreadable": Unreadable,
    "unread": Unread,
    "told": lambda: ToolResult(True, "Done.", Unread()),
    "much": lambda: "x" * 32_000_001,
}


@tool
def fail(how: str) -> Any:
    """Raise or return what cannot be used."""
    outcome = OUTCOMES[how]()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


private_fail = tool(returns_private_data=True)(fail.function)


@tool
def hang() -> None:
    time.sleep(0.3)


@tool
def hang_hard() -> bool:
    """Within one instruction, so that no other thread of the process ever runs."""
    return re.match("(a+)+$", "a" * 60 + "b") is not None


@tool
def die(path: str) -> None:
    note(path)
    os._exit(3)


die_once = Tool("die_once", "", die.function, idempotent=False)


@tool
def die_first(path: str) -> int:
    """Die where nobody has died yet."""
    note(path)
    if count(Path(path)) == 1:
        os._exit(3)
    return count(Path(path))


def unsteady(path: str) -> int:
    """Fail where nobody has called it yet."""
    note(path)
    if count(Path(path)) == 1:
        raise ConnectionError("reset")
    return count(Path(path))


@tool
def killed_first(path: str, calls: str) -> str:
    """Say which process this is; the first one to come here then waits for its end."""
    note(calls)
    other = Path(path)
    if not other.exists():
        draft = other.with_suffix(".draft")
        draft.write_text(str(os.getpid()))
        draft.rename(other)
        time.sleep(30)
    return "survived"


killed_once = Tool("killed_once", "", killed_first.function, idempotent=False)


@tool
def slow(path: str) -> str:
    note(path)
    time.sleep(0.5)
    return "slow"
