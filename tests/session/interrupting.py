"""Ctrl-C at each bytecode and at each line of a function, as a tracer raises it."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import planning
import session

_OURS = tuple(str(Path(each.__file__ or "").parent) for each in (session, planning))
_THEIRS = (contextlib.__file__, threading.__file__)

Point = tuple[CodeType, int, str]
"""A place in the code: a bytecode or the beginning of a line."""


def _traced(function: Callable[[], object], see: Callable[[Point], object]) -> None:
    def local(frame: FrameType, event: str, _: object) -> Any:
        if event in {"opcode", "line"}:
            see((frame.f_code, frame.f_lasti, event))
        return local

    def enter(frame: FrameType, _event: str, _: object) -> Any:
        name, back = frame.f_code.co_filename, frame.f_back
        is_called_by_us = name in _THEIRS and back is not None and back.f_code.co_filename.startswith(_OURS)
        if not (name.startswith(_OURS) or is_called_by_us):
            return None
        frame.f_trace_opcodes = True
        return local

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        function()
    finally:
        sys.settrace(before)


def points(function: Callable[[], object]) -> list[tuple[Point, int]]:
    """Where a function can be interrupted: each place, the first and the last time that it is passed."""
    seen: dict[Point, int] = {}

    def see(point: Point) -> None:
        seen[point] = seen.get(point, 0) + 1

    _traced(function, see)
    return [(point, time) for point, times in seen.items() for time in sorted({1, times})]


def interrupt(function: Callable[[], object], point: Point, time: int) -> None:
    """Call a function, and raise KeyboardInterrupt in it.

    Raises:
        KeyboardInterrupt: It came to the place so many times.
    """
    left = iter(range(time - 1, -1, -1))

    def see(passed: Point) -> None:
        if passed == point and not next(left, 1):
            sys.settrace(None)
            raise KeyboardInterrupt

    _traced(function, see)


def shown(point: Point, time: int) -> str:
    """A place, for messages."""
    code, at, event = point
    lines = [line for start, stop, line in code.co_lines() if start <= at < stop and line]
    return f"{Path(code.co_filename).name}:{lines[:1]} {code.co_qualname} {event} {at} time {time}"


def sampled(found: list[Any], share: float, seed: int) -> Iterator[Any]:
    """Some of what was found, spread over all of it."""
    step = max(int(1 / share), 1)
    yield from found[seed % step :: step]
