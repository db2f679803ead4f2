"""Exceptions at each bytecode of a function, as a tracer raises them."""

from __future__ import annotations

import contextlib
import dis
import os
import random
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import planning
import session
from session import stores

_OURS = tuple(str(Path(each.__file__ or "").parent) for each in (session, planning))
_STORES = (str(Path(stores.__file__ or "").parent),)
_THEIRS = (contextlib.__file__, threading.__file__)

# Of the places; a quarter of that on a server. `make soak` tries all of them.
SHARE = float(os.environ.get("INTERRUPTS", "0.002"))
SEED = int(os.environ.get("INTERRUPTS_SEED") or random.SystemRandom().randrange(10**6))
AGAIN = f"INTERRUPTS_SEED={SEED} draws these again"
T = TypeVar("T")

Point = tuple[CodeType, int]
"""A bytecode."""


@dataclass(frozen=True)
class Fault:
    """An exception, and the files in whose frames it is raised; a driver's only where that is called.

    Unless it comes in any thread, it comes in that of the function.
    """

    make: Callable[[], BaseException]
    files: tuple[str, ...] = _OURS
    driver: frozenset[str] = frozenset()
    is_in_any_thread: bool = False

    def is_raised_in(self, frame: FrameType) -> bool:
        """Whether the tracer looks into a frame."""
        name, back = frame.f_code.co_filename, frame.f_back
        if name in _THEIRS and self.files is _OURS:
            return back is not None and back.f_code.co_filename.startswith(_OURS)
        return name.startswith(self.files) and (
            not self.driver or bool(self.driver & {*frame.f_code.co_names})
        )

    def can_come(self, point: Point) -> bool:
        """Whether it can come at a place: a driver's comes before its call, or in place of its answer."""
        code, at = point
        if at in _waiting(code):
            return False
        lines = {line for start, stop, line in code.co_lines() if start <= at < stop}
        return not self.driver or bool(lines & _lines_with(code, self.driver))


@cache
def _waiting(code: CodeType) -> set[int]:
    """The bytecodes between which an ``await`` waits: no signal is handled there, and no memory is needed."""
    found, last = set[int](), ""
    for each in dis.get_instructions(code):
        follows = {"SEND": "YIELD_VALUE", "YIELD_VALUE": "RESUME", "RESUME": "JUMP_BACKWARD_NO_INTERRUPT"}
        is_next = last != "" and follows.get(last) == each.opname
        last = each.opname if each.opname == "SEND" or is_next else ""
        if last:
            found.add(each.offset)
    return found


@cache
def _lines_with(code: CodeType, names: frozenset[str]) -> set[int | None]:
    """The lines of some code that name one of these."""
    found = [each.positions for each in dis.get_instructions(code) if each.argval in names]
    return {each.lineno for each in found if each is not None}


def _disk_error() -> BaseException:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


def _lost_connection() -> BaseException:
    import psycopg

    return psycopg.OperationalError("the connection is lost")


CTRL_C = Fault(KeyboardInterrupt)
NO_MEMORY = Fault(MemoryError)
_DRIVER = frozenset({"connect", "execute", "fetchone", "fetchall", "nextset", "rowcount"})
DISK = Fault(_disk_error, _STORES, _DRIVER)
CONNECTION = Fault(_lost_connection, _STORES, _DRIVER)


if sys.version_info >= (3, 12):  # whose ``settrace`` shows no bytecodes of a function's first call
    from sys import monitoring

    _TOOL = 3
    _BYTECODE = monitoring.events.INSTRUCTION

    def _traced(
        function: Callable[[], object],
        see: Callable[[Point], object],
        fault: Fault,
        code: CodeType | None = None,
    ) -> object:
        """Call a function, and see the places that it passes, in some code or in all."""
        files = (*fault.files, *(_THEIRS if fault.files is _OURS else ()))
        thread = threading.get_ident()

        def on(code: CodeType, at: int) -> object:
            if not code.co_filename.startswith(files):
                return monitoring.DISABLE
            is_here = fault.is_in_any_thread or threading.get_ident() == thread
            if is_here and fault.is_raised_in(sys._getframe(1)):
                see((code, at))
            return None

        def watch(events: int) -> None:
            if code is None:
                monitoring.set_events(_TOOL, events)
            else:
                monitoring.set_local_events(_TOOL, code, events)

        monitoring.use_tool_id(_TOOL, __name__)
        monitoring.register_callback(_TOOL, _BYTECODE, on)
        try:
            watch(_BYTECODE)
            return function()
        finally:
            watch(0)
            monitoring.register_callback(_TOOL, _BYTECODE, None)
            monitoring.free_tool_id(_TOOL)
            if code is None:
                monitoring.restart_events()

else:  # before Python 3.12

    def _traced(
        function: Callable[[], object],
        see: Callable[[Point], object],
        fault: Fault,
        _code: CodeType | None = None,
    ) -> object:
        def local(frame: FrameType, event: str, _: object) -> Any:
            if event == "opcode":
                see((frame.f_code, frame.f_lasti))
            return local

        def enter(frame: FrameType, _event: str, _: object) -> Any:
            if not fault.is_raised_in(frame):
                return None
            frame.f_trace_opcodes = True
            return local

        before = sys.gettrace()
        sys.settrace(enter)
        if fault.is_in_any_thread:
            threading.settrace(enter)
        try:
            return function()
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]  # None is none


def points(function: Callable[[], object], fault: Fault = CTRL_C) -> list[tuple[Point, int]]:
    """Where a fault can come: each place, the first and the last time that it is passed."""
    seen: dict[Point, int] = {}

    def see(point: Point) -> None:
        seen[point] = seen.get(point, 0) + 1

    _traced(function, see, fault)
    return [
        (point, time) for point, times in seen.items() if fault.can_come(point) for time in sorted({1, times})
    ]


def drawn(found: Iterable[T], share: float, name: str) -> list[T]:
    """So much of what can be tried under a name; another part in each run."""
    chance = random.Random(f"{SEED} {name}")  # noqa: S311 - what is tried is no secret
    return [each for each in found if chance.random() < share]


@dataclass
class Struck:
    """How a function ended in which a fault was raised; it was not where the function took another way."""

    is_raised: bool = False
    value: Any = None
    error: BaseException | None = None


def interrupt(function: Callable[[], object], point: Point, time: int, fault: Fault = CTRL_C) -> Struck:
    """Call a function, and raise a fault in it when it comes to a place so many times."""
    left, struck = iter(range(time - 1, -1, -1)), Struck()

    def see(passed: Point) -> None:
        if passed == point and not next(left, 1):
            if sys.version_info < (3, 12):
                sys.settrace(None)
            struck.is_raised = True
            raise fault.make()

    try:
        struck.value = _traced(function, see, fault, point[0])
    except BaseException as error:  # noqa: BLE001 - the caller judges it
        struck.error = error
    return struck


def shown(point: Point, time: int) -> str:
    """A place, for messages."""
    code, at = point
    lines = [line for start, stop, line in code.co_lines() if start <= at < stop and line]
    return f"{Path(code.co_filename).name}:{lines[:1]} {code.co_qualname} {at} time {time}"
